#include <optional>
#include <stop_token>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

constexpr lease_options soon_lost{.ttl = 100ms};

class loss_test : public stage {
protected:
    mutex stock_{client_, "stock"};
    mutex elsewhere_{other_, "stock"};
};

TEST_F(loss_test, a_lease_is_lost_by_the_local_clock_when_the_store_never_answers) {
    const auto held = mutex{client_, "stock", soon_lost}.acquire();
    const auto lost = held.lost();
    plan_->go_silent();
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_FALSE(held);
    EXPECT_EQ(held.loss_reason(), errc::lost);
    EXPECT_EQ(held.remaining(), 0ns);
    EXPECT_EQ(error_of([&] { held.check(); }), errc::lost);
}

TEST_F(loss_test, a_lease_ends_here_before_the_store_gives_the_lock_to_another) {
    const auto held = mutex{client_, "stock", soon_lost}.acquire();
    plan_->cut_off();
    const auto taken_over = elsewhere_.acquire();
    EXPECT_FALSE(held);
    EXPECT_GT(taken_over.token(), held.token());
}

TEST_F(loss_test, lost_is_triggered_at_the_deadline_even_while_another_callback_blocks_the_notifier) {
    gate running;
    gate finish;
    const auto first = mutex{client_, "first", {.ttl = 60ms}}.acquire();
    const auto second = mutex{client_, "second", {.ttl = 200ms}}.acquire();
    const std::stop_callback slow{first.lost(), [&] {
                                      running.open();
                                      finish.wait();
                                  }};
    plan_->cut_off();
    ASSERT_TRUE(running.wait());
    ASSERT_TRUE(eventually([&] { return !second; }));
    EXPECT_TRUE(second.lost().stop_requested());
    finish.open();
}

TEST_F(loss_test, a_blocked_callback_does_not_keep_other_leases_from_being_renewed) {
    gate running;
    gate finish;
    const auto healthy = mutex{client_, "healthy", {.ttl = 600ms}}.acquire();
    const auto held = stock_.acquire();
    const std::stop_callback slow{held.lost(), [&] {
                                      running.open();
                                      finish.wait();
                                  }};
    revoke();
    ASSERT_TRUE(running.wait());
    const auto at_first = healthy.valid_until();
    EXPECT_TRUE(eventually([&] { return healthy.valid_until() > at_first + 600ms; }));
    EXPECT_TRUE(healthy);
    finish.open();
}

TEST_F(loss_test, callbacks_do_not_run_on_the_thread_that_waits_for_the_lock) {
    const auto held = mutex{client_, "stock", soon_lost}.acquire();
    std::optional<std::thread::id> told_on;
    gate told;
    const std::stop_callback callback{held.lost(), [&] {
                                          told_on = std::this_thread::get_id();
                                          told.open();
                                      }};
    plan_->cut_off();
    ASSERT_TRUE(told.wait());
    EXPECT_NE(told_on, std::this_thread::get_id());
}

TEST_F(loss_test, all_callbacks_of_one_client_share_a_thread) {
    const auto one = mutex{client_, "one"}.acquire();
    const auto two = mutex{client_, "two"}.acquire();
    std::optional<std::thread::id> first_on;
    std::optional<std::thread::id> second_on;
    gate both;
    const std::stop_callback first{one.lost(), [&] { first_on = std::this_thread::get_id(); }};
    const std::stop_callback second{two.lost(), [&] {
                                        second_on = std::this_thread::get_id();
                                        both.open();
                                    }};
    revoke("one");
    revoke("two");
    ASSERT_TRUE(both.wait());
    EXPECT_EQ(first_on, second_on);
}

TEST_F(loss_test, a_callback_may_use_everything_the_client_has) {
    auto held = stock_.acquire();
    mutex another{client_, "another"};
    struct {
        std::chrono::nanoseconds remaining{1};
        std::size_t holders{};
        bool locked{};
        release_outcome released{};
    } seen;
    gate told;
    const std::stop_callback callback{held.lost(), [&] {
                                          seen.remaining = held.remaining();
                                          seen.locked = another.try_lock();
                                          seen.holders = client_.inspect("another").holders.size();
                                          another.unlock();
                                          seen.released = held.release();
                                          told.open();
                                      }};
    revoke();
    ASSERT_TRUE(told.wait());
    EXPECT_EQ(seen.remaining, 0ns);
    EXPECT_TRUE(seen.locked);
    EXPECT_EQ(seen.holders, 1U);
    EXPECT_EQ(seen.released, release_outcome::already_lost);
}

TEST_F(loss_test, a_callback_may_take_the_lost_lock_again) {
    const auto held = stock_.acquire();
    lease again;
    gate told;
    const std::stop_callback callback{held.lost(), [&] {
                                          again = stock_.acquire();
                                          told.open();
                                      }};
    revoke();
    ASSERT_TRUE(told.wait());
    EXPECT_TRUE(again);
    EXPECT_GT(again.token(), held.token());
}

TEST_F(loss_test, a_callback_may_destroy_the_client) {
    std::optional<client> doomed;
    doomed.emplace(address_);
    const auto held = mutex{*doomed, "stock"}.acquire();
    const auto kept = mutex{*doomed, "kept"}.acquire();
    gate told;
    const std::stop_callback callback{held.lost(), [&] {
                                          doomed.reset();
                                          told.open();
                                      }};
    revoke();
    ASSERT_TRUE(told.wait());
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    EXPECT_EQ(kept.loss_reason(), errc::shut_down);
    EXPECT_TRUE(becomes_free("kept"));
}

TEST_F(loss_test, a_callback_that_comes_after_the_loss_runs_at_once) {
    const auto held = stock_.acquire();
    revoke();
    ASSERT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    bool told = false;
    const std::stop_callback late{held.lost(), [&] { told = true; }};
    EXPECT_TRUE(told);
}

TEST_F(loss_test, a_revoked_holder_is_told_promptly_and_why) {
    const auto held = stock_.acquire();
    gate told;
    const std::stop_callback callback{held.lost(), [&] { told.open(); }};
    const stopwatch watch;
    revoke();
    ASSERT_TRUE(told.wait());
    EXPECT_LT(watch.elapsed(), 2s);
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    ASSERT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_NE(events_->last(event_kind::lost).error.detail.find("for the test"), std::string::npos);
}

TEST_F(loss_test, a_revoked_holder_that_does_not_renew_is_told_as_well) {
    const auto held = mutex{client_, "stock", {.ttl = 1min, .renewal = renewal_mode::none}}.acquire();
    const auto until = held.valid_until();
    const auto kept = mutex{client_, "kept", {.ttl = 1min, .renewal = renewal_mode::none}}.acquire();
    const auto kept_until = kept.valid_until();
    gate told;
    const std::stop_callback callback{held.lost(), [&] { told.open(); }};
    revoke();
    ASSERT_TRUE(told.wait());
    EXPECT_LT(clock::now(), until);
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    EXPECT_NE(held.loss_detail().find("for the test"), std::string::npos) << held.loss_detail();
    EXPECT_TRUE(kept);
    EXPECT_EQ(kept.valid_until(), kept_until) << "asking after it does not extend it";
    EXPECT_LE(holders("kept").at(0).remaining, 1min);
}

TEST_F(loss_test, a_revocation_nobody_told_of_is_found_at_the_next_renewal) {
    const auto held = mutex{client_, "stock", {.ttl = 600ms}}.acquire();
    plan_->drop_hints();
    revoke();
    EXPECT_TRUE(eventually([&] { return held.loss_reason() == errc::revoked; }));
}

TEST_F(loss_test, revoking_names_the_hold_it_means) {
    const auto held = stock_.acquire();
    EXPECT_FALSE(other_.revoke("stock", held.owner(), {held.token().value + 1}, "too late"));
    EXPECT_FALSE(other_.revoke("stock", owner_id::random_client(), held.token(), "wrong owner"));
    EXPECT_TRUE(held);
}

TEST_F(loss_test, a_hold_ends_at_its_max_hold_however_well_it_is_renewed) {
    const auto held = mutex{client_, "stock", {.ttl = 10s, .max_hold = 100ms}}.acquire();
    const stopwatch watch;
    EXPECT_LE(held.remaining(), 100ms);
    ASSERT_TRUE(eventually([lost = held.lost()] { return lost.stop_requested(); }));
    EXPECT_LT(watch.elapsed(), 5s);
    EXPECT_EQ(held.loss_reason(), errc::max_hold_exceeded);
}

TEST_F(loss_test, a_lease_that_was_lost_says_why_after_its_release_and_is_empty_otherwise) {
    auto held = stock_.acquire();
    ASSERT_TRUE(other_.revoke("stock", held.owner(), held.token(), "stuck"));
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_TRUE(held.loss_reason());
    EXPECT_FALSE(held.loss_detail().empty());
    EXPECT_FALSE(held);
    EXPECT_EQ(held.name(), "");
    EXPECT_EQ(held.token(), fencing_token{});
    EXPECT_EQ(held.remaining(), 0ns);
    EXPECT_FALSE(held.lost().stop_possible());
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    const auto moved = std::move(held);
    EXPECT_TRUE(moved.loss_reason());
    EXPECT_FALSE(held.loss_reason());  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST_F(loss_test, a_lease_that_was_released_in_time_has_no_reason_for_a_loss) {
    auto held = mutex{client_, "stock", {.max_hold = 1min}}.acquire();
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_FALSE(held.loss_reason());
    EXPECT_EQ(held.loss_detail(), "");
}

TEST_F(loss_test, a_multi_lease_that_was_lost_says_why_after_its_release) {
    auto held = multi_lock{client_, {"a", "b"}}.acquire();
    const auto owner = other_.inspect("b").holders.at(0).owner;
    ASSERT_TRUE(other_.revoke("b", owner, held.token("b"), "stuck"));
    EXPECT_EQ(held.release().worst(), release_outcome::already_lost);
    EXPECT_TRUE(held.loss_reason());
    EXPECT_TRUE(held.members().empty());
    EXPECT_TRUE(held.release().members.empty());
}

TEST_F(loss_test, a_fixed_lease_does_not_speak_of_renewals_that_nobody_sent) {
    const auto held = mutex{client_, "stock", {.ttl = 300ms, .renewal = renewal_mode::none}}.acquire();
    ASSERT_TRUE(eventually([&] { return !held.loss_detail().empty(); }));
    EXPECT_EQ(held.loss_detail(), "its deadline passed");
}

TEST_F(loss_test, a_hold_that_ends_at_its_max_hold_never_gives_another_reason) {
    const auto held = mutex{client_, "stock", {.ttl = 10s, .max_hold = 50ms}}.acquire();
    std::error_code first;
    while (!first) {  // sooner than the client's timer
        first = held.loss_reason();
    }
    EXPECT_EQ(first, errc::max_hold_exceeded);
}

TEST_F(loss_test, a_hold_that_hangs_is_given_back_at_its_max_hold) {
    const lease_options hangs{.ttl = 5min, .max_hold = 50ms};
    const auto expect_free = [](const lease& held, auto&& ask) {
        EXPECT_TRUE(ask()) << held.name() << " is not free before its ttl ends";
        EXPECT_EQ(held.loss_reason(), errc::max_hold_exceeded);
    };
    auto alone = mutex{client_, "stock", hangs}.acquire();
    expect_free(alone, [&] { return elsewhere_.try_acquire_for(patience); });
    EXPECT_EQ(alone.release(), release_outcome::already_lost);
    EXPECT_EQ(alone.loss_reason(), errc::max_hold_exceeded) << "still says why after its release";
    EXPECT_EQ(alone.loss_detail(), "it was held for its max_hold");
    const auto reader = shared_mutex{client_, "book", hangs}.acquire_shared();
    expect_free(reader, [&] { return shared_mutex{other_, "book"}.try_acquire_for(patience); });
    const auto permit = semaphore{client_, "seats", 1, hangs}.acquire();
    expect_free(permit, [&] { return semaphore{other_, "seats", 1}.try_acquire_for(patience); });
}

TEST_F(loss_test, threads_of_the_same_process_get_what_was_given_back_at_its_max_hold) {
    mutex hanging{client_, "stock", {.ttl = 5min, .max_hold = 200ms}};
    auto held = hanging.acquire();
    auto next = std::async(std::launch::async, [&] { return hanging.try_acquire_for(patience); });
    const auto taken_over = next.get();
    ASSERT_TRUE(taken_over);
    EXPECT_GT(taken_over->token(), held.token());
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_TRUE(*taken_over) << "a late release frees nothing of the next one's";
}

TEST_F(loss_test, a_lease_at_risk_recovers_when_the_store_comes_back) {
    const auto held = mutex{client_, "stock", {.ttl = 2400ms, .jeopardy = 1400ms}}.acquire();
    plan_->cut_off();
    ASSERT_TRUE(events_->wait_for(event_kind::jeopardy));
    EXPECT_TRUE(held.at_risk());
    plan_->heal();
    EXPECT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_TRUE(held);
    EXPECT_FALSE(held.at_risk());
    EXPECT_EQ(events_->count(event_kind::lost), 0U);
}

TEST_F(loss_test, failing_renewals_are_tried_again) {
    const auto held = mutex{client_, "stock", {.ttl = 600ms}}.acquire();
    plan_->fail_next(call_kind::renew, 1, {errc::store_unavailable, "down"});
    plan_->fail_next(call_kind::renew, 1, {errc::store_error, "confused"});
    plan_->fail_next(call_kind::renew, 1, {errc::unauthorised, "who are you"});
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_EQ(events_->count(event_kind::renewal_failed), 3U);
    EXPECT_TRUE(held);
}

TEST_F(loss_test, a_renewal_whose_answer_is_lost_is_tried_again) {
    const auto held = mutex{client_, "stock", {.ttl = 600ms}}.acquire();
    plan_->lose_replies_of_next(call_kind::renew, 2);
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_EQ(events_->count(event_kind::renewal_failed), 2U);
    EXPECT_TRUE(held);
}

TEST_F(loss_test, a_lost_lease_never_becomes_valid_again) {
    const auto held = mutex{client_, "stock", soon_lost}.acquire();
    plan_->delay_replies_of_next(call_kind::renew, 10);
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    ASSERT_TRUE(eventually([&] { return !held; }));
    plan_->let_go();
    EXPECT_FALSE(held);
    EXPECT_EQ(held.remaining(), 0ns);
}

TEST_F(loss_test, unlock_after_a_loss_waits_for_nobody) {
    mutex fleeting{client_, "stock", soon_lost};
    fleeting.lock();
    plan_->go_silent();
    ASSERT_TRUE(eventually([&] { return fleeting.lost().stop_requested(); }));
    const stopwatch watch;
    fleeting.unlock();
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(loss_test, a_lost_lock_can_be_locked_again_by_the_thread_that_has_not_unlocked_it) {
    stock_.lock();
    const auto before = stock_.token();
    revoke();
    ASSERT_TRUE(eventually([&] { return stock_.lost().stop_requested(); }));
    stock_.unlock();
    stock_.lock();
    EXPECT_GT(stock_.token(), before);
    EXPECT_FALSE(stock_.lost().stop_requested());
    stock_.unlock();
}

TEST_F(loss_test, a_recursive_lock_cannot_be_entered_again_after_a_loss) {
    recursive_mutex nested{client_, "nested"};
    nested.lock();
    revoke("nested");
    ASSERT_TRUE(eventually([&] { return nested.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { nested.lock(); }), errc::revoked);
    EXPECT_EQ(nested.depth(), 1U);
    nested.unlock();
    EXPECT_NO_THROW(nested.lock());
    nested.unlock();
}

TEST_F(loss_test, a_recursive_lock_that_ran_out_says_lost) {
    recursive_mutex nested{client_, "nested", {.ttl = 60ms, .renewal = renewal_mode::none}};
    nested.lock();
    ASSERT_TRUE(eventually([&] { return nested.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { nested.lock(); }), errc::lost);
    nested.unlock();
}

TEST_F(loss_test, unlocking_a_lost_hold_leaves_the_next_thread_its_own) {
    stock_.lock();
    revoke();
    ASSERT_TRUE(eventually([&] { return stock_.lost().stop_requested(); }));
    gate locked;
    gate finish;
    auto second = in_background([&] {
        stock_.lock();
        const auto token = stock_.token();
        locked.open();
        finish.wait();
        const bool still_held = !stock_.lost().stop_requested();
        stock_.unlock();
        return still_held ? token : fencing_token{};
    });
    ASSERT_TRUE(locked.wait());
    stock_.unlock();
    const auto after = holders();
    finish.open();
    ASSERT_EQ(after.size(), 1U);
    EXPECT_EQ(second.get(), after.at(0).token);
}

}  // namespace

}  // namespace holdfast::testing
