#include <algorithm>
#include <future>
#include <optional>
#include <stop_token>
#include <string>

#include <integration/redis/redis_stage.hpp>

/// A thread that waits for a lock hears by itself what the server says. Whatever else may end its
/// wait still does, and nobody who waits beside it is forgotten.
namespace holdfast::testing {

namespace {

/// Well before a waiter would ask again by itself.
constexpr std::chrono::milliseconds promptly{400};
/// One of so many must be prompt: the machine may be busy.
constexpr int attempts = 5;

class redis_attending : public redis_stage {
protected:
    using answer = std::future<std::optional<lease>>;

    /// Comes back when the other waits, and the server tells it of the lock.
    template <class Mutex = mutex>
    [[nodiscard]] answer wait_for(const std::string& name, std::stop_token stop = {},
                                  std::chrono::milliseconds limit = patience) {
        const auto before = waiting_events_->count(event_kind::contended);
        auto waiter = std::async(std::launch::async, [this, name, limit, stop = std::move(stop)] {
            return Mutex{waiting_, name, {.ttl = 30s}}.try_acquire_for(limit, stop);
        });
        EXPECT_TRUE(waiting_events_->wait_for(event_kind::contended, before + 1));
        EXPECT_TRUE(eventually([&] {
            const auto channels =
                server_.ask({"PUBSUB", "CHANNELS", "redisson_lock__channel:{" + name + "}*"});
            return !channels.items.empty();
        }));
        return waiter;
    }
    [[nodiscard]] lease hold(const std::string& name) {
        return mutex{holder_, name, {.ttl = 30s}}.acquire();
    }
    template <class Deed>
    [[nodiscard]] static clock::duration answered_after(answer& waiter, const Deed& bring_about) {
        const auto start = clock::now();
        bring_about();
        EXPECT_EQ(waiter.wait_for(patience), std::future_status::ready);
        return clock::now() - start;
    }

    /// The shortest of several attempts: a busy machine makes any one of them long.
    template <class Attempt>
    [[nodiscard]] static clock::duration quickest(const Attempt& attempt) {
        clock::duration shortest{patience};
        for (int number = 0; number < attempts && shortest >= promptly; ++number) {
            shortest = std::min<clock::duration>(shortest, attempt());
        }
        return shortest;
    }

    const std::shared_ptr<recorder> waiting_events_{std::make_shared<recorder>()};
    client holder_{make_client()};
    client waiting_{make_client({.events = waiting_events_})};
};

TEST_F(redis_attending, a_release_elsewhere_is_heard_at_once) {
    EXPECT_LT(quickest([&] {
                  auto held = hold("stock");
                  auto waiter = wait_for("stock");
                  const auto took = answered_after(waiter, [&] { held.release(); });
                  EXPECT_TRUE(waiter.get());
                  return took;
              }),
              promptly);
}

TEST_F(redis_attending, a_turn_in_line_is_heard_at_once) {
    EXPECT_LT(quickest([&] {
                  auto held = fair_mutex{holder_, "stock", {.ttl = 30s}}.acquire();
                  auto waiter = wait_for<fair_mutex>("stock");
                  const auto took = answered_after(waiter, [&] { held.release(); });
                  EXPECT_TRUE(waiter.get());
                  return took;
              }),
              promptly);
}

// A thread that attends sleeps in poll(), where the server's own words wake it once a second. What ends
// its wait must not leave it to them.

TEST_F(redis_attending, the_deadline_ends_the_wait) {
    const auto held = hold("stock");
    EXPECT_LT(quickest([&] {
                  const auto start = clock::now();
                  auto waiter = wait_for("stock", {}, 200ms);
                  EXPECT_FALSE(waiter.get());
                  const auto late = clock::now() - start - 200ms;
                  EXPECT_GE(late, 0ms);
                  return late;
              }),
              promptly);
}

TEST_F(redis_attending, whoever_is_told_to_stop_stops) {
    const auto held = hold("stock");
    EXPECT_LT(quickest([&] {
                  std::stop_source stop;
                  auto waiter = wait_for("stock", stop.get_token());
                  const auto took = answered_after(waiter, [&] { stop.request_stop(); });
                  EXPECT_FALSE(waiter.get());
                  return took;
              }),
              promptly);
}

TEST_F(redis_attending, a_client_that_shuts_down_ends_the_wait) {
    const auto held = hold("stock");
    auto waiter = wait_for("stock");
    EXPECT_LT(answered_after(waiter, [&] { static_cast<void>(waiting_.shutdown(1s)); }), recheck_bound);
    EXPECT_THROW(static_cast<void>(waiter.get()), std::system_error);
}

TEST_F(redis_attending, whoever_waits_beside_it_is_woken_as_promptly_when_it_has_left) {
    EXPECT_LT(quickest([&] {
                  auto first = hold("first");
                  auto second = hold("second");
                  auto attends = wait_for("first");
                  auto sleeps = wait_for("second");
                  static_cast<void>(answered_after(attends, [&] { first.release(); }));
                  const auto took = answered_after(sleeps, [&] { second.release(); });
                  EXPECT_TRUE(attends.get());
                  EXPECT_TRUE(sleeps.get());
                  return took;
              }),
              promptly);
}

TEST_F(redis_attending, a_connection_lost_meanwhile_delays_nobody_for_long) {
    auto held = hold("stock");
    auto waiter = wait_for("stock");
    static_cast<void>(count({"CLIENT", "KILL", "TYPE", "pubsub"}));
    EXPECT_LT(answered_after(waiter, [&] { held.release(); }), recheck_bound);
    EXPECT_TRUE(waiter.get());
}

}  // namespace

}  // namespace holdfast::testing
