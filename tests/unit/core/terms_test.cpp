#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/script.hpp>
#include <core/terms.hpp>

namespace {

using namespace script;
using holdfast::errc;
using holdfast::failure;
using holdfast::lease_options;
using holdfast::core::make_terms;
using holdfast::core::terms;
using testing::HasSubstr;

holdfast::engines::guarantees store_of_20ms_to_1h() {
    holdfast::engines::guarantees promises;
    promises.minimum_ttl = 20ms;
    promises.maximum_ttl = 1h;
    return promises;
}

terms accepted(const lease_options& options) {
    terms result;
    const auto why = make_terms(options, store_of_20ms_to_1h(), result);
    EXPECT_FALSE(why) << why.detail;
    return result;
}

failure refused(const lease_options& options) {
    terms result;
    auto why = make_terms(options, store_of_20ms_to_1h(), result);
    EXPECT_EQ(why.code, errc::invalid_argument);
    EXPECT_EQ(result.ttl, 0ms) << "refused options must leave no trace";
    return why;
}

TEST(terms, defaults_are_filled_in) {
    const auto how = accepted({});

    EXPECT_EQ(how.ttl, 30s);
    EXPECT_EQ(how.renewal, holdfast::renewal_mode::automatic);
    EXPECT_EQ(how.margin, 500ms);
    EXPECT_EQ(how.jeopardy, 10s);
    EXPECT_FALSE(how.max_hold);
    EXPECT_EQ(how.release_timeout, 2s);
    EXPECT_EQ(how.shortest_ttl, 20ms);
}

TEST(terms, default_margin_is_a_twentieth_of_the_ttl) {
    EXPECT_EQ(accepted({.ttl = 2s}).margin, 100ms);
}

TEST(terms, default_margin_is_at_least_five_milliseconds) {
    EXPECT_EQ(accepted({.ttl = 20ms}).margin, 5ms);
}

TEST(terms, default_margin_is_half_a_second_up_to_a_quarter_of_an_hour) {
    EXPECT_EQ(accepted({.ttl = 15min}).margin, 500ms);
}

TEST(terms, default_margin_of_a_long_ttl_is_what_clocks_may_run_apart) {
    EXPECT_EQ(accepted({.ttl = 1h}).margin, 1800ms);
    EXPECT_EQ(accepted({.ttl = 1h - 1ms}).margin, 1800ms) << "rounded up";
}

TEST(terms, options_given_are_kept) {
    const auto how = accepted({.ttl = 10s,
                               .renewal = holdfast::renewal_mode::none,
                               .max_hold = 20s,
                               .safety_margin = 1s,
                               .jeopardy = 3s,
                               .release_timeout = 4s});

    EXPECT_EQ(how.ttl, 10s);
    EXPECT_EQ(how.renewal, holdfast::renewal_mode::none);
    EXPECT_EQ(how.max_hold, 20s);
    EXPECT_EQ(how.margin, 1s);
    EXPECT_EQ(how.jeopardy, 3s);
    EXPECT_EQ(how.release_timeout, 4s);
}

TEST(terms, ttl_must_be_one_that_the_store_takes) {
    EXPECT_EQ(accepted({.ttl = 20ms}).ttl, 20ms);
    EXPECT_EQ(accepted({.ttl = 1h}).ttl, 1h);
    EXPECT_THAT(refused({.ttl = 19ms}).detail, HasSubstr("20 ms"));
    EXPECT_THAT(refused({.ttl = 1h + 1ms}).detail, HasSubstr("20 ms to 3600 s"));
    (void)refused({.ttl = -1s});
}

TEST(terms, limits_are_told_in_units_that_people_read) {
    holdfast::engines::guarantees promises;
    promises.minimum_ttl = 20ms;
    terms result;
    lease_options options;
    options.ttl = 400 * 24h;
    EXPECT_EQ(make_terms(options, promises, result).detail,
              "a ttl of 400 days is out of range; this store takes 20 ms to 366 days");
    options.ttl = 30s;
    options.max_hold = 400 * 24h;
    EXPECT_EQ(make_terms(options, promises, result).detail,
              "a max_hold of 400 days is out of range; it may be 1 ms to 366 days");
}

TEST(terms, margin_is_at_most_half_of_the_ttl) {
    EXPECT_EQ(accepted({.ttl = 1s, .safety_margin = 500ms}).margin, 500ms);
    EXPECT_EQ(accepted({.ttl = 1s, .safety_margin = 0ms}).margin, 0ms);
    EXPECT_THAT(refused({.ttl = 1s, .safety_margin = 501ms}).detail, HasSubstr("safety margin"));
    (void)refused({.ttl = 1s, .safety_margin = -1ms});
}

TEST(terms, jeopardy_is_at_most_the_ttl) {
    EXPECT_EQ(accepted({.ttl = 1s, .jeopardy = 1s}).jeopardy, 1s);
    EXPECT_EQ(accepted({.ttl = 1s, .jeopardy = 0ms}).jeopardy, 0ms);
    EXPECT_THAT(refused({.ttl = 1s, .jeopardy = 1001ms}).detail, HasSubstr("jeopardy"));
    (void)refused({.ttl = 1s, .jeopardy = -1ms});
}

TEST(terms, max_hold_is_positive_and_not_absurd) {
    EXPECT_EQ(accepted({.max_hold = 1ms}).max_hold, 1ms);
    EXPECT_THAT(refused({.max_hold = 0ms}).detail, HasSubstr("max_hold"));
    (void)refused({.max_hold = -1s});
    (void)refused({.max_hold = 2h});
}

TEST(terms, renewal_is_one_of_the_modes_that_there_are) {
    EXPECT_THAT(refused({.renewal = static_cast<holdfast::renewal_mode>(77)}).detail,
                HasSubstr("renewal"));
}

TEST(terms, release_timeout_is_not_negative_and_not_absurd) {
    EXPECT_EQ(accepted({.release_timeout = 0ms}).release_timeout, 0ms);
    EXPECT_THAT(refused({.release_timeout = -1ms}).detail, HasSubstr("release timeout"));
    (void)refused({.release_timeout = 2h});
}

TEST(terms, leases_are_interchangeable_when_the_store_cannot_tell_them_apart) {
    auto other = lease_terms();
    other.max_hold = 5s;
    other.jeopardy = 1s;
    other.release_timeout = 9s;

    EXPECT_TRUE(lease_terms().interchangeable(other));
}

TEST(terms, leases_of_another_ttl_renewal_or_margin_are_not_interchangeable) {
    auto other_margin = lease_terms();
    other_margin.margin += 1ms;

    EXPECT_FALSE(lease_terms().interchangeable(lease_terms(31s)));
    EXPECT_FALSE(lease_terms().interchangeable(fixed_terms()));
    EXPECT_FALSE(lease_terms().interchangeable(other_margin));
}

TEST(terms, the_drift_between_a_stores_clocks_counts_on_top_of_the_margin) {
    auto promises = store_of_20ms_to_1h();
    promises.drift = {.fixed = 2ms, .per_thousand = 10};
    terms how;
    EXPECT_FALSE(make_terms({.ttl = 10s, .safety_margin = 100ms}, promises, how));
    EXPECT_EQ(how.margin, 100ms + 100ms + 2ms);
    EXPECT_EQ(make_terms({.ttl = 20ms, .safety_margin = 9ms}, promises, how).code,
              errc::invalid_argument);
}

}  // namespace
