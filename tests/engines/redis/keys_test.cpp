#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <redis/layout/keys.hpp>

namespace holdfast::engines::redis {
namespace {

constexpr std::string_view owner = "7c6b2a4e-0000-4000-8000-000000000001:42";

TEST(redis_keys, slots_are_those_of_the_cluster_specification) {
    // The specification's own example of the CRC, and values that servers answered.
    EXPECT_EQ(slot_of("123456789"), 0x31C3);
    EXPECT_EQ(slot_of("foo"), 12182);
    EXPECT_EQ(slot_of("bar"), 5061);
    EXPECT_EQ(slot_of("hello"), 866);
    EXPECT_EQ(slot_of(""), 0);
}

TEST(redis_keys, the_first_tag_that_is_not_empty_decides_the_slot) {
    EXPECT_EQ(slot_of("{foo}bar"), slot_of("foo"));
    EXPECT_EQ(slot_of("a}b{foo}"), slot_of("foo"));
    EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    EXPECT_EQ(slot_of("{foo}{bar}"), slot_of("foo"));
}

TEST(redis_keys, an_empty_or_unclosed_tag_leaves_the_whole_key) {
    EXPECT_EQ(slot_of("foo{}{bar}"), 8363);
    EXPECT_NE(slot_of("{}foo"), slot_of("foo"));
    EXPECT_NE(slot_of("{foo"), slot_of("foo"));
}

TEST(redis_keys, a_plain_name_gets_braces) {
    EXPECT_EQ(lock_channel("stock"), "redisson_lock__channel:{stock}");
    EXPECT_EQ(fair_channel("stock", owner), "redisson_lock__channel:{stock}:" + std::string{owner});
    EXPECT_EQ(fair_queue("stock"), "redisson_lock_queue:{stock}");
    EXPECT_EQ(fair_timeouts("stock"), "redisson_lock_timeout:{stock}");
    EXPECT_EQ(read_write_channel("stock"), "redisson_rwlock:{stock}");
    EXPECT_EQ(reader_timeout("stock", owner), "{stock}:" + std::string{owner} + ":rwlock_timeout");
    EXPECT_EQ(semaphore_channel("stock"), "redisson_sc:{stock}");
    EXPECT_EQ(semaphore_timeouts("stock"), "{stock}:timeout");
    EXPECT_EQ(redisson_token("stock"), "redisson_lock_token:{stock}");
}

TEST(redis_keys, a_name_with_an_opening_brace_stays_as_it_is) {
    EXPECT_EQ(lock_channel("{shop}:stock"), "redisson_lock__channel:{shop}:stock");
    EXPECT_EQ(reader_timeout("{shop}:stock", owner),
              "{shop}:stock:" + std::string{owner} + ":rwlock_timeout");
    EXPECT_EQ(semaphore_timeouts("{shop}:stock"), "{shop}:stock:timeout");
    EXPECT_EQ(fair_queue("a{b"), "redisson_lock_queue:a{b");
}

TEST(redis_keys, a_closing_brace_alone_changes_nothing) {
    EXPECT_EQ(lock_channel("a}b"), "redisson_lock__channel:{a}b}");
    EXPECT_EQ(semaphore_timeouts("a}b"), "{a}b}:timeout");
}

TEST(redis_keys, a_latchs_channel_always_gets_braces) {
    EXPECT_EQ(latch_channel("gate"), "redisson_countdownlatch__channel__{gate}");
    EXPECT_EQ(latch_channel("{shop}:gate"), "redisson_countdownlatch__channel__{{shop}:gate}");
}

TEST(redis_keys, our_own_keys_tell_a_name_from_the_same_in_braces) {
    EXPECT_EQ(holds_key("stock"), "holdfast_holds:{stock}");
    EXPECT_EQ(holds_key("{stock}"), "holdfast_holds::{stock}");
    EXPECT_EQ(holds_key("{shop}:stock"), "holdfast_holds::{shop}:stock");
    EXPECT_EQ(grant_channel("stock", "7c6b2a4e"), "holdfast_grants:{stock}:7c6b2a4e");
    EXPECT_EQ(grant_channel("{stock}", "7c6b2a4e"), "holdfast_grants::{stock}:7c6b2a4e");
    EXPECT_EQ(revocation_key("stock"), "holdfast_revoked:{stock}");
    EXPECT_EQ(latch_request_key("gate", "r1"), "holdfast_latch:{gate}:r1");
    EXPECT_EQ(card_key("7c6b2a4e"), "holdfast_card:{7c6b2a4e}");
    EXPECT_EQ(client_channel("7c6b2a4e"), "holdfast_client:{7c6b2a4e}");
}

TEST(redis_keys, a_name_is_found_again_in_the_key_of_its_holds) {
    for (const std::string_view name :
         {"stock", "{stock}", "{shop}:stock", "a}b", "a{b", ":", "::", "{}", "{", "}", "größe"}) {
        EXPECT_EQ(name_in_holds_key(holds_key(name)), name);
    }
    EXPECT_EQ(name_in_holds_key("stock"), std::nullopt);
    EXPECT_EQ(name_in_holds_key("holdfast_waiters:{stock}"), std::nullopt);
    EXPECT_EQ(name_in_holds_key("holdfast_holds:stock"), std::nullopt);
}

/// Names made of what keys are made of: braces, colons, whole keys, owners.
class names_like_keys {
public:
    [[nodiscard]] std::string next() {
        static const std::vector<std::string> pieces{"a",
                                                     "b",
                                                     "{",
                                                     "}",
                                                     "{}",
                                                     ":",
                                                     "::",
                                                     "{a}",
                                                     "{a}b",
                                                     "a:b",
                                                     " ",
                                                     "0",
                                                     "timeout",
                                                     "größe",
                                                     "库存",
                                                     "e\xCC\x81",
                                                     "🔒",
                                                     "\xC2\xA0",
                                                     "holds",
                                                     "grants",
                                                     "holdfast",
                                                     "_",
                                                     "uuid:1",
                                                     "rwlock_timeout",
                                                     "redisson_lock__channel:",
                                                     "redisson_lock_queue:",
                                                     "mode",
                                                     std::string{owner}};
        std::string name;
        for (auto left = std::uniform_int_distribution{1, 5}(random_); left > 0; --left) {
            name += pieces[std::uniform_int_distribution<std::size_t>{0, pieces.size() - 1}(random_)];
        }
        const auto shape = std::uniform_int_distribution{0, 19}(random_);
        return shape == 0   ? std::string(1023, 'x') + name.front()
               : shape == 1 ? "{" + name + "}"
                            : name;
    }

private:
    std::mt19937 random_{20261116};  // NOLINT: the same names every time
};

/// All that is ours for a name, with two clients and two owners.
[[nodiscard]] std::vector<std::string> all_of_ours(const std::string& name) {
    std::vector<std::string> keys{holds_key(name),      fair_wishes(name), lock_wishes(name),
                                  revocation_key(name), absent_key(name),  lock_turn(name),
                                  latch_mark(name)};
    for (const std::string client :
         {"7c6b2a4e-0000-4000-8000-000000000001", "7c6b2a4e-0000-4000-8000-000000000002"}) {
        keys.push_back(grant_channel(name, client));
        keys.push_back(latch_request_key(name, client + ":42"));
        keys.push_back(latch_request_key(name, client + ":-7"));
    }
    return keys;
}

TEST(redis_keys, no_two_names_share_a_key_or_channel_of_ours) {
    std::map<std::string, std::string> seen;
    std::set<std::string> names;
    names_like_keys source;
    for (int round = 0; round < 20'000; ++round) {
        const auto name = source.next();
        if (!names.insert(name).second) {
            continue;
        }
        for (auto& key : all_of_ours(name)) {
            ASSERT_TRUE(is_reserved(key)) << "a lock could be called " << key;
            const auto [where, added] = seen.emplace(std::move(key), name);
            ASSERT_TRUE(added) << name << " and " << where->second << " share " << where->first;
        }
    }
}

TEST(redis_keys, what_has_no_name_is_out_of_every_name_s_reach) {
    for (const auto& key :
         {token_counter(), token_counter(4711), redisson_token("stock"), fair_queue("stock"),
          fair_timeouts("{stock}"), card_key("7c6b2a4e"), client_channel("7c6b2a4e")}) {
        EXPECT_TRUE(is_reserved(key)) << key;
    }
    for (const std::string_view name :
         {"stock", "holdfast", "redisson_x", "redisson_lock__channel:{a}", "{a}:timeout"}) {
        EXPECT_FALSE(is_reserved(name)) << name;
    }
}

TEST(redis_keys, everything_derived_from_a_fitting_name_is_in_its_slot) {
    for (const std::string_view name :
         {"stock", "{stock}", "{shop}:stock", "a}b{c}", "x{y}z{", "größe"}) {
        SCOPED_TRACE(name);
        ASSERT_TRUE(fits_one_slot(name));
        const auto slot = slot_of(name);
        EXPECT_EQ(slot_of(lock_channel(name)), slot);
        EXPECT_EQ(slot_of(fair_channel(name, owner)), slot);
        EXPECT_EQ(slot_of(fair_queue(name)), slot);
        EXPECT_EQ(slot_of(fair_timeouts(name)), slot);
        EXPECT_EQ(slot_of(read_write_channel(name)), slot);
        EXPECT_EQ(slot_of(reader_timeout(name, owner) + ":1"), slot);
        EXPECT_EQ(slot_of(semaphore_channel(name)), slot);
        EXPECT_EQ(slot_of(semaphore_timeouts(name)), slot);
        for (const auto& key : all_of_ours(std::string{name})) {
            EXPECT_EQ(slot_of(key), slot) << key;
        }
        EXPECT_EQ(slot_of(token_counter(slot)), slot);
    }
}

TEST(redis_keys, names_whose_keys_would_scatter_are_known) {
    EXPECT_FALSE(fits_one_slot("a{b"));
    EXPECT_FALSE(fits_one_slot("a}b"));
    EXPECT_FALSE(fits_one_slot("{}x"));
    EXPECT_FALSE(fits_one_slot("{}"));
    EXPECT_FALSE(fits_one_slot("}{"));
    EXPECT_FALSE(fits_one_slot(""));
    EXPECT_TRUE(fits_one_slot("{a}b"));
    EXPECT_TRUE(fits_one_slot("{a}"));
    EXPECT_TRUE(fits_one_slot("b}{a}"));
}

TEST(redis_keys, a_latch_fits_only_without_braces) {
    EXPECT_TRUE(latch_fits_one_slot("gate"));
    EXPECT_EQ(slot_of(latch_channel("gate")), slot_of("gate"));
    for (const std::string_view name : {"{a}b", "a}b", "a{b", "{}x", ""}) {
        EXPECT_FALSE(latch_fits_one_slot(name)) << name;
    }
}

TEST(redis_keys, the_counter_of_a_server_without_slots_has_no_tag) {
    EXPECT_EQ(token_counter(), "holdfast_token");
}

TEST(redis_keys, every_slot_has_a_counter_in_it) {
    for (std::uint16_t slot = 0; slot < 16384; ++slot) {
        ASSERT_EQ(slot_of(token_counter(slot)), slot);
    }
}

TEST(redis_keys, a_slots_counter_has_the_smallest_number) {
    for (int number = 0; number < 100; ++number) {
        const auto tag = std::to_string(number);
        const auto counter = token_counter(slot_of(tag));
        const auto chosen = std::stoi(counter.substr(counter.find('{') + 1));
        EXPECT_LE(chosen, number);
        EXPECT_EQ(slot_of(std::to_string(chosen)), slot_of(tag));
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
