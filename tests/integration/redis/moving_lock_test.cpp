#include <string>
#include <vector>

#include <integration/redis/moving_slot.hpp>

namespace holdfast::testing {

namespace {

using engines::redis::fair_timeouts;
using engines::redis::fair_wishes;
using engines::redis::lock_wishes;

/// One holder; `kind` and `mode` decide what of.
class redis_moving_lock : public redis_moving_slot, public ::testing::WithParamInterface<lock_kind> {};

TEST_P(redis_moving_lock, is_renewed_and_released_by_its_holder_only) {
    auto alice = join("alice", GetParam());
    auto bob = join("bob", GetParam());
    with_keys_apart(
        [&](const std::string& name) {
            alice.become_fresh_owner();
            alice.hold(name);
        },
        [&](const std::string& name) {
            EXPECT_TRUE(renewed(alice.renew(name, {.ttl = longer})));
            EXPECT_GT(life_of(name), long_ttl);
            EXPECT_GT(life_of(engines::redis::holds_key(name)), long_ttl);
            expect_refused(bob.acquire(name));
            EXPECT_TRUE(gone(bob.renew(name)));
            EXPECT_TRUE(gone(bob.release(name)));
            EXPECT_TRUE(released(alice.release(name)));
            EXPECT_TRUE(gone(alice.renew(name)));
            EXPECT_TRUE(gone(alice.release(name)));
        },
        [&](const std::string& name) {
            EXPECT_TRUE(bob.acquire_eventually(name));
            EXPECT_EQ(bob.inspect(name).holders.size(), 1U);
            EXPECT_TRUE(released(bob.release(name)));
        });
}

TEST_P(redis_moving_lock, may_be_left_behind_for_a_while) {
    auto alice = join("alice", GetParam());
    auto bob = join("bob", GetParam());
    const auto name = fresh_name();
    alice.hold(name);
    begin_move(name);
    move(name);
    EXPECT_TRUE(released(alice.release(name, {.linger = longer})));
    EXPECT_TRUE(gone(alice.renew(name)));
    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(released(alice.release(name, {.linger = longer}))) << "sent again";
    finish_move();
    EXPECT_TRUE(eventually([&] { return bool{busy(bob.acquire(name))}; }));
    EXPECT_GT(life_of(name), long_ttl);
}

/// One that gives up leaves no wish and no place in a line, wherever they are.
TEST_P(redis_moving_lock, is_given_up_by_its_waiters) {
    if (GetParam() == lock_kind::shared_mutex) {
        return;  // its waiters leave no traces
    }
    auto alice = join("alice", GetParam());
    auto bob = join("bob", GetParam());
    const auto traces = [](const std::string& name) {
        return std::vector{lock_wishes(name), fair_wishes(name), fair_queue(name), fair_timeouts(name)};
    };
    const auto are_there = [&](const std::string& name) {
        const auto all = traces(name);
        return std::any_of(all.begin(), all.end(),
                           [&](const std::string& key) { return life_of(key) != no_such_key; });
    };
    int seen = 0;
    with_keys_apart(
        [&](const std::string& name) {
            alice.become_fresh_owner();
            bob.become_fresh_owner();
            alice.hold(name);
            engines::acquire_request waits{.name = name, .owner = bob.owner(), .ttl = long_ttl};
            waits.kind = GetParam();
            waits.queue = true;
            ASSERT_TRUE(busy(bob.store().acquire(waits)));
        },
        [&](const std::string& name) {
            seen += are_there(name) ? 1 : 0;  // a wish may be over on a busy machine
            EXPECT_TRUE(gone(bob.release(name)));
            EXPECT_FALSE(are_there(name));
            EXPECT_TRUE(released(alice.release(name)));
        },
        [&](const std::string& name) {
            auto carol = join("carol", GetParam());
            EXPECT_TRUE(carol.acquire_eventually(name));
        });
    EXPECT_GT(seen, 0);
}

INSTANTIATE_TEST_SUITE_P(kinds, redis_moving_lock,
                         ::testing::Values(lock_kind::mutex, lock_kind::fair_mutex,
                                           lock_kind::shared_mutex),
                         [](const auto& one) {
                             return one.param == lock_kind::mutex        ? "plain"
                                    : one.param == lock_kind::fair_mutex ? "fair"
                                                                         : "writer";
                         });

}  // namespace

}  // namespace holdfast::testing
