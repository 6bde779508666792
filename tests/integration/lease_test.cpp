#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class lease_test : public stage {
protected:
    mutex stock_{client_, "stock"};
    mutex elsewhere_{other_, "stock"};
};

TEST_F(lease_test, an_empty_lease_holds_nothing) {
    lease empty;
    EXPECT_FALSE(empty);
    EXPECT_TRUE(empty.name().empty());
    EXPECT_EQ(empty.token(), fencing_token{});
    EXPECT_EQ(empty.owner(), owner_id{});
    EXPECT_EQ(empty.remaining(), 0ns);
    EXPECT_FALSE(empty.at_risk());
    EXPECT_FALSE(empty.lost().stop_requested());
    EXPECT_FALSE(empty.loss_reason());
}

TEST_F(lease_test, an_empty_lease_has_nothing_to_release) {
    lease empty;
    EXPECT_EQ(empty.release(), release_outcome::already_lost);
    EXPECT_EQ(empty.release_after(1s), release_outcome::already_lost);
}

TEST_F(lease_test, checking_an_empty_lease_throws) {
    const lease empty;
    EXPECT_EQ(error_of([&] { empty.check(); }), errc::lost);
}

TEST_F(lease_test, a_held_lease_says_what_it_holds) {
    const auto held = stock_.acquire();
    EXPECT_TRUE(held);
    EXPECT_EQ(held.name(), "stock");
    EXPECT_EQ(held.token(), holders().at(0).token);
    EXPECT_EQ(held.owner(), holders().at(0).owner);
    EXPECT_FALSE(held.at_risk());
    EXPECT_FALSE(held.loss_reason());
    EXPECT_NO_THROW(held.check());
}

TEST_F(lease_test, a_new_lease_is_valid_for_less_than_its_ttl) {
    const auto held = stock_.acquire();
    EXPECT_GT(held.remaining(), 20s);
    EXPECT_LT(held.remaining(), 30s);
    EXPECT_LT(held.valid_until(), clock::now() + 30s);
}

TEST_F(lease_test, moving_a_lease_leaves_an_empty_one_behind) {
    auto from = stock_.acquire();
    const auto token = from.token();
    const lease to{std::move(from)};
    EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): what is left is part of the promise
    EXPECT_TRUE(to);
    EXPECT_EQ(to.token(), token);
    EXPECT_EQ(holders().size(), 1U);
}

TEST_F(lease_test, assigning_over_a_lease_releases_what_it_held) {
    auto held = stock_.acquire();
    held = mutex{client_, "other stock"}.acquire();
    EXPECT_EQ(held.name(), "other stock");
    EXPECT_TRUE(holders("stock").empty());
    EXPECT_EQ(holders("other stock").size(), 1U);
}

TEST_F(lease_test, assigning_an_empty_lease_releases) {
    auto held = stock_.acquire();
    held = lease{};
    EXPECT_FALSE(held);
    EXPECT_TRUE(holders().empty());
}

TEST_F(lease_test, moving_a_lease_to_itself_changes_nothing) {
    auto held = stock_.acquire();
    auto& same = held;
    held = std::move(same);
    EXPECT_TRUE(held);
    EXPECT_EQ(holders().size(), 1U);
}

TEST_F(lease_test, swapping_two_leases_swaps_what_they_hold) {
    auto one = stock_.acquire();
    auto two = mutex{client_, "other stock"}.acquire();
    std::swap(one, two);
    EXPECT_EQ(one.name(), "other stock");
    EXPECT_EQ(two.name(), "stock");
    EXPECT_EQ(holders("stock").size(), 1U);
    EXPECT_EQ(holders("other stock").size(), 1U);
}

TEST_F(lease_test, releasing_gives_the_lock_back) {
    auto held = stock_.acquire();
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_FALSE(held);
    EXPECT_TRUE(elsewhere_.try_acquire().has_value());
}

TEST_F(lease_test, releasing_twice_finds_nothing_the_second_time) {
    auto held = stock_.acquire();
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TEST_F(lease_test, releasing_a_lost_lease_says_so) {
    auto held = stock_.acquire();
    revoke();
    ASSERT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TEST_F(lease_test, releasing_does_not_trigger_lost) {
    auto held = stock_.acquire();
    const auto lost = held.lost();
    held.release();
    EXPECT_FALSE(lost.stop_requested());
}

TEST_F(lease_test, the_destructor_releases) {
    {
        const auto held = stock_.acquire();
        EXPECT_EQ(holders().size(), 1U);
    }
    EXPECT_TRUE(holders().empty());
}

TEST_F(lease_test, a_busy_lock_gives_no_lease) {
    const auto held = stock_.acquire();
    EXPECT_FALSE(stock_.try_acquire().has_value());
    EXPECT_FALSE(elsewhere_.try_acquire().has_value());
    EXPECT_FALSE(elsewhere_.try_acquire_for(30ms).has_value());
}

TEST_F(lease_test, a_lease_may_be_released_by_another_thread) {
    auto held = stock_.acquire();
    auto released = in_background([moved = std::move(held)]() mutable { return moved.release(); });
    EXPECT_EQ(released.get(), release_outcome::released);
    EXPECT_TRUE(holders().empty());
}

TEST_F(lease_test, a_lease_may_be_asked_by_many_threads_at_once) {
    const auto held = mutex{client_, "short", {.ttl = 600ms}}.acquire();
    const auto ask = [&held] {
        return eventually([&] { return held.remaining() == 0ns || held.at_risk(); }, 300ms);
    };
    auto one = in_background(ask);
    auto two = in_background(ask);
    EXPECT_FALSE(one.get());
    EXPECT_FALSE(two.get());
}

TEST_F(lease_test, a_lease_outlives_its_mutex) {
    auto held = mutex{client_, "stock"}.acquire();
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(lease_test, a_lease_that_outlives_its_client_is_lost) {
    lease held;
    {
        client passing{make_client()};
        held = mutex{passing, "stock"}.acquire();
    }
    EXPECT_FALSE(held);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.loss_reason(), errc::shut_down);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_TRUE(holders().empty());
}

TEST_F(lease_test, tokens_rise_from_client_to_client) {
    const auto first = stock_.acquire().token();
    const auto second = elsewhere_.acquire().token();
    const auto third = stock_.acquire().token();
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
}

TEST_F(lease_test, tokens_rise_with_every_hold_of_64_threads_that_hand_over) {
    constexpr std::size_t threads = 64;
    std::vector<fencing_token> seen;  // guarded by the lock itself
    std::vector<std::jthread> crowd;
    auto held = stock_.acquire();
    seen.push_back(held.token());
    for (std::size_t i = 0; i < threads; ++i) {
        crowd.emplace_back([&] {
            for (int round = 0; round < 5; ++round) {
                const auto mine = stock_.acquire();
                seen.push_back(mine.token());
            }
        });
    }
    ASSERT_TRUE(events_->wait_for(event_kind::contended, threads));
    held.release();
    crowd.clear();
    EXPECT_EQ(seen.size(), 5 * threads + 1);
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end(), std::greater_equal<>{}), seen.end());
    EXPECT_TRUE(events_->wait_for(event_kind::handed_over));
}

TEST_F(lease_test, renewal_moves_the_deadline_on) {
    const auto held = mutex{client_, "short", {.ttl = 600ms}}.acquire();
    const auto at_first = held.valid_until();
    ASSERT_TRUE(eventually([&] { return held.valid_until() > at_first; }));
    const auto renewed = held.valid_until();
    EXPECT_TRUE(eventually([&] { return held.valid_until() > renewed; }));
    EXPECT_TRUE(held);
}

TEST_F(lease_test, a_lease_without_renewal_ends_with_its_ttl) {
    const auto held = mutex{client_, "short", {.ttl = 100ms, .renewal = renewal_mode::none}}.acquire();
    const auto deadline = held.valid_until();
    ASSERT_TRUE(eventually([&] { return !held; }));
    EXPECT_GE(clock::now(), deadline);
    EXPECT_EQ(held.valid_until(), deadline);
    EXPECT_EQ(held.remaining(), 0ns);
    EXPECT_EQ(held.loss_reason(), errc::lost);
}

TEST_F(lease_test, a_released_lease_is_never_renewed_again) {
    auto held = mutex{client_, "short", {.ttl = 600ms}}.acquire();
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    held.release();
    const auto renewals = plan_->calls(call_kind::renew);
    // Longer than the period of renewal: another lease of the same terms is renewed meanwhile.
    const auto witness = mutex{other_, "witness", {.ttl = 600ms}}.acquire();
    const auto at_first = witness.valid_until();
    ASSERT_TRUE(eventually([&] { return witness.valid_until() > at_first + 600ms; }));
    EXPECT_EQ(plan_->calls(call_kind::renew), renewals);
}

TEST_F(lease_test, release_after_keeps_the_name_taken_and_then_frees_it) {
    auto held = stock_.acquire();
    EXPECT_EQ(held.release_after(200ms), release_outcome::released);
    EXPECT_FALSE(held);
    EXPECT_FALSE(elsewhere_.try_lock());
    EXPECT_TRUE(holders().at(0).lingering);
    EXPECT_TRUE(elsewhere_.try_lock_for(patience));
    elsewhere_.unlock();
}

TEST_F(lease_test, release_after_keeps_its_own_client_out_as_well) {
    auto held = stock_.acquire();
    held.release_after(200ms);
    EXPECT_FALSE(stock_.try_lock());
    EXPECT_TRUE(stock_.try_lock_for(patience));
    stock_.unlock();
}

TEST_F(lease_test, release_after_outlives_its_client) {
    {
        client passing{make_client()};
        auto held = mutex{passing, "stock"}.acquire();
        held.release_after(1h);
    }
    EXPECT_EQ(holders().size(), 1U);
}

TEST_F(lease_test, release_after_no_time_is_a_release) {
    auto held = stock_.acquire();
    EXPECT_EQ(held.release_after(0s), release_outcome::released);
    EXPECT_TRUE(holders().empty());
}

TEST_F(lease_test, release_after_more_than_the_store_can_is_refused_and_the_lease_kept) {
    auto held = stock_.acquire();
    const auto longest = client_.promises().maximum_ttl;
    EXPECT_EQ(error_of([&] { return held.release_after(longest + 1ms); }), errc::invalid_argument);
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release_after(longest), release_outcome::released);
    EXPECT_TRUE(holders().at(0).lingering);
}

TEST_F(lease_test, one_that_is_lost_is_not_at_risk_any_more) {
    const auto held = stock_.acquire();
    revoke();
    ASSERT_TRUE(eventually([&] { return !held; }));
    EXPECT_FALSE(held.at_risk());
}

}  // namespace

}  // namespace holdfast::testing
