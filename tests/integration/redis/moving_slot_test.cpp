#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <integration/redis/moving_slot.hpp>

namespace holdfast::testing {

namespace {

using engines::redis::lock_wishes;
using engines::redis::reader_timeout;

/// The readers of a lock have keys of their own, by which others know that they are alive.
TEST_F(redis_moving_slot, readers_stay_and_keep_writers_out) {
    constexpr claim_terms reading{.mode = claim_mode::shared};
    auto alice = join("alice", lock_kind::shared_mutex);
    auto bob = join("bob", lock_kind::shared_mutex);
    auto carol = join("carol", lock_kind::shared_mutex);
    const auto renew = [&](contender& reader, const std::string& name) {
        EXPECT_TRUE(renewed(reader.renew(name, {.mode = claim_mode::shared, .ttl = longer})));
        EXPECT_GT(life_of(reader_timeout(name, reader.owner().text()) + ":1"), long_ttl);
        EXPECT_GT(life_of(name), long_ttl);
    };
    with_keys_apart(
        [&](const std::string& name) {
            alice.become_fresh_owner();
            bob.become_fresh_owner();
            carol.become_fresh_owner();
            alice.hold(name, reading);
            bob.hold(name, reading);
        },
        [&](const std::string& name) {
            renew(alice, name);
            renew(bob, name);
            expect_refused(carol.acquire(name));
            expect_refused(alice.acquire(name));  // an upgrade beside bob
            EXPECT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
            EXPECT_TRUE(gone(alice.renew(name, {.mode = claim_mode::shared})));
            EXPECT_TRUE(gone(alice.release(name, {.mode = claim_mode::shared})));
            expect_refused(carol.acquire(name));
            renew(bob, name);
        },
        [&](const std::string& name) {
            EXPECT_TRUE(eventually([&] { return bool{busy(carol.acquire(name))}; }));
            EXPECT_TRUE(renewed(bob.renew(name, {.mode = claim_mode::shared})));
            EXPECT_TRUE(released(bob.release(name, {.mode = claim_mode::shared})));
            EXPECT_TRUE(granted(carol.acquire(name)));
            EXPECT_TRUE(released(carol.release(name)));
        });
}

/// Documented as a loss of data: the old server knows nothing of the lock any more.
TEST_F(redis_moving_slot,
       after_a_move_that_was_cancelled_the_holder_is_told_and_the_next_token_is_larger) {
    auto alice = join("alice", lock_kind::mutex);
    auto bob = join("bob", lock_kind::mutex);
    const auto name = fresh_name();
    const auto held = alice.acquire(name);
    ASSERT_TRUE(granted(held));
    begin_move(name);
    for (const auto& key : keys_left()) {
        move(key);
    }
    ASSERT_TRUE(renewed(alice.renew(name))) << "it is where its keys are";

    for (const auto* server : {to_, from_}) {
        ASSERT_EQ(server->cli({"CLUSTER", "SETSLOT", std::to_string(slot_), "STABLE"}), "OK");
    }

    EXPECT_TRUE(gone(alice.renew(name)));
    const auto next = bob.acquire(name);
    ASSERT_TRUE(granted(next));
    EXPECT_GT(next.first_token, held.first_token);
}

TEST_F(redis_moving_slot, without_the_permission_to_ask_there_is_an_error_that_names_it) {
    auto alice = join("alice", lock_kind::mutex);
    const auto name = fresh_name();
    begin_move(name);
    to_->cli({"ACL", "SETUSER", "default", "-asking"});

    const auto refused = alice.acquire(name).error;

    to_->cli({"ACL", "SETUSER", "default", "+@all"});
    finish_move();
    EXPECT_EQ(refused.code, errc::unauthorised) << refused.detail;
    EXPECT_NE(refused.detail.find("+asking"), std::string::npos) << refused.detail;
}

TEST_F(redis_moving_slot, the_last_reader_leaves_nothing_behind) {
    constexpr claim_terms reading{.mode = claim_mode::shared};
    auto alice = join("alice", lock_kind::shared_mutex);
    auto bob = join("bob", lock_kind::shared_mutex);
    with_keys_apart(
        [&](const std::string& name) {
            alice.become_fresh_owner();
            alice.hold(name, reading);
        },
        [&](const std::string& name) {
            // Whatever mode it names: its client may not know.
            EXPECT_TRUE(released(alice.release(name)));
            EXPECT_LT(life_of(name), 0ms);
            EXPECT_LT(life_of(reader_timeout(name, alice.owner().text()) + ":1"), 0ms);
        },
        [&](const std::string& name) {
            EXPECT_TRUE(bob.acquire_eventually(name));
            EXPECT_TRUE(released(bob.release(name)));
        });
}

/// Asked again it would find nothing, and its caller would be told that the lock was lost.
TEST_F(redis_moving_slot, a_reader_that_left_is_told_so_whatever_fails_afterwards) {
    constexpr claim_terms reading{.mode = claim_mode::shared};
    auto alice = join("alice", lock_kind::shared_mutex);
    auto bob = join("bob", lock_kind::shared_mutex);
    const auto name = fresh_name();
    alice.hold(name, reading);
    bob.hold(name, reading);
    begin_move(name);
    move(engines::redis::holds_key(name));
    for (auto* const server : {from_, to_}) {
        server->cli({"ACL", "SETUSER", "default", "-del"});
    }

    EXPECT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));

    for (auto* const server : {from_, to_}) {
        server->cli({"ACL", "SETUSER", "default", "+@all"});
    }
    finish_move();
    EXPECT_TRUE(released(bob.release(name, {.mode = claim_mode::shared})));
}

TEST_F(redis_moving_slot, a_fair_lock_that_was_released_is_told_so_whatever_fails_afterwards) {
    auto alice = join("alice", lock_kind::fair_mutex);
    const auto name = fresh_name();
    alice.hold(name);
    begin_move(name);
    move(engines::redis::holds_key(name));
    for (auto* const server : {from_, to_}) {
        server->cli({"ACL", "SETUSER", "default", "-lindex"});
    }

    EXPECT_TRUE(released(alice.release(name)));

    for (auto* const server : {from_, to_}) {
        server->cli({"ACL", "SETUSER", "default", "+@all"});
    }
    finish_move();
}

TEST_F(redis_moving_slot, permits_stay_and_all_of_them_are_free_afterwards) {
    constexpr claim_terms two{.mode = claim_mode::permit, .permits = 2, .limit = 3};
    constexpr claim_terms one{.mode = claim_mode::permit, .permits = 1, .limit = 3};
    auto alice = join("alice", lock_kind::semaphore);
    auto bob = join("bob", lock_kind::semaphore);
    auto carol = join("carol", lock_kind::semaphore);
    const auto renewed_by = [&](contender& holder, const std::string& name) {
        return renewed(holder.renew(name, {.mode = claim_mode::permit, .ttl = longer}));
    };
    with_keys_apart(
        [&](const std::string& name) {
            for (auto* each : {&alice, &bob, &carol}) {
                each->become_fresh_owner();
            }
            alice.hold(name, two);
            bob.hold(name, one);
        },
        [&](const std::string& name) {
            EXPECT_TRUE(renewed_by(alice, name));
            EXPECT_TRUE(renewed_by(bob, name));
            expect_refused(carol.acquire(name, one));
            EXPECT_TRUE(gone(carol.release(name, {.mode = claim_mode::permit})));
            EXPECT_TRUE(released(alice.release(name, {.mode = claim_mode::permit})));
            EXPECT_FALSE(renewed_by(alice, name));
            EXPECT_TRUE(gone(alice.release(name, {.mode = claim_mode::permit})));
            EXPECT_TRUE(renewed_by(bob, name));
        },
        [&](const std::string& name) {
            EXPECT_TRUE(carol.acquire_eventually(name, two));
            alice.become_fresh_owner();
            EXPECT_TRUE(busy(alice.acquire(name, one)));
            EXPECT_TRUE(released(carol.release(name, {.mode = claim_mode::permit})));
            EXPECT_TRUE(released(bob.release(name, {.mode = claim_mode::permit})));
            EXPECT_TRUE(
                granted(alice.acquire(name, {.mode = claim_mode::permit, .permits = 3, .limit = 3})));
        });
}

/// Several renewals in one slot are one request, and are still answered one by one.
TEST_F(redis_moving_slot, holds_that_are_renewed_together_are_told_apart) {
    auto alice = join("alice", lock_kind::mutex);
    const auto tag = "{" + fresh_name() + "}";
    std::vector<engines::renew_request> all;
    for (const auto* which : {"a", "b", "c"}) {
        alice.become_fresh_owner();
        alice.hold(tag + which);
        all.push_back({tag + which, claim_mode::exclusive, alice.owner(), longer, lock_kind::mutex});
    }
    begin_move(tag);
    move(tag + "b");
    ASSERT_TRUE(released(alice.release(tag + "c")));
    const auto replies = alice.store().renew(all);
    ASSERT_EQ(replies.size(), 3U);
    EXPECT_TRUE(renewed(replies[0]));
    EXPECT_TRUE(renewed(replies[1]));
    EXPECT_TRUE(gone(replies[2]));
    finish_move();
}

/// A Java service looks only when it is told, or when the lease it saw would have ended.
TEST_F(redis_moving_slot, the_first_in_line_of_a_fair_lock_is_told) {
    auto alice = join("alice", lock_kind::fair_mutex);
    const std::string java = "9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47";
    const auto name = fresh_name();
    alice.hold(name);
    auto waiter = cluster_->node(0).connect();
    waiter.command({"SSUBSCRIBE", engines::redis::fair_channel(name, java)});
    cluster_->node(0).cli({"RPUSH", fair_queue(name), java});
    begin_move(name);
    move(name);
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_EQ(waiter.next_message().items.at(2).text, "0");
    finish_move();
}

/// As an application sees it: a reshard that lasts longer than every ttl.
TEST_F(redis_moving_slot, leases_outlive_a_reshard_that_takes_longer_than_their_ttl) {
    constexpr auto ttl = 1500ms;
    const lease_options options{.ttl = ttl};
    client holder{address()};
    const auto tag = "{" + fresh_name() + "}";
    shared_mutex read_lock{holder, tag + "read", options};
    std::vector<lease> held;
    held.push_back(mutex{holder, tag + "plain", options}.acquire());
    held.push_back(fair_mutex{holder, tag + "fair", options}.acquire());
    held.push_back(shared_mutex{holder, tag + "write", options}.acquire());
    held.push_back(read_lock.acquire_shared());
    held.push_back(read_lock.acquire_shared());
    held.push_back(semaphore{holder, tag + "permits", 2, options}.acquire());
    auto intruder = join("intruder", lock_kind::mutex);
    client waiter{address()};
    auto waits_plain = in_background([&] { return mutex{waiter, tag + "plain"}.try_acquire_for(60s); });
    auto waits_fair = in_background([&] {
        return fair_mutex{waiter, tag + "fair"}.try_acquire_for(60s);
    });
    const auto& home = cluster_->node_of_slot(slot_of(tag));
    ASSERT_TRUE(eventually([&] {
        return home.ask({"EXISTS", lock_wishes(tag + "plain"), fair_queue(tag + "fair")}).integer == 2;
    }));

    begin_move(tag);
    const auto keys = keys_left();
    for (std::size_t index = 0; index < keys.size(); index += 2) {
        move(keys[index]);
    }
    const stopwatch watch;
    while (watch.elapsed() < 2 * ttl) {
        expect_refused(intruder.acquire(tag + "plain"));
        std::this_thread::sleep_for(50ms);  // not a guess: the time is what is tested
    }
    for (const auto& each : held) {
        EXPECT_TRUE(static_cast<bool>(each)) << each.name();
    }
    for (auto& each : held) {
        EXPECT_EQ(each.release(), release_outcome::released);
    }
    finish_move();
    EXPECT_TRUE(waits_plain.get());
    EXPECT_TRUE(waits_fair.get());
}

/// One key at a time, while everybody goes on.
TEST_F(redis_moving_slot, nobody_gets_in_beside_a_holder_while_slots_move) {
    constexpr int slots = 4;
    client first{address(), {.outage_patience = 60s}};
    client second{address(), {.outage_patience = 60s}};
    for (int number = 0; number < slots; ++number) {
        const auto tag = "{" + fresh_name() + "}";
        std::atomic<bool> over{false};
        std::atomic<int> intrusions{0};
        std::atomic<int> grants{0};
        std::atomic<int> plain{0};
        std::atomic<int> writers{0};
        std::atomic<int> readers{0};
        std::atomic<int> permits{0};
        const auto expect = [&](bool right) { intrusions += right ? 0 : 1; };
        const auto use_plain = [&](client& with) {
            const auto held = mutex{with, tag + "plain"}.acquire();
            expect(++plain == 1);
            --plain;
        };
        const auto write = [&](client& with) {
            const auto held = shared_mutex{with, tag + "shared"}.acquire();
            expect(++writers == 1 && readers == 0);
            --writers;
        };
        const auto read = [&](client& with) {
            const auto held = shared_mutex{with, tag + "shared"}.acquire_shared();
            ++readers;
            expect(writers == 0);
            --readers;
        };
        const auto use_permit = [&](client& with) {
            const auto held = semaphore{with, tag + "permits", 1}.acquire();
            expect(++permits == 1);
            --permits;
        };
        const auto again_and_again = [&](client& with, const auto& work) {
            return std::jthread{[&over, &grants, &with, work] {
                while (!over) {
                    work(with);
                    ++grants;
                }
            }};
        };
        const auto everybody_goes_on = [&] {
            const auto before = grants.load();
            return eventually([&] { return grants > before + 50; });
        };
        {
            std::vector<std::jthread> threads;
            for (auto* with : {&first, &second}) {
                threads.push_back(again_and_again(*with, use_plain));
                threads.push_back(again_and_again(*with, write));
                threads.push_back(again_and_again(*with, read));
                threads.push_back(again_and_again(*with, use_permit));
            }
            EXPECT_TRUE(everybody_goes_on());
            begin_move(tag);
            for (auto keys = keys_left(); !keys.empty(); keys = keys_left()) {
                // NOKEY if it has been released meanwhile.
                from_->cli(
                    {"MIGRATE", "127.0.0.1", std::to_string(to_->port()), keys.front(), "0", "5000"});
                std::this_thread::sleep_for(2ms);  // not a guess: a moment for the others
            }
            finish_move();
            EXPECT_TRUE(everybody_goes_on());
            over = true;
        }
        EXPECT_EQ(intrusions, 0);
    }
}

}  // namespace

}  // namespace holdfast::testing
