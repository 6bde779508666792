#include <gtest/gtest.h>
#include <core/acquisition.hpp>
#include <core/script.hpp>

namespace {

using namespace script;
using holdfast::errc;
using holdfast::core::acquisition;
using holdfast::core::contention_settings;
using verdict = acquisition::verdict;

constexpr double no_jitter = 0.0;
constexpr double most_jitter = 0.999999;

acquisition way_to_stock(const contention_settings& settings = {}) {
    return {
        {"stock", holdfast::claim_mode::exclusive, 1, 0, owner(1), 30s, 1}, lease_terms(), settings};
}

/// Has asked at the start and been told "busy" at once.
acquisition waiting_for_stock(const contention_settings& settings = {}) {
    auto way = way_to_stock(settings);
    (void)way.ask(at(0ms), 1);
    EXPECT_EQ(way.on_reply(busy(), at(0ms), no_jitter), verdict::nothing);
    return way;
}

/// How long it backs off after one more failed request.
holdfast::clock::duration next_backoff(acquisition& way, double jitter) {
    (void)way.ask(at(0ms), 1);
    EXPECT_EQ(way.on_reply(not_acquired(errc::store_unavailable), at(0ms), jitter), verdict::nothing);
    return way.wake_at() - at(0ms);
}

TEST(acquisition, request_carries_the_claim_and_the_wanted_tokens) {
    auto way = way_to_stock();

    const auto request = way.ask(at(0ms), 5);

    EXPECT_EQ(request.name, "stock");
    EXPECT_EQ(request.owner, owner(1));
    EXPECT_EQ(request.ttl, 30s);
    EXPECT_EQ(request.token_count, 5U);
}

TEST(acquisition, nothing_wakes_it_while_a_request_is_under_way) {
    auto way = waiting_for_stock();

    (void)way.ask(at(1s), 1);

    EXPECT_TRUE(way.asking());
    EXPECT_EQ(way.wake_at(), never);
}

TEST(acquisition, validity_is_counted_from_the_request_not_from_the_answer) {
    auto way = way_to_stock();
    (void)way.ask(at(100ms), 1);

    EXPECT_EQ(way.on_reply(granted(7), at(20s), no_jitter), verdict::granted);

    EXPECT_EQ(way.valid_until(), at(100ms + 30s - 500ms));
    EXPECT_EQ(way.sent_at(), at(100ms));
}

TEST(acquisition, validity_follows_the_ttl_that_the_store_granted) {
    auto way = way_to_stock();
    (void)way.ask(at(100ms), 1);
    auto shorter = granted(7);
    shorter.ttl = 10s;

    EXPECT_EQ(way.on_reply(shorter, at(1s), no_jitter), verdict::granted);
    EXPECT_EQ(way.ttl(), 10s);
    EXPECT_EQ(way.valid_until(), at(100ms + 10s - lease_terms().margin));
}

TEST(acquisition, longer_ttl_than_was_asked_for_is_not_trusted) {
    auto way = way_to_stock();
    (void)way.ask(at(100ms), 1);
    auto longer = granted(7);
    longer.ttl = 60s;

    EXPECT_EQ(way.on_reply(longer, at(1s), no_jitter), verdict::granted);
    EXPECT_EQ(way.ttl(), 30s);
}

TEST(acquisition, grant_is_good_until_the_last_moment_before_its_deadline) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(granted(7), at(29'500ms - 1ns), no_jitter), verdict::granted);
}

TEST(acquisition, grant_that_comes_at_its_deadline_has_expired) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(granted(7), at(29'500ms), no_jitter), verdict::expired_grant);
}

TEST(acquisition, restart_asks_as_another_owner) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    EXPECT_EQ(way.on_reply(granted(7), at(30s), no_jitter), verdict::expired_grant);

    way.restart(owner(2));

    EXPECT_EQ(way.ask(at(30s), 1).owner, owner(2));
    EXPECT_EQ(way.owner(), owner(2));
}

TEST(acquisition, restart_forgets_that_the_former_owner_may_have_been_granted_it) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter);

    way.restart(owner(2));

    EXPECT_FALSE(way.may_be_granted());
    EXPECT_EQ(way.ask(at(3s), 9).token_count, 9U);
}

TEST(acquisition, waiter_asks_again_just_after_the_holders_ttl) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(busy(40ms), at(10ms), no_jitter), verdict::nothing);

    EXPECT_EQ(way.wake_at(), at(10ms + 41ms));
    EXPECT_TRUE(way.contended());
    EXPECT_FALSE(way.asking());
}

TEST(acquisition, waiter_that_does_not_know_the_ttl_asks_again_after_the_recheck_cap) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(busy(), at(10ms), no_jitter), verdict::nothing);

    EXPECT_EQ(way.wake_at(), at(10ms + 1s));
}

TEST(acquisition, long_ttl_of_the_holder_does_not_stretch_the_recheck_cap) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(busy(1h), at(0ms), no_jitter), verdict::nothing);

    EXPECT_EQ(way.wake_at(), at(1s));
}

TEST(acquisition, jitter_makes_a_pause_up_to_a_quarter_longer) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(busy(), at(0ms), most_jitter), verdict::nothing);

    EXPECT_GT(way.wake_at(), at(1249ms));
    EXPECT_LE(way.wake_at(), at(1250ms));
}

TEST(acquisition, pause_is_never_shorter_than_the_shortest) {
    auto way = way_to_stock({.shortest_pause = 20ms});
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(busy(3ms), at(0ms), no_jitter), verdict::nothing);

    EXPECT_EQ(way.wake_at(), at(20ms));
}

TEST(acquisition, waiter_asks_when_its_pause_is_over) {
    auto way = waiting_for_stock();

    EXPECT_EQ(way.on_wake(), verdict::ask);
}

TEST(acquisition, hint_ends_the_pause_of_a_waiter) {
    auto way = waiting_for_stock();

    EXPECT_EQ(way.on_hint(), verdict::ask);
}

TEST(acquisition, hint_while_asking_asks_again_after_busy) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    EXPECT_EQ(way.on_hint(), verdict::nothing);

    EXPECT_EQ(way.on_reply(busy(), at(1ms), no_jitter), verdict::ask);
}

TEST(acquisition, hint_while_asking_counts_once) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_hint();
    (void)way.on_reply(busy(), at(1ms), no_jitter);
    (void)way.ask(at(1ms), 1);

    EXPECT_EQ(way.on_reply(busy(), at(2ms), no_jitter), verdict::nothing);
}

TEST(acquisition, hint_does_not_shorten_a_back_off) {
    auto way = way_to_stock();
    (void)next_backoff(way, no_jitter);

    EXPECT_EQ(way.on_hint(), verdict::nothing);
}

TEST(acquisition, hint_after_the_grant_means_nothing) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(granted(7), at(1ms), no_jitter);

    EXPECT_EQ(way.on_hint(), verdict::nothing);
}

TEST(acquisition, back_off_lasts_between_half_and_the_whole_of_its_pause) {
    auto calm = way_to_stock({.shortest_pause = 10ms});
    auto nervous = way_to_stock({.shortest_pause = 10ms});

    EXPECT_EQ(next_backoff(calm, no_jitter), 5ms);
    EXPECT_NEAR(static_cast<double>(next_backoff(nervous, most_jitter).count()), 10e6, 100);
}

TEST(acquisition, back_off_doubles_with_every_failure) {
    auto way = way_to_stock({.shortest_pause = 10ms});

    EXPECT_EQ(next_backoff(way, no_jitter), 5ms);
    EXPECT_EQ(next_backoff(way, no_jitter), 10ms);
    EXPECT_EQ(next_backoff(way, no_jitter), 20ms);
}

TEST(acquisition, back_off_is_capped_however_long_the_outage) {
    auto way = way_to_stock();

    for (int failures = 0; failures < 100; ++failures) {
        ASSERT_LE(next_backoff(way, most_jitter), 500ms);
    }
    EXPECT_EQ(next_backoff(way, no_jitter), 250ms);
}

TEST(acquisition, back_off_starts_small_again_after_an_answer) {
    auto way = way_to_stock({.shortest_pause = 10ms});
    (void)next_backoff(way, no_jitter);
    (void)next_backoff(way, no_jitter);
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(busy(), at(0ms), no_jitter);

    EXPECT_EQ(next_backoff(way, no_jitter), 5ms);
}

TEST(acquisition, asks_again_when_the_back_off_is_over) {
    auto way = way_to_stock();
    (void)next_backoff(way, no_jitter);

    EXPECT_EQ(way.on_wake(), verdict::ask);
}

TEST(acquisition, unknown_outcome_asks_again_for_the_same_owner_and_tokens) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 3);
    EXPECT_EQ(way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter), verdict::nothing);
    EXPECT_EQ(way.on_wake(), verdict::ask);

    const auto again = way.ask(at(3s), 9);

    EXPECT_TRUE(way.may_be_granted());
    EXPECT_EQ(again.owner, owner(1));
    EXPECT_EQ(again.token_count, 3U);
}

TEST(acquisition, unreachable_store_leaves_the_token_count_open) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 3);
    (void)way.on_reply(not_acquired(errc::store_unavailable), at(2s), no_jitter);

    EXPECT_FALSE(way.may_be_granted());
    EXPECT_EQ(way.ask(at(3s), 9).token_count, 9U);
}

TEST(acquisition, unreachable_store_after_an_unknown_outcome_decides_nothing) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter);
    (void)way.ask(at(3s), 1);
    (void)way.on_reply(not_acquired(errc::store_unavailable), at(4s), no_jitter);

    EXPECT_TRUE(way.may_be_granted());
}

TEST(acquisition, busy_settles_an_unknown_outcome) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter);
    (void)way.ask(at(3s), 1);
    (void)way.on_reply(busy(), at(3s), no_jitter);

    EXPECT_FALSE(way.may_be_granted());
}

TEST(acquisition, grant_after_an_unknown_outcome_is_valid_from_the_last_request) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter);
    (void)way.ask(at(3s), 1);

    EXPECT_EQ(way.on_reply(granted(7), at(4s), no_jitter), verdict::granted);
    EXPECT_EQ(way.valid_until(), at(3s + 29'500ms));
}

TEST(acquisition, refusal_fails_with_its_reason) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_reply(not_acquired(errc::unauthorised), at(1ms), no_jitter), verdict::failed);

    EXPECT_EQ(way.trouble().code, errc::unauthorised);
    EXPECT_FALSE(way.asking());
    EXPECT_EQ(way.on_hint(), verdict::nothing);
    EXPECT_EQ(way.on_wake(), verdict::nothing);
}

TEST(acquisition, refusal_after_an_unknown_outcome_leaves_it_unknown) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(2s), no_jitter);
    (void)way.ask(at(3s), 1);
    (void)way.on_reply(not_acquired(errc::unauthorised), at(3s), no_jitter);

    EXPECT_TRUE(way.may_be_granted());
}

TEST(acquisition, trouble_begins_with_the_first_request_that_failed) {
    auto way = way_to_stock();
    (void)way.ask(at(1s), 1);
    (void)way.on_reply(not_acquired(errc::outcome_unknown), at(3s), no_jitter);
    (void)way.ask(at(4s), 1);
    (void)way.on_reply(not_acquired(errc::store_unavailable), at(5s), no_jitter);

    EXPECT_EQ(way.trouble().code, errc::store_unavailable);
    EXPECT_EQ(way.trouble_since(), at(1s));
}

TEST(acquisition, answer_ends_the_trouble) {
    auto way = way_to_stock();
    (void)next_backoff(way, no_jitter);
    (void)way.ask(at(4s), 1);
    (void)way.on_reply(busy(), at(5s), no_jitter);

    EXPECT_FALSE(way.trouble());
}

TEST(acquisition, holding_back_ignores_hints_until_its_time_has_come) {
    auto way = way_to_stock();

    way.hold_back(at(2ms));

    EXPECT_EQ(way.on_hint(), verdict::nothing);
    EXPECT_EQ(way.wake_at(), at(2ms));
    EXPECT_EQ(way.on_wake(), verdict::ask);
}

TEST(acquisition, holding_back_counts_as_contended) {
    auto way = way_to_stock();

    way.hold_back(at(2ms));

    EXPECT_TRUE(way.contended());
}

TEST(acquisition, wake_while_a_request_is_under_way_does_nothing) {
    auto way = way_to_stock();
    (void)way.ask(at(0ms), 1);

    EXPECT_EQ(way.on_wake(), verdict::nothing);
    EXPECT_TRUE(way.asking());
}

}  // namespace
