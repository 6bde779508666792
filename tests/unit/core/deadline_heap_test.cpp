#include <gtest/gtest.h>
#include <core/deadline_heap.hpp>
#include <core/script.hpp>
#include <deque>
#include <random>
#include <set>
#include <utility>

namespace {

using namespace script;
using holdfast::core::deadline_heap;
using holdfast::core::timer;

TEST(deadline_heap, empty_heap_is_never_due) {
    deadline_heap heap;

    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.next(), never);
    EXPECT_EQ(heap.pop_due(never), nullptr);
}

TEST(deadline_heap, earliest_timer_comes_first) {
    deadline_heap heap;
    timer late{1};
    timer early{2};
    heap.arm(late, at(2s));
    heap.arm(early, at(1s));

    EXPECT_EQ(heap.next(), at(1s));
    EXPECT_EQ(heap.pop_due(at(3s)), &early);
    EXPECT_EQ(heap.pop_due(at(3s)), &late);
}

TEST(deadline_heap, timer_is_due_at_its_moment_and_not_before) {
    deadline_heap heap;
    timer one{1};
    heap.arm(one, at(1s));

    EXPECT_EQ(heap.pop_due(at(1s - 1ns)), nullptr);
    EXPECT_EQ(heap.pop_due(at(1s)), &one);
}

TEST(deadline_heap, timer_that_rang_is_no_longer_armed) {
    deadline_heap heap;
    timer one{1};
    heap.arm(one, at(1s));
    (void)heap.pop_due(at(1s));

    EXPECT_EQ(one.position, timer::unarmed);
    EXPECT_TRUE(heap.empty());
}

TEST(deadline_heap, timers_of_the_same_moment_ring_in_the_order_of_their_ids) {
    deadline_heap heap;
    timer third{3};
    timer first{1};
    timer second{2};
    heap.arm(third, at(1s));
    heap.arm(first, at(1s));
    heap.arm(second, at(1s));

    EXPECT_EQ(heap.pop_due(at(1s)), &first);
    EXPECT_EQ(heap.pop_due(at(1s)), &second);
    EXPECT_EQ(heap.pop_due(at(1s)), &third);
}

TEST(deadline_heap, arming_again_moves_a_timer_in_either_direction) {
    deadline_heap heap;
    timer one{1};
    timer other{2};
    heap.arm(one, at(1s));
    heap.arm(other, at(2s));

    heap.arm(one, at(3s));
    EXPECT_EQ(heap.next(), at(2s));

    heap.arm(one, at(1s));
    EXPECT_EQ(heap.next(), at(1s));
    EXPECT_EQ(heap.size(), 2U);
}

TEST(deadline_heap, disarmed_timer_never_rings) {
    deadline_heap heap;
    timer one{1};
    timer other{2};
    heap.arm(one, at(1s));
    heap.arm(other, at(2s));

    heap.disarm(one);

    EXPECT_EQ(heap.pop_due(at(3s)), &other);
    EXPECT_TRUE(heap.empty());
}

TEST(deadline_heap, disarming_twice_does_no_harm) {
    deadline_heap heap;
    timer one{1};
    timer other{2};
    heap.arm(one, at(1s));
    heap.arm(other, at(2s));

    heap.disarm(one);
    heap.disarm(one);

    EXPECT_EQ(heap.size(), 1U);
}

TEST(deadline_heap, million_locks_taken_and_released_leave_it_empty) {
    deadline_heap heap;
    timer one{1};

    for (int i = 0; i < 1'000'000; ++i) {
        heap.arm(one, at(std::chrono::milliseconds{i}));
        heap.arm(one, at(std::chrono::milliseconds{i + 10}));
        ASSERT_EQ(heap.size(), 1U);
        heap.disarm(one);
    }

    EXPECT_TRUE(heap.empty());
}

TEST(deadline_heap, agrees_with_an_ordered_set_over_random_operations) {
    std::mt19937_64 random{20240607};
    deadline_heap heap;
    std::deque<timer> timers;
    std::set<std::pair<holdfast::clock::time_point, std::uint64_t>> expected;
    for (std::uint64_t id = 0; id < 64; ++id) {
        timers.emplace_back(id);
    }
    for (int i = 0; i < 100'000; ++i) {
        auto& one = timers[random() % timers.size()];
        const auto when = at(std::chrono::milliseconds{random() % 100});
        expected.erase({one.at, one.id});
        heap.disarm(one);
        if (random() % 3 != 0) {
            heap.arm(one, at(std::chrono::milliseconds{random() % 100}));
            heap.arm(one, when);
            expected.emplace(when, one.id);
        }
        if (random() % 4 == 0 && !expected.empty()) {
            ASSERT_EQ(heap.next(), expected.begin()->first);
            ASSERT_EQ(heap.pop_due(never)->id, expected.begin()->second);
            expected.erase(expected.begin());
        }
        ASSERT_EQ(heap.size(), expected.size());
    }
}

}  // namespace
