#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

using testing_support::redis_cluster;

/// What a server checks in a cluster only: that everything a script touches is in one slot.
class scripts_in_a_cluster : public testing::TestWithParam<std::string> {
protected:
    static void SetUpTestSuite() {
        cluster_ = std::make_unique<redis_cluster>(
            testing_support::redis_cluster_options{.masters = 1, .replicas_each = 0});
    }
    static void TearDownTestSuite() { cluster_.reset(); }
    void SetUp() override { cluster_->node(0).cli({"FLUSHALL"}); }

    [[nodiscard]] static redis_reply run(const script& what, const words& keys,
                                         const words& arguments) {
        words command{"EVAL", std::string{what.text}, std::to_string(keys.size())};
        command.insert(command.end(), keys.begin(), keys.end());
        command.insert(command.end(), arguments.begin(), arguments.end());
        return cluster_->node(0).ask(command);
    }
    [[nodiscard]] static std::string key_prefix(const std::string& name) {
        const auto text = suffixed(name, "");
        return text.substr(0, text.size() - 1);
    }
    [[nodiscard]] static redis_client listener(const std::string& channel) {
        auto client = cluster_->node(0).connect();
        client.command({"SSUBSCRIBE", channel});
        return client;
    }
    [[nodiscard]] std::string counter() const { return token_counter(slot_of(GetParam())); }
    [[nodiscard]] static words terms_of(const std::string& owner) {
        return {owner, text_of(long_ttl), "1", "0", since};
    }
    [[nodiscard]] static words with(words some, const words& more) {
        some.insert(some.end(), more.begin(), more.end());
        return some;
    }

private:
    static inline std::unique_ptr<redis_cluster> cluster_;
};

TEST_P(scripts_in_a_cluster, a_plain_lock_comes_and_goes) {
    const auto& name = GetParam();
    ASSERT_TRUE(granted(run(scripts::lock_acquire(),
                            {name, holds_key(name), counter(), lock_turn(name)}, terms_of(alice))));
    EXPECT_EQ(run(scripts::lock_renew(), {name, holds_key(name), revocation_key(name)},
                  {alice, alice, text_of(long_ttl)})
                  .as_text(),
              "1");
    EXPECT_EQ(numbers_in(run(scripts::lock_release(),
                             {name, holds_key(name), lock_channel(name), lock_wishes(name), counter(),
                              lock_turn(name)},
                             lock_release_arguments(alice, 0, "spublish", name))),
              released);
}

TEST_P(scripts_in_a_cluster, a_fair_lock_goes_to_the_next) {
    const auto& name = GetParam();
    const words keys{name,      fair_queue(name),  fair_timeouts(name), holds_key(name),
                     counter(), fair_wishes(name), lock_channel(name)};
    const words asks{"20000", "1", "0", "4711", "spublish"};
    ASSERT_TRUE(granted(run(scripts::fair_acquire(), keys, with(terms_of(alice), asks))));
    ASSERT_TRUE(busy(run(scripts::fair_acquire(), keys, with(terms_of(bob), asks))));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(busy(run(scripts::fair_acquire(), keys, with(terms_of(carol), asks))));
    const words release_keys{name,
                             fair_queue(name),
                             fair_timeouts(name),
                             holds_key(name),
                             lock_channel(name),
                             fair_wishes(name),
                             counter()};
    EXPECT_EQ(
        numbers_in(run(scripts::fair_release(), release_keys, {alice, "spublish", "0", "20000", "0"})),
        (numbers{1, 2}));
    ASSERT_TRUE(granted(run(scripts::fair_acquire(), keys, with(terms_of(bob), asks))));
    EXPECT_EQ(
        numbers_in(run(scripts::fair_release(), release_keys, {bob, "spublish", "0", "20000", "0"})),
        released);
    EXPECT_TRUE(carols.next_message().items.at(2).text.starts_with("granted 4711 "));
    EXPECT_TRUE(granted(run(scripts::fair_acquire(), keys, with(terms_of(carol), asks))));
}

TEST_P(scripts_in_a_cluster, readers_keep_a_writer_out) {
    const auto& name = GetParam();
    const auto timeout = [&](const std::string& owner) { return reader_timeout(name, owner) + ":1"; };
    for (const auto& owner : {alice, carol}) {
        ASSERT_TRUE(
            granted(run(scripts::read_acquire(),
                        {name, holds_key(name), counter(), read_write_channel(name), timeout(owner)},
                        with(terms_of(owner), {"spublish"}))));
    }
    EXPECT_TRUE(busy(run(scripts::write_acquire(), {name, holds_key(name), counter(), timeout(bob)},
                         with(terms_of(bob), {key_prefix(name)}))));
    EXPECT_EQ(run(scripts::inspect(),
                  {name, holds_key(name), revocation_key(name), semaphore_timeouts(name),
                   fair_queue(name), latch_mark(name)},
                  {key_prefix(name)})
                  .items.at(9)
                  .items.size(),
              2U);
    for (const auto& owner : {alice, carol}) {
        EXPECT_EQ(numbers_in(run(scripts::read_write_release(),
                                 {name, holds_key(name), read_write_channel(name), timeout(owner)},
                                 {owner, "spublish", "0", key_prefix(name)})),
                  released);
    }
}

TEST_P(scripts_in_a_cluster, permits_are_taken_and_revoked) {
    const auto& name = GetParam();
    const auto token = token_of(
        run(scripts::permit_acquire(),
            {name, semaphore_timeouts(name), semaphore_channel(name), holds_key(name), counter()},
            {alice, text_of(long_ttl), "1", "3", "1", "0", since, "spublish", std::string(16, 'i')}));
    EXPECT_EQ(
        numbers_in(run(scripts::revoke(),
                       {name, holds_key(name), revocation_key(name), lock_channel(name),
                        read_write_channel(name), semaphore_channel(name), semaphore_timeouts(name),
                        fair_queue(name), reader_timeout(name, alice) + ":1"},
                       {alice, text_of(token), "record", "1000", "spublish", client_channel("client"),
                        lock_channel(name), key_prefix(name)})),
        numbers{1});
}

INSTANTIATE_TEST_SUITE_P(names, scripts_in_a_cluster,
                         testing::Values("stock", "{shop}:stock", "a}b{c}"),
                         [](const auto& one) { return "name" + std::to_string(one.index); });

}  // namespace
}  // namespace holdfast::engines::redis
