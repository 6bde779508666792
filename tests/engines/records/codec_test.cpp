#include <records/codec.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <random>

#include <support.hpp>

namespace holdfast::engines::test {

namespace {

using records::decode;
using records::encode;
using records::saved_record;

/// Any record that there can be, from a seed.
class record_maker {
public:
    explicit record_maker(std::uint64_t seed) : random_{seed} {}

    [[nodiscard]] saved_record make() {
        saved_record record;
        record.edit = random_();
        record.last_token = random_() >> pick(64);
        const auto limit = pick(3) == 0 ? static_cast<std::uint32_t>(random_()) : 0U;
        for (auto holds = pick(20); holds > 0; --holds) {
            record.holds.push_back({.owner = owner(),
                                    .mode = static_cast<claim_mode>(pick(3)),
                                    .permits = static_cast<std::uint32_t>(random_()),
                                    .limit = limit,
                                    .first_token = {random_() >> pick(64)},
                                    .token_count = static_cast<std::uint32_t>(pick(1000)),
                                    .since = std::chrono::system_clock::time_point{time()},
                                    .expires = clock::time_point{time()},
                                    .lingering = pick(4) == 0});
        }
        for (auto requests = pick(10); requests > 0; --requests) {
            record.counted.push_back(owner());
        }
        if (pick(3) == 0) {
            record.latch = {static_cast<std::uint32_t>(random_()),
                            clock::time_point{time()},
                            {random_(), static_cast<std::uint32_t>(random_())}};
        }
        if (pick(3) == 0) {
            record.revocation = {
                owner(), {random_()}, text(), text(), std::chrono::system_clock::time_point{time()}};
        }
        add_cards(record);
        return record;
    }
    [[nodiscard]] std::uint64_t pick(std::uint64_t count) { return random_() % count; }

private:
    [[nodiscard]] owner_id owner() {
        return {pick(3), pick(3) == 0 ? random_() : pick(3), static_cast<std::int64_t>(random_())};
    }
    [[nodiscard]] std::chrono::microseconds time() {
        const auto most =
            std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds::max())
                .count() -
            1;
        const auto magnitude = static_cast<std::int64_t>(random_() >> (1 + pick(60))) % most;
        return std::chrono::microseconds{pick(2) == 0 ? magnitude : -magnitude};
    }
    [[nodiscard]] std::string text() {
        std::string made(pick(40), ' ');
        for (char& each : made) {
            each = static_cast<char>(random_());
        }
        return made;
    }
    void add_cards(saved_record& record) {
        for (const auto& hold : record.holds) {
            record.cards.push_back({{hold.owner.high, hold.owner.low, 0},
                                    {text(), static_cast<std::int64_t>(random_()), text(), text()}});
        }
        std::sort(record.cards.begin(), record.cards.end(),
                  [](const auto& a, const auto& b) { return a.client < b.client; });
        record.cards.erase(
            std::unique(record.cards.begin(), record.cards.end(),
                        [](const auto& a, const auto& b) { return a.client == b.client; }),
            record.cards.end());
    }

    std::mt19937_64 random_;
};

void expect_same(const saved_record& left, const saved_record& right) {
    EXPECT_EQ(left.edit, right.edit);
    EXPECT_EQ(left.last_token, right.last_token);
    EXPECT_EQ(left.holds, right.holds);
    EXPECT_EQ(left.counted, right.counted);
    EXPECT_EQ(left.latch, right.latch);
    ASSERT_EQ(left.revocation.has_value(), right.revocation.has_value());
    if (left.revocation) {
        EXPECT_EQ(left.revocation->owner, right.revocation->owner);
        EXPECT_EQ(left.revocation->token, right.revocation->token);
        EXPECT_EQ(left.revocation->actor, right.revocation->actor);
        EXPECT_EQ(left.revocation->reason, right.revocation->reason);
        EXPECT_EQ(left.revocation->at, right.revocation->at);
    }
    ASSERT_EQ(left.cards.size(), right.cards.size());
    for (std::size_t index = 0; index < left.cards.size(); ++index) {
        EXPECT_EQ(left.cards[index].client, right.cards[index].client);
        EXPECT_EQ(left.cards[index].card.host, right.cards[index].card.host);
        EXPECT_EQ(left.cards[index].card.pid, right.cards[index].card.pid);
        EXPECT_EQ(left.cards[index].card.program, right.cards[index].card.program);
        EXPECT_EQ(left.cards[index].card.label, right.cards[index].card.label);
    }
}

/// So that what is behind the checksum is reached, too.
std::string with_its_checksum(std::string bytes) {
    constexpr std::size_t size = 8;
    std::uint64_t sum = 0xcbf29ce484222325U;
    for (std::size_t index = 0; index + size < bytes.size(); ++index) {
        sum = (sum ^ static_cast<unsigned char>(bytes[index])) * 0x100000001b3U;
    }
    for (std::size_t index = 0; index < size; ++index) {
        bytes[bytes.size() - size + index] = static_cast<char>(sum >> (8 * index));
    }
    return bytes;
}

saved_record many_holders(std::size_t count) {
    saved_record record;
    record.last_token = 1'700'000'000'000'000;
    for (std::size_t index = 0; index < count; ++index) {
        const owner_id client{index * 0x9e3779b97f4a7c15U, index, 0};
        record.holds.push_back({.owner = {client.high, client.low, static_cast<std::int64_t>(index)},
                                .mode = claim_mode::shared,
                                .first_token = {record.last_token - index},
                                .since = std::chrono::system_clock::time_point{1'700'000'000s},
                                .expires = clock::time_point{1'700'000'030s}});
        record.cards.push_back({client, {"host.example.org", 4711, "billing-service", "worker"}});
    }
    std::sort(record.cards.begin(), record.cards.end(),
              [](const auto& a, const auto& b) { return a.client < b.client; });
    return record;
}

TEST(record_codec, every_record_comes_back_as_it_was) {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        SCOPED_TRACE(seed);
        const auto record = record_maker{seed}.make();
        const auto decoded = decode(encode(record));
        ASSERT_TRUE(decoded);
        expect_same(record, *decoded);
    }
}

TEST(record_codec, an_empty_record_takes_little_room) {
    EXPECT_LT(encode({}).size(), 32U);
    EXPECT_TRUE(decode(encode({})));
}

TEST(record_codec, bytes_that_were_cut_or_changed_are_refused) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        record_maker maker{seed};
        const auto bytes = encode(maker.make());
        for (std::size_t size = 0; size < bytes.size(); size += 1 + maker.pick(7)) {
            EXPECT_FALSE(decode(bytes.substr(0, size))) << "seed " << seed << ", cut at " << size;
        }
        auto changed = bytes;
        changed[maker.pick(bytes.size())] ^= static_cast<char>(1U << maker.pick(8));
        EXPECT_FALSE(decode(changed)) << "seed " << seed;
        EXPECT_FALSE(decode(bytes + "x")) << "seed " << seed;
    }
}

TEST(record_codec, a_forged_record_is_refused_or_is_one_that_could_be_written) {
    std::size_t refused = 0;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
        record_maker maker{seed};
        auto bytes = encode(maker.make());
        for (auto changes = 1 + maker.pick(3); changes > 0; --changes) {
            bytes[maker.pick(bytes.size())] = static_cast<char>(maker.pick(256));
        }
        if (maker.pick(2) == 0) {
            bytes.resize(8 + maker.pick(bytes.size() - 7));
        }
        const auto decoded = decode(with_its_checksum(std::move(bytes)));
        refused += decoded ? 0U : 1U;
        if (decoded) {
            EXPECT_TRUE(decode(encode(*decoded))) << "seed " << seed;
        }
    }
    EXPECT_GT(refused, 10'000U);
}

TEST(record_codec, ten_thousand_holders_fit_into_an_item_of_memcached) {
    const auto record = many_holders(10'000);
    const auto bytes = encode(record);
    EXPECT_LT(bytes.size(), 512U * 1024U);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->holds, record.holds);
    EXPECT_EQ(decoded->cards.size(), records::most_cards);
}

/// Ten times as many take about ten times as long, where quadratic work would take a hundred times.
TEST(record_codec, the_work_grows_with_the_number_of_holders_and_not_with_its_square) {
    // Processor time: what else the machine does, does not count.
    const auto shortest_of = [](const saved_record& record) {
        auto best = std::numeric_limits<std::clock_t>::max();
        for (int round = 0; round < 10; ++round) {
            const auto began = std::clock();
            EXPECT_TRUE(decode(encode(record)));
            best = std::min(best, std::clock() - began);
        }
        return best;
    };
    EXPECT_LT(shortest_of(many_holders(20'000)), 40 * shortest_of(many_holders(2'000)));
}

}  // namespace

}  // namespace holdfast::engines::test
