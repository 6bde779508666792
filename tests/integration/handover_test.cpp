#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class handover_test : public stage {
protected:
    /// Threads that wait for the lock, in this order.
    template <class Work>
    [[nodiscard]] std::vector<std::jthread> queue_up(std::size_t threads, Work work) {
        std::vector<std::jthread> crowd;
        for (std::size_t i = 0; i < threads; ++i) {
            crowd.emplace_back([work, i] { work(i); });
            EXPECT_TRUE(events_->wait_for(event_kind::contended, i + 1));
        }
        return crowd;
    }

    mutex stock_{client_, "stock"};
    mutex elsewhere_{other_, "stock"};
};

TEST_F(handover_test, threads_that_share_a_client_seldom_ask_the_store) {
    constexpr std::uint64_t threads = 16;
    constexpr std::uint64_t rounds = 200;
    std::uint64_t holds = 0;  // guarded by the lock itself
    auto held = stock_.acquire();
    auto crowd = queue_up(threads, [&](std::size_t) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            stock_.lock();
            ++holds;
            stock_.unlock();
        }
    });
    const auto before = requests();
    held.release();
    crowd.clear();
    EXPECT_EQ(holds, threads * rounds);
    EXPECT_LT(requests() - before, holds / 2);
}

TEST_F(handover_test, one_grant_serves_all_who_wait) {
    auto busy = elsewhere_.acquire();
    auto crowd = queue_up(16, [&](std::size_t) {
        stock_.lock();
        stock_.unlock();
    });
    const auto before = plan_->calls(call_kind::acquire);
    busy.release();
    crowd.clear();
    EXPECT_LE(plan_->calls(call_kind::acquire) - before, 4U);
}

TEST_F(handover_test, threads_are_served_in_the_order_they_came) {
    constexpr std::size_t threads = 16;
    std::vector<std::size_t> served;  // guarded by the lock itself
    auto held = stock_.acquire();
    auto crowd = queue_up(threads, [&](std::size_t number) {
        stock_.lock();
        served.push_back(number);
        stock_.unlock();
    });
    held.release();
    crowd.clear();
    std::vector<std::size_t> in_order(threads);
    std::iota(in_order.begin(), in_order.end(), std::size_t{0});
    EXPECT_EQ(served, in_order);
}

TEST_F(handover_test, a_thread_that_gives_up_is_passed_over) {
    std::vector<std::size_t> served;  // guarded by the lock itself
    std::stop_source stop;
    auto held = stock_.acquire();
    auto crowd = queue_up(3, [&](std::size_t number) {
        if (stock_.lock_unless_stopped(number == 1 ? stop.get_token() : std::stop_token{})) {
            served.push_back(number);
            stock_.unlock();
        }
    });
    stop.request_stop();
    ASSERT_TRUE(events_->wait_for(event_kind::not_acquired));
    held.release();
    crowd.clear();
    EXPECT_EQ(served, (std::vector<std::size_t>{0, 2}));
}

TEST_F(handover_test, another_client_is_not_starved) {
    std::atomic<bool> enough{false};
    std::vector<std::jthread> crowd;
    for (int i = 0; i < 8; ++i) {
        crowd.emplace_back([&] {
            while (!enough.load()) {
                stock_.lock();
                stock_.unlock();
            }
        });
    }
    ASSERT_TRUE(events_->wait_for(event_kind::handed_over));
    for (int round = 0; round < 5; ++round) {
        const stopwatch watch;
        const bool served = elsewhere_.try_lock_for(patience);
        EXPECT_TRUE(served);
        EXPECT_LT(watch.elapsed(), 3s);
        if (served) {
            elsewhere_.unlock();
        }
    }
    enough = true;
}

TEST_F(handover_test, threads_that_come_back_again_and_again_starve_nobody) {
    constexpr std::size_t threads = 8;
    constexpr std::uint64_t enough = 50;
    std::array<std::atomic<std::uint64_t>, threads> holds{};
    const auto served = [&] {
        return std::all_of(holds.begin(), holds.end(), [&](const auto& one) { return one >= enough; });
    };
    const stopwatch watch;
    std::vector<std::jthread> crowd;
    for (auto& mine : holds) {
        crowd.emplace_back([&] {
            while (!served() && watch.elapsed() < patience) {
                const std::scoped_lock guard{stock_};
                ++mine;
            }
        });
    }
    crowd.clear();
    EXPECT_TRUE(served());
}

TEST_F(handover_test, without_handover_every_hold_is_granted_by_the_store) {
    client fair{make_client({.handover_count = 0})};
    mutex stock{fair, "stock"};
    stock.lock();
    std::vector<std::jthread> crowd;
    for (std::size_t i = 0; i < 4; ++i) {
        crowd.emplace_back([&] {
            stock.lock();
            stock.unlock();
        });
        ASSERT_TRUE(events_->wait_for(event_kind::contended, i + 1));
    }
    stock.unlock();
    crowd.clear();
    fair.shutdown(5s);
    EXPECT_EQ(events_->count(event_kind::handed_over), 0U);
    EXPECT_EQ(events_->count(event_kind::acquired), 5U);
}

TEST_F(handover_test, a_thread_with_other_terms_is_not_given_somebody_elses_lease) {
    mutex longer{client_, "stock", {.ttl = 60s}};
    auto busy = elsewhere_.acquire();
    auto short_one = in_background([&] {
        stock_.lock();
        stock_.unlock();
    });
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 1));
    auto long_one = in_background([&] { return longer.acquire().remaining(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 2));
    busy.release();
    short_one.get();
    EXPECT_GT(long_one.get(), 40s);
}

TEST_F(handover_test, waiting_threads_get_the_lock_after_its_holder_lost_it) {
    auto held = stock_.acquire();
    auto waiter = in_background([&] { return stock_.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    revoke();
    const auto next = waiter.get();
    EXPECT_TRUE(next);
    EXPECT_GT(next.token(), held.token());
}

/// One thread of a client holds the lock, the next one waits, and is handed it.
class revoked_after_hand_over : public handover_test {
protected:
    void SetUp() override {
        auto busy = elsewhere_.acquire();
        mutex stock{unhurried_, "stock"};
        auto first = in_background([&] { return stock.acquire(); });
        ASSERT_TRUE(events_->wait_for(event_kind::contended, 1));
        auto second = in_background([&] { return stock.acquire(); });
        ASSERT_TRUE(events_->wait_for(event_kind::contended, 2));
        busy.release();
        auto held = first.get();
        former_ = held.token();
        held.release();
        present_ = second.get();
        ASSERT_TRUE(events_->wait_for(event_kind::handed_over));
        ASSERT_GT(present_.token(), former_);
    }

    client unhurried_{make_client({.handover_time = 1min})};
    fencing_token former_;
    lease present_;
};

TEST_F(revoked_after_hand_over, the_present_holder_can_be_named_by_its_own_token) {
    EXPECT_TRUE(other_.revoke("stock", present_.owner(), present_.token(), "for the test"));
    EXPECT_TRUE(eventually([&] { return present_.loss_reason() == errc::revoked; }));
    EXPECT_TRUE(becomes_free());
}

TEST_F(revoked_after_hand_over, what_inspect_shows_names_the_tenure) {
    const auto shown = holders().at(0);
    EXPECT_EQ(shown.token, former_);
    EXPECT_TRUE(other_.revoke("stock", shown.owner, shown.token, "for the test"));
    EXPECT_TRUE(eventually([&] { return present_.loss_reason() == errc::revoked; }));
}

TEST_F(revoked_after_hand_over, a_token_that_the_tenure_does_not_have_names_nobody) {
    const auto shown = holders().at(0);
    EXPECT_FALSE(other_.revoke("stock", shown.owner, {shown.token.value + shown.token_count}, "late"));
    EXPECT_FALSE(other_.revoke("stock", shown.owner, {shown.token.value - 1}, "late"));
    EXPECT_TRUE(present_);
}

}  // namespace

}  // namespace holdfast::testing
