#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <integration/redis/redis_stage.hpp>

/// Locks that count only when replicas have them.
namespace holdfast::testing {

namespace {

class redis_replica_policy : public ::testing::Test {
protected:
    /// A replica may still be reading what its master counts as sent.
    void SetUp() override {
        auto connection = servers_.master().connect();
        connection.command({"SET", "first", "1"});
        ASSERT_EQ(connection.command({"WAIT", "2", "5000"}).integer, 2);
    }
    /// Servers that are stopped cannot be asked to end.
    void TearDown() override { resume(); }

    void pause(std::size_t count) {
        for (std::size_t index = 0; index < count; ++index) {
            servers_.replica(index).pause();
        }
    }
    void resume() {
        for (std::size_t index = 0; index < servers_.replica_count(); ++index) {
            if (servers_.replica(index).running()) {
                servers_.replica(index).resume();
            }
        }
    }
    [[nodiscard]] static lease_options confirmed_by(replica_policy policy) {
        return {.ttl = 30s, .replicas = policy};
    }
    [[nodiscard]] bool is_in_master(const std::string& name) {
        return servers_.master().ask({"EXISTS", name}).integer == 1;
    }
    /// Asks once, is refused within the request timeout, and leaves no trace.
    void expect_refused(replica_policy policy) {
        mutex stock{client_, "stock", confirmed_by(policy)};
        const stopwatch watch;
        EXPECT_EQ(error_of([&] { return stock.try_acquire(); }), errc::store_unavailable);
        EXPECT_LT(watch.elapsed(), request_timeout + slack);
        EXPECT_FALSE(is_in_master("stock"));
    }

    /// Half of it is for the replicas, the other half for giving back what they did not confirm: a
    /// machine that stands still for a moment must not use it up.
    static constexpr std::chrono::milliseconds request_timeout{1500};
    redis_replicas servers_{2};
    client client_{address_of(servers_.master().port()), {.request_timeout = request_timeout}};
};

TEST_F(redis_replica_policy, is_met_by_replicas_that_are_there) {
    for (const auto policy :
         {replica_policy::at_least(1), replica_policy::at_least(2), replica_policy::majority()}) {
        auto held = mutex{client_, "stock", confirmed_by(policy)}.try_acquire();
        ASSERT_TRUE(held.has_value());
        EXPECT_EQ(held->release(), release_outcome::released);
    }
}

TEST_F(redis_replica_policy, a_granted_lock_is_in_as_many_replicas_as_were_asked_for) {
    for (int round = 0; round < 20; ++round) {
        auto held = mutex{client_, "stock", confirmed_by(replica_policy::at_least(2))}.acquire();
        for (std::size_t index = 0; index < servers_.replica_count(); ++index) {
            EXPECT_EQ(servers_.replica(index).cli({"HGET", "stock", held.owner().text()}), "1");
        }
    }
}

TEST_F(redis_replica_policy, a_majority_is_there_when_one_of_two_replicas_hangs) {
    pause(1);
    EXPECT_TRUE(mutex(client_, "stock", confirmed_by(replica_policy::majority())).try_acquire());
    EXPECT_TRUE(mutex(client_, "stock", confirmed_by(replica_policy::at_least(1))).try_acquire());
    expect_refused(replica_policy::at_least(2));
}

TEST_F(redis_replica_policy, a_lock_that_no_replica_confirms_is_refused_and_given_back) {
    pause(2);
    expect_refused(replica_policy::at_least(1));
    expect_refused(replica_policy::majority());
}

TEST_F(redis_replica_policy, a_give_back_that_fails_leaves_the_outcome_unknown) {
    pause(2);
    mutex stock{client_, "stock", confirmed_by(replica_policy::majority())};
    auto asking = in_background([&] { return error_of([&] { return stock.try_acquire(); }); });
    ASSERT_TRUE(eventually([&] { return is_in_master("stock"); }));
    // While it waits for the replicas it loses the right to give anything back.
    servers_.master().cli({"ACL", "SETUSER", "default", "-del", "-hdel", "-publish"});
    EXPECT_EQ(asking.get(), errc::outcome_unknown);
    EXPECT_TRUE(is_in_master("stock"));
    servers_.master().cli({"ACL", "SETUSER", "default", "+@all"});
}

TEST_F(redis_replica_policy, counts_for_every_name_of_a_multi_lock) {
    const auto terms = confirmed_by(replica_policy::at_least(2));
    for (int round = 0; round < 10; ++round) {
        const auto held = multi_lock{client_, {"a", "b", "c"}, terms}.acquire();
        for (const auto* name : {"a", "b", "c"}) {
            for (std::size_t index = 0; index < servers_.replica_count(); ++index) {
                EXPECT_EQ(servers_.replica(index).cli({"EXISTS", name}), "1");
            }
        }
    }
    pause(1);
    multi_lock refused{client_, {"a", "b", "c"}, terms};
    EXPECT_EQ(error_of([&] { return refused.try_acquire(); }), errc::store_unavailable);
    for (const auto* name : {"a", "b", "c"}) {
        EXPECT_TRUE(eventually([&] { return !is_in_master(name); })) << name;
    }
}

/// A release gives the lock to the waiter, and the replicas confirm it for the waiter's own request.
TEST_F(redis_replica_policy, counts_for_a_lock_that_was_given_by_a_release) {
    client other{address_of(servers_.master().port())};
    for (int round = 0; round < 10; ++round) {
        auto held = mutex{other, "stock"}.acquire();
        auto waiting = in_background([this] {
            return mutex{client_, "stock", confirmed_by(replica_policy::at_least(2))}.try_acquire_for(
                20s);
        });
        const auto wishes = [this] {
            return servers_.master().cli({"LRANGE", "holdfast_wishes:{stock}", "0", "-1"});
        };
        ASSERT_TRUE(eventually([&] { return !wishes().empty(); }));
        const auto wish = wishes();
        held.release();
        const auto got = waiting.get();
        ASSERT_TRUE(got);
        EXPECT_EQ(wish.substr(0, wish.find(' ')), got->owner().text());
        for (std::size_t index = 0; index < servers_.replica_count(); ++index) {
            EXPECT_EQ(servers_.replica(index).cli({"HGET", "stock", got->owner().text()}), "1");
        }
    }
}

TEST_F(redis_replica_policy, a_lock_given_by_a_release_that_no_replica_confirms_is_given_back) {
    client other{address_of(servers_.master().port())};
    auto held = mutex{other, "stock"}.acquire();
    auto waiting = in_background([this] {
        return error_of([this] {
            return mutex{client_, "stock", confirmed_by(replica_policy::at_least(1))}.try_acquire_for(
                6s);
        });
    });
    ASSERT_TRUE(eventually([&] {
        return servers_.master().ask({"EXISTS", "holdfast_wishes:{stock}"}).integer == 1;
    }));
    pause(2);
    held.release();
    EXPECT_NE(waiting.get(), std::error_code{});
    EXPECT_TRUE(eventually([&] { return mutex(other, "stock").try_acquire().has_value(); }));
}

/// Options crossed with features: no kind of lock, and no number of names, forgets the policy.
TEST_F(redis_replica_policy, holds_for_every_kind_of_lock) {
    pause(2);
    client brief{address_of(servers_.master().port()), {.request_timeout = 400ms}};
    const auto terms = confirmed_by(replica_policy::at_least(1));
    const std::vector<std::pair<std::string, std::function<bool()>>> attempts{
        {"mutex", [&] { return mutex(brief, "stock", terms).try_acquire().has_value(); }},
        {"fair_mutex", [&] { return fair_mutex(brief, "stock", terms).try_acquire().has_value(); }},
        {"recursive_mutex", [&] { return recursive_mutex(brief, "stock", terms).try_lock(); }},
        {"shared_mutex", [&] { return shared_mutex(brief, "stock", terms).try_acquire().has_value(); }},
        {"a share",
         [&] { return shared_mutex(brief, "stock", terms).try_acquire_shared().has_value(); }},
        {"semaphore", [&] { return semaphore(brief, "seats", 2, terms).try_acquire().has_value(); }},
        {"one name", [&] { return multi_lock(brief, {"stock"}, terms).try_acquire().has_value(); }},
        {"two names",
         [&] {
             return multi_lock(brief, {"stock", "other"}, terms).try_acquire().has_value();
         }},
        {"three names", [&] {
             return multi_lock(brief, {"stock", "other", "third"}, terms).try_acquire().has_value();
         }}};
    for (const auto& [kind, attempt] : attempts) {
        bool taken = false;
        const auto error = error_of([&taken, &ask = attempt] { return taken = ask(); });
        EXPECT_FALSE(taken) << kind;
        EXPECT_TRUE(error == errc::store_unavailable || error == errc::outcome_unknown)
            << kind << ": " << error;
        for (const auto* const name : {"stock", "other", "third", "seats"}) {
            EXPECT_TRUE(eventually([&] { return client_.inspect(name).holders.empty(); }))
                << kind << " left " << name;
        }
    }
}

TEST_F(redis_replica_policy, an_upgrade_while_the_replicas_hang_leaves_one_holder) {
    const auto terms = confirmed_by(replica_policy::at_least(1));
    shared_mutex stock{client_, "stock", terms};
    auto reading = stock.acquire_shared();
    pause(2);

    const auto writing = reading.try_upgrade();
    EXPECT_TRUE(writing);

    client other{address_of(servers_.master().port())};
    EXPECT_FALSE(shared_mutex(other, "stock").try_acquire());
    EXPECT_FALSE(shared_mutex(other, "stock").try_acquire_shared());
}

TEST_F(redis_replica_policy, a_downgrade_while_the_replicas_hang_leaves_one_holder) {
    const auto terms = confirmed_by(replica_policy::at_least(1));
    shared_mutex stock{client_, "stock", terms};
    auto writing = stock.acquire();
    pause(2);

    const auto reading = writing.downgrade();

    client other{address_of(servers_.master().port())};
    EXPECT_FALSE(shared_mutex(other, "stock").try_acquire());
    EXPECT_TRUE(shared_mutex(other, "stock").try_acquire_shared());
}

TEST_F(redis_replica_policy, says_how_many_confirmed) {
    pause(2);
    // On a busy machine the give-back takes its time, too, and without its answer the text is another.
    client patient{address_of(servers_.master().port()), {.request_timeout = 4 * request_timeout}};
    mutex stock{patient, "stock", confirmed_by(replica_policy::majority())};
    const auto text = error_text_of([&] { return stock.try_acquire(); });
    EXPECT_NE(text.find("only 0 replicas confirmed"), std::string::npos) << text;
}

TEST_F(redis_replica_policy, replicas_that_are_gone_are_counted_all_the_same) {
    servers_.replica(0).kill_hard();
    servers_.replica(1).kill_hard();
    expect_refused(replica_policy::majority());
}

TEST_F(redis_replica_policy, a_call_with_a_deadline_ends_by_it_and_leaves_nothing) {
    pause(2);
    mutex stock{client_, "stock", confirmed_by(replica_policy::majority())};
    const stopwatch watch;

    // How it ends depends on whether the last question still had its answer before the deadline.
    const auto error = error_of([&] { return stock.try_acquire_for(1s); });

    EXPECT_TRUE(error == errc::store_unavailable || error == errc::outcome_unknown) << error;
    EXPECT_LT(watch.elapsed(), 1s + slack);
    EXPECT_TRUE(eventually([&] { return !is_in_master("stock"); }));
}

TEST_F(redis_replica_policy, a_waiter_gets_the_lock_once_the_replicas_are_back) {
    pause(2);
    auto waiting = in_background([this] {
        return mutex{client_, "stock", confirmed_by(replica_policy::majority())}.try_acquire_for(20s);
    });
    EXPECT_TRUE(eventually([&] { return client_.requests() >= 3; }));

    resume();

    const auto held = waiting.get();
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(servers_.master().cli({"HGETALL", "stock"}), held->owner().text() + "\n1");
}

TEST_F(redis_replica_policy, does_not_slow_down_locks_without_one) {
    pause(2);
    std::jthread waiting{[this](const std::stop_token& stop) {
        mutex stock{client_, "stock", confirmed_by(replica_policy::majority())};
        while (!stop.stop_requested()) {
            EXPECT_TRUE(error_of([&] { return stock.try_acquire(); }));
        }
    }};
    EXPECT_TRUE(eventually([&] { return is_in_master("stock"); }));
    mutex other{client_, "other", {.ttl = 30s}};
    std::chrono::nanoseconds longest{};
    for (int round = 0; round < 200; ++round) {
        const stopwatch watch;
        other.lock();
        other.unlock();
        longest = std::max(longest, watch.elapsed());
    }
    EXPECT_LT(longest, request_timeout / 4) << "it waited behind a WAIT";
}

TEST_F(redis_replica_policy, a_fair_lock_with_one_is_handed_over_without_waiting_for_the_next_look) {
    client other{address_of(servers_.master().port())};
    const auto terms = confirmed_by(replica_policy::majority());
    auto held = fair_mutex{client_, "stock", terms}.acquire();
    auto waiting = in_background([&] {
        return fair_mutex{other, "stock", terms}.try_acquire_for(20s);
    });
    auto& master = servers_.master();
    EXPECT_TRUE(eventually([&] {
        return master.ask({"LLEN", "redisson_lock_queue:{stock}"}).integer == 1 &&
               master.ask({"PUBSUB", "CHANNELS", "redisson_lock__channel:{stock}:*"}).items.size() == 1;
    }));
    const stopwatch watch;

    held.release();

    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), 900ms);
}

TEST_F(redis_replica_policy,
       a_request_that_waited_behind_another_leaves_nothing_when_its_caller_is_gone) {
    pause(2);
    auto& master = servers_.master();
    command_log log{master};
    auto first = in_background([this] {
        mutex other{client_, "other", confirmed_by(replica_policy::majority())};
        return error_of([&] { return other.try_acquire(); });
    });
    EXPECT_TRUE(eventually([&] {
        return master.cli({"CLIENT", "LIST"}).find("cmd=wait") != std::string::npos;
    }));
    // Sent, and read by the server only when the WAIT before it is over.
    mutex stock{client_, "stock", confirmed_by(replica_policy::majority())};
    EXPECT_EQ(error_of([&] { return stock.try_acquire_for(100ms); }), errc::outcome_unknown);

    EXPECT_EQ(first.get(), errc::store_unavailable);

    std::vector<std::string> said;
    EXPECT_TRUE(eventually([&] {
        for (auto& line : log.news()) {
            if (line.find(R"("EVAL" )") != std::string::npos) {
                said.push_back(std::move(line));
            }
        }
        return lines_with(said, R"("stock")") > 0;
    }));
    EXPECT_TRUE(eventually([&] { return !is_in_master("stock"); }));
}

TEST_F(redis_replica_policy, a_connection_that_ends_while_it_waits_for_replicas_leaves_nothing) {
    pause(2);
    auto asking = in_background([this] {
        mutex stock{client_, "stock", confirmed_by(replica_policy::majority())};
        return error_of([&] { return stock.try_acquire(); });
    });
    auto& master = servers_.master();
    EXPECT_TRUE(eventually([&] {
        return master.cli({"CLIENT", "LIST"}).find("cmd=wait") != std::string::npos;
    }));

    master.client_kill("normal");

    EXPECT_TRUE(asking.get());
    EXPECT_TRUE(eventually([&] { return !is_in_master("stock"); }));
}

}  // namespace

}  // namespace holdfast::testing
