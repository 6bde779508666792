#include <runtime/timer.hpp>

#include "timer.hpp"
#include "waiting_test.hpp"

namespace holdfast::detail {

namespace {

using model::expect_refuted;
using model::expect_sound;

constexpr std::chrono::milliseconds soon{10};
constexpr std::chrono::milliseconds later{20};

/// Two threads arm it, one after the other in either order, and it ends while it may be ticking.
void two_arm_and_it_ends() {
    model::begin_time();
    const auto ticks = std::make_shared<int>(0);
    {
        timer_thread timer{[=] { ++*ticks; }};
        threading::thread other{[&] { timer.arm(clock::now() + later); }};
        timer.arm(clock::now() + soon);
        other.join();
        model::rest();
    }
    model::require(*ticks <= 1, "it ticks once for all that it was armed for");
}

void it_ends_at_once() {
    model::begin_time();
    const timer_thread timer{[] {}};
}

/// What is due already is not forgotten when it is armed for something that is due as well.
void it_is_armed_while_it_is_due() {
    model::begin_time();
    threading::atomic<int> ticks{0};
    timer_thread timer{[&] { ticks.fetch_add(1); }};
    threading::thread other{[&] { timer.arm(clock::now()); }};
    timer.arm(clock::now() - soon);
    ticks.wait(0);
    other.join();
}

/// As a session does it: whoever has something sooner to do arms it, and the tick looks what is next.
void a_tick_arms_it_again() {
    model::begin_time();
    threading::mutex guard;
    threading::atomic<int> left{2};
    const auto armed_for = std::make_shared<clock::time_point>(clock::time_point::max());
    timer_thread* itself = nullptr;
    const auto arm = [&](clock::time_point at) {
        if (at < *armed_for) {
            *armed_for = at;
            itself->arm(at);
        }
    };
    timer_thread timer{[&] {
        const std::lock_guard lock{guard};
        *armed_for = clock::time_point::max();
        if (left.fetch_sub(1) > 1) {
            arm(clock::now() + soon);
        }
    }};
    itself = &timer;
    {
        const std::lock_guard lock{guard};
        arm(clock::now());
    }
    threading::thread other{[&] {
        const std::lock_guard lock{guard};
        arm(clock::now() + soon);
    }};
    other.join();
    for (int seen = left.load(); seen > 0; seen = left.load()) {
        left.wait(seen);
    }
}

void a_tick_ends_it() {
    model::begin_time();
    const auto timer = std::make_shared<std::unique_ptr<timer_thread>>();
    *timer = std::make_unique<timer_thread>([timer] { timer->reset(); });
    (*timer)->arm(clock::now());
}

TEST(model_timer, it_ticks_for_what_it_was_armed_for_last_and_ends) {
    expect_sound(two_arm_and_it_ends);
}

TEST(model_timer, a_tick_is_never_lost) {
    expect_sound(it_is_armed_while_it_is_due);
    expect_sound(a_tick_arms_it_again);
}

TEST(model_timer, it_ends_although_nothing_is_due) {
    EXPECT_EQ(model::explore(it_ends_at_once).problem, "");
}

TEST(model_timer, a_tick_may_end_it) {
    EXPECT_EQ(model::explore(a_tick_ends_it).problem, "");
}

TEST(model_timer, an_end_that_the_thread_does_not_hear_of_is_found) {
    expect_refuted("the end rings no bell", it_ends_at_once);
}

}  // namespace

}  // namespace holdfast::detail
