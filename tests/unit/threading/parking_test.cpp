#include <threading/parking.hpp>

#include <atomic>
#include <future>

#include <poll.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

namespace holdfast::threading {

namespace {

using namespace std::chrono_literals;

/// What a caller that waits in a session and whoever wakes it share.
struct waiting_call {
    parking_spot spot;
    std::atomic<bool> sent_for{false};
    /// On a cache line of its own, as in a session's call: it can be read while the write to the spot
    /// is still under way.
    alignas(64) std::atomic<bool> done{false};

    /// The loop of `session::wait`.
    void wait() {
        while (!done.load(std::memory_order_acquire)) {
            if (!sent_for.exchange(false, std::memory_order_acq_rel)) {
                spot.park();
            }
        }
    }
    void wake(std::atomic<bool>& flag) {
        flag.store(true, std::memory_order_release);
        spot.unpark();
    }
};

TEST(parking, two_wake_ups_in_a_row_are_both_noticed) {
    std::vector<waiting_call> calls(200'000);
    std::atomic<std::size_t> answered{0};
    std::jthread waker{[&] {
        const auto ends = std::chrono::steady_clock::now() + 1500ms;
        bool over = false;
        for (std::size_t round = 0; round < calls.size(); ++round) {
            auto& call = calls[round];
            if (round % 1024 == 0) {
                over = std::chrono::steady_clock::now() >= ends;
            }
            if (!over) {
                while (answered < round) {
                }
                call.wake(call.sent_for);
                // So that the second comes at every moment of what the waiter does about the first.
                for (volatile std::size_t pause = round % 512; pause > 0;) {
                    pause = pause - 1;
                }
            }
            call.wake(call.done);
        }
    }};
    auto waiter = std::async(std::launch::async, [&] {
        for (auto& each : calls) {
            each.wait();
            ++answered;
        }
    });
    if (waiter.wait_for(30s) == std::future_status::timeout) {
        ADD_FAILURE() << "asleep for ever in round " << answered;
        for (auto& each : calls) {  // so that the test ends
            each.wake(each.done);
        }
    }
}

TEST(parking, a_wake_up_that_comes_first_is_kept) {
    parking_spot spot;
    spot.unpark();
    EXPECT_TRUE(spot.unparked());
    spot.park();
    EXPECT_FALSE(spot.unparked());
}

TEST(parking, a_bell_that_rings_for_somebody_who_left_does_no_harm) {
    const threading::bell bell;
    bell.ring();
    parking_spot spot;
    EXPECT_FALSE(spot.park_at(-1, bell));
    EXPECT_FALSE(spot.unparked());
    spot.unpark();
    EXPECT_FALSE(spot.park_at(-1, bell));
    EXPECT_TRUE(spot.unparked());
}

TEST(parking, a_bell_without_a_descriptor_does_not_let_its_thread_sleep_for_ever) {
    ::rlimit descriptors{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    auto none = descriptors;
    none.rlim_cur = 0;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const threading::bell deaf;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    ASSERT_FALSE(deaf);

    deaf.ring();

    EXPECT_EQ(deaf.sleep(-1, POLLIN, -1), 0);
}

}  // namespace

}  // namespace holdfast::threading
