#include <gtest/gtest.h>
#include <core/joint_acquisition.hpp>
#include <core/script.hpp>

namespace {

using namespace script;
using holdfast::errc;
using holdfast::core::joint_acquisition;
using kind = joint_acquisition::move::kind;
using places = std::vector<std::size_t>;

/// Four locks; the store takes as many as there are in one request.
joint_acquisition way_to_four(const joint_acquisition::patience& how_long = {}) {
    return {4, how_long, [](std::size_t first) { return 4 - first; }};
}

joint_acquisition way_one_by_one(const joint_acquisition::patience& how_long = {}) {
    return {3, how_long, [](std::size_t) { return std::size_t{1}; }};
}

void expect(const joint_acquisition::move& move, kind what, const places& which) {
    EXPECT_EQ(move.what, what);
    EXPECT_EQ(move.which, which);
}

void take(joint_acquisition& way, const joint_acquisition::move& move) {
    for (const auto one : move.which) {
        way.on_taken(one);
    }
    way.on_answered({});
}

TEST(joint_order, goes_by_store_and_then_by_name_without_doubles) {
    EXPECT_EQ(holdfast::core::joint_order({{"s", "b"}, {"r", "z"}, {"s", "a"}, {"s", "b"}}),
              (places{1, 2, 0}));
}

TEST(joint_acquisition, takes_all_in_one_request_where_that_is_possible) {
    auto way = way_to_four();
    const auto move = way.next(at(0ms));
    expect(move, kind::ask_together, {0, 1, 2, 3});
    take(way, move);
    EXPECT_EQ(way.next(at(1ms)).what, kind::check);
}

TEST(joint_acquisition, waits_for_the_busy_one_holding_those_before_it_and_asks_for_the_rest_at_once) {
    auto way = way_to_four();
    (void)way.next(at(0ms));
    way.on_answered({errc::busy, {}}, 1);
    for (std::size_t one = 0; one < 2; ++one) {
        const auto move = way.next(at(1ms));
        expect(move, kind::wait_for, {one});
        take(way, move);
    }
    expect(way.next(at(2ms)), kind::ask_together, {2, 3});
}

TEST(joint_acquisition, a_store_that_does_not_answer_is_waited_for_by_one_who_may_wait) {
    auto way = way_to_four();
    (void)way.next(at(0ms));
    way.on_answered({errc::outcome_unknown, {}});
    expect(way.next(at(1ms)), kind::wait_for, {0});
}

TEST(joint_acquisition, one_who_does_not_wait_ends_at_the_first_that_is_busy) {
    auto way = way_to_four({.wait = false});
    (void)way.next(at(0ms));
    way.on_answered({errc::busy, {}}, 2);
    const auto move = way.next(at(1ms));
    EXPECT_EQ(move.what, kind::end);
    EXPECT_FALSE(move.reason);
}

TEST(joint_acquisition, one_who_gives_up_gives_back_first) {
    auto way = way_one_by_one();
    take(way, way.next(at(0ms)));
    take(way, way.next(at(1ms)));
    (void)way.next(at(2ms));
    way.cancel();
    way.on_answered({errc::cancelled, {}});
    expect(way.next(at(3ms)), kind::give_back, {0, 1});
    way.on_given_back();
    EXPECT_EQ(way.next(at(4ms)).what, kind::end);
}

TEST(joint_acquisition, giving_up_between_two_steps_asks_for_nothing_more) {
    auto way = way_one_by_one();
    take(way, way.next(at(0ms)));
    way.cancel();
    expect(way.next(at(1ms)), kind::give_back, {0});
}

TEST(joint_acquisition, giving_up_comes_too_late_once_all_are_taken) {
    auto way = way_to_four();
    take(way, way.next(at(0ms)));
    way.cancel();
    EXPECT_EQ(way.next(at(1ms)).what, kind::check);
}

TEST(joint_acquisition, nobody_begins_to_wait_for_the_next_when_the_time_is_up) {
    auto way = way_one_by_one({.wait = true, .deadline = at(10ms)});
    take(way, way.next(at(0ms)));
    expect(way.next(at(10ms)), kind::give_back, {0});
}

TEST(joint_acquisition, nobody_asks_the_next_store_when_the_time_is_up) {
    joint_acquisition way{
        4, {.wait = true, .deadline = at(10ms)}, [](std::size_t first) { return 2 - first % 2; }};
    take(way, way.next(at(0ms)));
    expect(way.next(at(10ms)), kind::give_back, {0, 1});
}

TEST(joint_acquisition, an_error_names_the_lock_and_comes_after_the_others_are_given_back) {
    auto way = way_one_by_one();
    take(way, way.next(at(0ms)));
    (void)way.next(at(1ms));
    way.on_answered({errc::unauthorised, {}});
    expect(way.next(at(2ms)), kind::give_back, {0});
    way.on_given_back();
    const auto move = way.next(at(3ms));
    expect(move, kind::end, {1});
    EXPECT_EQ(move.reason.code, errc::unauthorised);
}

TEST(joint_acquisition, what_one_request_brought_in_part_is_given_back_before_it_goes_on) {
    auto way = way_to_four();
    (void)way.next(at(0ms));
    way.on_taken(2);
    way.on_answered({errc::outcome_unknown, {}});
    expect(way.next(at(1ms)), kind::give_back, {2});
    way.on_given_back();
    expect(way.next(at(2ms)), kind::wait_for, {0});
}

TEST(joint_acquisition, all_are_taken_anew_when_one_was_over_before_the_last_was_there) {
    auto way = way_to_four();
    take(way, way.next(at(0ms)));
    (void)way.next(at(1ms));
    way.on_lost(1, {errc::lost, {}}, at(1ms));
    expect(way.next(at(2ms)), kind::give_back, {0, 1, 2, 3});
    way.on_given_back();
    expect(way.next(at(3ms)), kind::ask_together, {0, 1, 2, 3});
}

TEST(joint_acquisition, one_that_was_over_is_an_error_for_who_does_not_wait) {
    auto way = way_to_four({.wait = false});
    take(way, way.next(at(0ms)));
    (void)way.next(at(1ms));
    way.on_lost(1, {errc::lost, {}}, at(1ms));
    expect(way.next(at(2ms)), kind::give_back, {0, 1, 2, 3});
    way.on_given_back();
    EXPECT_EQ(way.next(at(3ms)).reason.code, errc::lost);
}

}  // namespace
