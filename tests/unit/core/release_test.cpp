#include <gtest/gtest.h>
#include <core/release.hpp>
#include <core/script.hpp>

namespace {

using namespace script;
using holdfast::errc;
using holdfast::release_outcome;

constexpr double no_jitter = 0.0;
constexpr double most_jitter = 0.999999;

/// The store forgets it by itself after 30 s.
holdfast::core::release release_of_stock(std::chrono::milliseconds linger = {}) {
    return {{"stock", holdfast::claim_mode::exclusive, owner(1), linger}, at(30s)};
}

/// How long it backs off after one more request without an answer.
holdfast::clock::duration next_backoff(holdfast::core::release& way, double jitter) {
    (void)way.ask(at(0ms));
    EXPECT_FALSE(way.on_reply(not_released(errc::outcome_unknown), at(0ms), jitter));
    return way.wake_at() - at(0ms);
}

TEST(release, request_names_the_owner_and_the_linger) {
    auto way = release_of_stock(5min);

    const auto request = way.ask(at(0ms));

    EXPECT_EQ(request.name, "stock");
    EXPECT_EQ(request.owner, owner(1));
    EXPECT_EQ(request.linger, 5min);
}

TEST(release, nothing_wakes_it_while_a_request_is_under_way) {
    auto way = release_of_stock();
    (void)next_backoff(way, no_jitter);

    (void)way.ask(at(5ms));

    EXPECT_TRUE(way.asking());
    EXPECT_EQ(way.wake_at(), never);
}

TEST(release, confirmed_release_is_done) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));

    EXPECT_TRUE(way.on_reply(released(3), at(1ms), no_jitter));

    EXPECT_FALSE(way.asking());
    EXPECT_EQ(way.outcome(true), release_outcome::released);
    EXPECT_EQ(way.others_waiting(), 3U);
}

TEST(release, confirmed_release_of_what_was_lost_before_was_already_lost) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));
    (void)way.on_reply(released(), at(1ms), no_jitter);

    EXPECT_EQ(way.outcome(false), release_outcome::already_lost);
}

TEST(release, gone_at_the_first_request_was_already_lost) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));

    EXPECT_TRUE(way.on_reply(nothing_to_release(), at(1ms), no_jitter));

    EXPECT_EQ(way.outcome(true), release_outcome::already_lost);
}

TEST(release, gone_after_an_unanswered_request_is_released) {
    auto way = release_of_stock();
    (void)next_backoff(way, no_jitter);
    (void)way.ask(at(5ms));

    EXPECT_TRUE(way.on_reply(nothing_to_release(), at(6ms), no_jitter));

    EXPECT_EQ(way.outcome(true), release_outcome::released);
    EXPECT_FALSE(way.trouble());
}

TEST(release, gone_after_an_unanswered_request_is_no_release_of_what_was_lost_before) {
    auto way = release_of_stock();
    (void)next_backoff(way, no_jitter);
    (void)way.ask(at(5ms));
    (void)way.on_reply(nothing_to_release(), at(6ms), no_jitter);

    EXPECT_EQ(way.outcome(false), release_outcome::already_lost);
}

TEST(release, gone_after_requests_that_never_reached_the_store_was_already_lost) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));
    EXPECT_FALSE(way.on_reply(not_released(errc::store_unavailable), at(1ms), no_jitter));
    (void)way.ask(at(6ms));
    (void)way.on_reply(nothing_to_release(), at(7ms), no_jitter);

    EXPECT_EQ(way.outcome(true), release_outcome::already_lost);
}

TEST(release, outcome_is_unknown_while_nothing_was_answered) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));

    EXPECT_EQ(way.outcome(true), release_outcome::unknown);
}

TEST(release, outcome_for_a_lost_lease_is_known_without_any_answer) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));

    EXPECT_EQ(way.outcome(false), release_outcome::already_lost);
}

TEST(release, unreachable_store_is_asked_again) {
    auto way = release_of_stock();
    (void)way.ask(at(0ms));

    EXPECT_FALSE(way.on_reply(not_released(errc::store_unavailable), at(1ms), no_jitter));

    EXPECT_FALSE(way.asking());
    EXPECT_EQ(way.trouble().code, errc::store_unavailable);
    EXPECT_EQ(way.wake_at(), at(1ms + 2500us));
}

TEST(release, back_off_lasts_between_half_and_the_whole_of_its_pause) {
    auto calm = release_of_stock();
    auto nervous = release_of_stock();

    EXPECT_EQ(next_backoff(calm, no_jitter), 2500us);
    EXPECT_NEAR(static_cast<double>(next_backoff(nervous, most_jitter).count()), 5e6, 100);
}

TEST(release, back_off_doubles_and_is_capped) {
    auto way = release_of_stock();

    EXPECT_EQ(next_backoff(way, no_jitter), 2500us);
    EXPECT_EQ(next_backoff(way, no_jitter), 5ms);
    for (int failures = 0; failures < 100; ++failures) {
        ASSERT_LE(next_backoff(way, most_jitter), 320ms);
    }
    EXPECT_EQ(next_backoff(way, no_jitter), 160ms);
}

TEST(release, refusal_for_good_ends_it_with_its_reason) {
    for (const auto why : {errc::wrong_kind, errc::invalid_argument, errc::bad_configuration,
                           errc::forked, errc::shut_down}) {
        auto way = release_of_stock();
        (void)way.ask(at(0ms));

        EXPECT_TRUE(way.on_reply(not_released(why), at(1ms), no_jitter));

        EXPECT_EQ(way.outcome(true), release_outcome::unknown);
        EXPECT_EQ(way.trouble().code, why);
    }
}

TEST(release, refusal_that_may_be_lifted_is_tried_again) {
    for (const auto why : {errc::store_error, errc::unauthorised}) {
        auto way = release_of_stock();
        (void)way.ask(at(0ms));

        EXPECT_FALSE(way.on_reply(not_released(why), at(1ms), no_jitter));

        EXPECT_TRUE(way.refused());
        EXPECT_EQ(way.outcome(true), release_outcome::unknown);
        EXPECT_EQ(way.trouble().code, why);
        EXPECT_EQ(way.wake_at(), at(1ms + 2500us));
    }
}

TEST(release, store_that_cannot_be_reached_has_not_refused) {
    auto way = release_of_stock();
    (void)next_backoff(way, no_jitter);

    EXPECT_FALSE(way.refused());
}

TEST(release, asking_is_pointless_once_the_ttl_has_ended) {
    const auto way = release_of_stock();

    EXPECT_FALSE(way.over(at(30s - 1ns)));
    EXPECT_TRUE(way.over(at(30s)));
}

TEST(release, failure_after_the_ttl_ends_it) {
    auto way = release_of_stock();
    (void)way.ask(at(29s));

    EXPECT_TRUE(way.on_reply(not_released(errc::outcome_unknown), at(31s), no_jitter));
}

}  // namespace
