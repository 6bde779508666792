#include <cstdlib>
#include <filesystem>
#include <stop_token>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class failure_test : public stage {
protected:
    mutex stock_{client_, "stock"};
};

TEST_F(failure_test, try_lock_without_a_store_throws_at_once) {
    plan_->cut_off();
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return stock_.try_lock(); }), errc::store_unavailable);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(failure_test, try_lock_for_without_a_store_ends_by_its_deadline) {
    plan_->cut_off();
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return stock_.try_lock_for(200ms); }), errc::store_unavailable);
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(failure_test, try_lock_for_with_a_silent_store_ends_by_its_deadline) {
    plan_->go_silent();
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return stock_.try_lock_for(200ms); }), errc::outcome_unknown);
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(failure_test, try_lock_with_a_silent_store_ends_after_the_request_timeout) {
    client hasty{make_client({.request_timeout = 100ms})};
    plan_->go_silent();
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return mutex{hasty, "stock"}.try_lock(); }), errc::outcome_unknown);
    EXPECT_GE(watch.elapsed(), 100ms);
    EXPECT_LT(watch.elapsed(), 1s);
    plan_->heal();
}

TEST_F(failure_test, lock_gives_up_when_the_outage_outlasts_its_patience) {
    client impatient{make_client({.outage_patience = 150ms})};
    plan_->cut_off();
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { mutex{impatient, "stock"}.lock(); }), errc::store_unavailable);
    EXPECT_GE(watch.elapsed(), 150ms);
    EXPECT_LT(watch.elapsed(), 2s);
}

TEST_F(failure_test, lock_bears_with_an_outage_that_ends_in_time) {
    plan_->cut_off();
    auto waiter = in_background([&] { stock_.lock(); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::acquire, 3, patience));
    plan_->heal();
    EXPECT_NO_THROW(waiter.get());
    EXPECT_EQ(holders().size(), 1U);
    stock_.unlock();
}

TEST_F(failure_test, the_longest_patience_is_not_the_shortest) {
    client patient{make_client({.outage_patience = std::chrono::milliseconds::max()})};
    mutex stock{patient, "stock"};
    plan_->cut_off();
    auto waiter = in_background([&] { stock.lock(); });
    EXPECT_TRUE(plan_->wait_for_calls(call_kind::acquire, 5, 2s));
    plan_->heal();
    ASSERT_NO_THROW(waiter.get());
    stock.unlock();
}

TEST_F(failure_test, a_waiter_survives_an_outage_and_gets_the_lock_afterwards) {
    auto held = mutex{other_, "stock"}.acquire();
    auto waiter = in_background([&] { return stock_.try_lock_for(patience); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    plan_->cut_off();
    held.release();
    plan_->heal();
    EXPECT_TRUE(waiter.get());
    stock_.unlock();
}

TEST_F(failure_test, an_acquisition_whose_answer_is_lost_is_asked_again_and_granted_once) {
    plan_->lose_replies_of_next(call_kind::acquire);
    const auto held = stock_.acquire();
    EXPECT_TRUE(held);
    EXPECT_EQ(plan_->calls(call_kind::acquire), 2U);
    ASSERT_EQ(holders().size(), 1U);
    EXPECT_EQ(holders().at(0).token, held.token());
    EXPECT_EQ(holders().at(0).owner, held.owner());
}

TEST_F(failure_test, a_try_lock_whose_answer_is_lost_leaves_nothing_behind) {
    plan_->lose_replies_of_next(call_kind::acquire);
    EXPECT_EQ(error_of([&] { return stock_.try_lock(); }), errc::outcome_unknown);
    EXPECT_TRUE(becomes_free());
}

TEST_F(failure_test, a_release_whose_answer_is_lost_is_a_release) {
    auto held = stock_.acquire();
    plan_->lose_replies_of_next(call_kind::release);
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_TRUE(holders().empty());
}

TEST_F(failure_test, unlock_waits_for_a_silent_store_no_longer_than_its_release_timeout) {
    mutex stock{client_, "stock", {.release_timeout = 100ms}};
    stock.lock();
    plan_->go_silent();
    const stopwatch watch;
    stock.unlock();
    EXPECT_GE(watch.elapsed(), 100ms);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(failure_test, an_unanswered_release_is_unknown_and_the_lock_is_freed_once_the_store_is_back) {
    auto held = mutex{client_, "stock", {.release_timeout = 50ms}}.acquire();
    plan_->go_silent();
    EXPECT_EQ(held.release(), release_outcome::unknown);
    EXPECT_EQ(holders().size(), 1U);
    plan_->heal();
    EXPECT_TRUE(becomes_free());
}

TEST_F(failure_test, the_next_holder_is_not_disturbed_by_a_release_that_comes_late) {
    auto held = mutex{client_, "stock", {.ttl = 150ms, .release_timeout = 20ms}}.acquire();
    plan_->cut_off();
    EXPECT_EQ(held.release(), release_outcome::unknown);
    const auto next = mutex{other_, "stock"}.acquire();
    plan_->heal();
    const auto calls = plan_->calls(call_kind::acquire);
    EXPECT_FALSE(stock_.try_lock());
    EXPECT_GT(plan_->calls(call_kind::acquire), calls);
    EXPECT_EQ(holders().at(0).token, next.token());
}

TEST_F(failure_test, a_cancelled_acquisition_ends_before_its_answer_comes) {
    plan_->delay_replies_of_next(call_kind::acquire);
    std::stop_source stop;
    auto waiter = in_background([&] { return stock_.acquire_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    stop.request_stop();
    EXPECT_TRUE(gets_done(waiter));
    EXPECT_EQ(plan_->held(), 1U);
    EXPECT_FALSE(waiter.get().has_value());
    plan_->let_go();
}

TEST_F(failure_test, a_cancelled_acquisition_leaves_nothing_behind_once_its_answer_has_come) {
    plan_->delay_replies_of_next(call_kind::acquire);
    std::stop_source stop;
    auto waiter = in_background([&] { return stock_.acquire_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    stop.request_stop();
    EXPECT_FALSE(waiter.get().has_value());
    EXPECT_EQ(holders().size(), 1U);
    plan_->let_go();
    EXPECT_TRUE(becomes_free());
}

TEST_F(failure_test, the_grant_of_a_cancelled_acquisition_is_used_by_the_next_in_the_queue) {
    plan_->delay_replies_of_next(call_kind::acquire);
    std::stop_source stop;
    auto leaver = in_background([&] { return stock_.acquire_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    auto stayer = in_background([&] { return stock_.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stop.request_stop();
    EXPECT_FALSE(leaver.get().has_value());
    plan_->let_go();
    EXPECT_TRUE(stayer.get());
    EXPECT_EQ(plan_->calls(call_kind::acquire), 1U);
}

TEST_F(failure_test, a_wait_cancelled_before_it_began_asks_for_nothing) {
    std::stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(stock_.acquire_unless_stopped(stop.get_token()).has_value());
    EXPECT_EQ(plan_->calls(call_kind::acquire), 0U);
}

TEST_F(failure_test, a_refusal_ends_the_call_without_another_try) {
    plan_->fail_next(call_kind::acquire, 2, {errc::unauthorised, "no"});
    EXPECT_EQ(error_of([&] { stock_.lock(); }), errc::unauthorised);
    EXPECT_EQ(plan_->calls(call_kind::acquire), 1U);
}

TEST_F(failure_test, an_error_names_the_lock_the_store_and_the_reason) {
    plan_->fail_next(call_kind::acquire, 1, {errc::unauthorised, "ask for a password"});
    const auto text = error_text_of([&] { stock_.lock(); });
    EXPECT_NE(text.find("\"stock\""), std::string::npos) << text;
    EXPECT_NE(text.find(client_.store()), std::string::npos) << text;
    EXPECT_NE(text.find("ask for a password"), std::string::npos) << text;
}

TEST_F(failure_test, questions_without_a_store_fail_and_say_so) {
    plan_->cut_off();
    EXPECT_EQ(error_of([&] { return client_.inspect("stock"); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { return client_.list(); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { return client_.revoke("stock", {}, {}, ""); }), errc::store_unavailable);
    EXPECT_NE(error_text_of([&] { return client_.inspect("stock"); }).find(client_.store()),
              std::string::npos);
}

TEST_F(failure_test, errors_stay_short_whatever_the_name) {
    const std::string endless(10'000'000, 'x');
    constexpr std::size_t readable = 500;
    EXPECT_LT(error_text_of([&] { mutex{client_, endless}; }).size(), readable);
    EXPECT_LT(error_text_of([&] { semaphore(client_, endless, 1); }).size(), readable);
    EXPECT_LT(error_text_of([&] { latch{client_, endless}; }).size(), readable);
    EXPECT_LT(error_text_of([&] { return client_.inspect(endless); }).size(), readable);
    EXPECT_LT(error_text_of([&] { return client_.revoke(endless, {}, {}, ""); }).size(), readable);
    EXPECT_LT(error_text_of([&] { client{endless}; }).size(), readable);
    EXPECT_LT(error_text_of([&] { client{endless + ":"}; }).size(), readable);
    EXPECT_LT(error_text_of([&] { client{"memory:" + endless}; }).size(), readable);
}

TEST_F(failure_test, names_that_make_no_sense_are_refused_when_the_lock_is_made) {
    EXPECT_EQ(error_of([&] { mutex{client_, ""}; }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { mutex{client_, "two\nlines"}; }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { mutex{client_, "\xff"}; }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { shared_mutex{client_, std::string(2000, 'x')}; }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { recursive_mutex{client_, ""}; }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { latch{client_, ""}; }), errc::invalid_name);
}

TEST_F(failure_test, terms_that_make_no_sense_are_refused_when_the_lock_is_made) {
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.ttl = 0ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.ttl = -1s}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.ttl = std::chrono::milliseconds::max()}); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.max_hold = 0ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.safety_margin = 1h}); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, "stock", {.release_timeout = -1ms}); }),
              errc::invalid_argument);
}

TEST(address_test, addresses_that_make_no_sense_are_bad_configuration) {
    EXPECT_EQ(error_of([] { client{""}; }), errc::bad_configuration);
    EXPECT_EQ(error_of([] { client{":"}; }), errc::bad_configuration);
    EXPECT_EQ(error_of([] { client{"nonsense"}; }), errc::bad_configuration);
    EXPECT_EQ(error_of([] { client{"local"}; }), errc::bad_configuration);
    EXPECT_EQ(error_of([] { client{"nosuch:x"}; }), errc::bad_configuration);
    EXPECT_EQ(error_of([] { client{"LOCAL:"}; }), errc::bad_configuration);
}

TEST(address_test, an_error_never_repeats_what_follows_the_colon) {
    const std::string secret{"canary"};
    EXPECT_EQ(error_text_of([&] { client{"nosuch:" + secret}; }).find(secret), std::string::npos);
    EXPECT_EQ(error_text_of([&] { client{"nosuch://user:" + secret + "@host"}; }).find(secret),
              std::string::npos);
    EXPECT_EQ(error_text_of([&] { client{":" + secret}; }).find(secret), std::string::npos);
    EXPECT_EQ(error_text_of([&] { client{secret}; }).find(secret), std::string::npos);
}

TEST(address_test, an_error_says_which_addresses_there_are) {
    EXPECT_NE(error_text_of([] { client{"nosuch:x"}; }).find(" memory,"), std::string::npos);
    EXPECT_NE(error_text_of([] { client{"nonsense"}; }).find(" memory,"), std::string::npos);
}

TEST(address_test, what_the_environment_requires_counts_even_if_the_program_requires_less) {
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "fleet", 1), 0);
    EXPECT_EQ(error_of([] { client("memory:"); }), errc::guarantee_not_met);
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "process", 1), 0);
    EXPECT_NO_THROW(client("memory:"));
    EXPECT_EQ(error_of([] { client("memory:", {.require = scope::fleet}); }), errc::guarantee_not_met);
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "everybody", 1), 0);
    EXPECT_EQ(error_of([] { client("memory:"); }), errc::bad_configuration);
    ASSERT_EQ(unsetenv("HOLDFAST_REQUIRE"), 0);
}

TEST(address_test, an_address_that_the_environment_requires_by_mistake_is_not_repeated) {
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "redis://u:SEKRET@h", 1), 0);
    const auto text = error_text_of([] { client("memory:"); });
    unsetenv("HOLDFAST_REQUIRE");
    EXPECT_EQ(text, "HOLDFAST_REQUIRE is \"...\": write process, host or fleet: bad configuration");
}

TEST(address_test, a_store_that_keeps_out_less_than_required_is_refused) {
    const auto directory =
        std::filesystem::temp_directory_path() / owner_id::random_client().client_text();
    EXPECT_EQ(error_of([] { client("memory:", {.require = scope::fleet}); }), errc::guarantee_not_met);
    EXPECT_EQ(error_of([] { client("memory:", {.require = scope::host}); }), errc::guarantee_not_met);
    EXPECT_EQ(error_of([&] { client("local:" + directory.string(), {.require = scope::fleet}); }),
              errc::guarantee_not_met);
    EXPECT_NO_THROW(client("local:" + directory.string(), {.require = scope::host}));
    std::filesystem::remove_all(directory);
}

TEST(address_test, the_environment_names_the_store_of_a_client_without_an_address) {
    ASSERT_EQ(setenv("HOLDFAST_STORE", "memory:from-the-environment", 1), 0);
    const client chosen;
    unsetenv("HOLDFAST_STORE");
    EXPECT_EQ(chosen.store(), "memory:from-the-environment");
}

TEST(address_test, the_environment_names_the_store_of_a_client_with_options) {
    ASSERT_EQ(setenv("HOLDFAST_STORE", "memory:from-the-environment", 1), 0);
    client chosen{client_options{.label = "worker 3"}};
    EXPECT_EQ(chosen.store(), "memory:from-the-environment");
    const auto held = mutex{chosen, "stock"}.acquire();
    EXPECT_EQ(chosen.inspect("stock").holders.at(0).card.value().label, "worker 3");
    EXPECT_EQ(error_of([] { client{client_options{.require = scope::fleet}}; }),
              errc::guarantee_not_met);
    unsetenv("HOLDFAST_STORE");
}

TEST(address_test, a_variable_that_is_set_but_empty_is_refused) {
    ASSERT_EQ(setenv("HOLDFAST_STORE", "", 1), 0);
    EXPECT_EQ(error_of([] { client{}; }), errc::bad_configuration);
    unsetenv("HOLDFAST_STORE");
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "", 1), 0);
    EXPECT_EQ(error_of([] { client{"memory:"}; }), errc::bad_configuration);
    unsetenv("HOLDFAST_REQUIRE");
}

TEST(address_test, timeouts_that_make_no_sense_are_refused) {
    EXPECT_EQ(error_of([] { client("memory:", {.request_timeout = 0ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([] { client("memory:", {.outage_patience = -1ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([] { client("memory:", {.handover_time = -1ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_text_of([] { client("memory:", {.outage_patience = -1ms}); }),
              "client_options::outage_patience: it cannot be -1 ms: invalid argument");
}

TEST(address_test, a_label_is_text_of_at_most_a_kilobyte) {
    const auto refusal = [](const std::string& label) {
        return error_text_of([&] { client("labelled:", {.label = label}); });
    };
    engines::register_engine(
        "labelled",
        [](std::string_view,
           const engines::client_identity& identity) -> std::unique_ptr<engines::engine> {
            throw std::runtime_error{"opened with " + std::to_string(identity.card.label.size())};
        });
    EXPECT_EQ(refusal(std::string(1025, 'x')),
              "client_options::label: it has 1025 bytes; at most 1024 are allowed: invalid argument");
    EXPECT_EQ(refusal("\x1b\xff"), "client_options::label: it is not UTF-8: invalid argument");
    for (const auto& label : {std::string(1024, 'x'), std::string{"\x1b[2J\0é", 7}}) {
        EXPECT_THROW(client("labelled:", {.label = label}), std::runtime_error);
    }
    EXPECT_EQ(error_of([] {
                  client{quorum{{"memory:a"}}, {.label = std::string(1025, 'x')}};
              }),
              errc::invalid_argument);
}

TEST_F(failure_test, the_environment_may_ask_for_more_than_the_options) {
    ASSERT_EQ(setenv("HOLDFAST_REQUIRE", "fleet", 1), 0);
    const auto error = error_of([] { client{fresh_store(), {.require = scope::process}}; });
    unsetenv("HOLDFAST_REQUIRE");
    EXPECT_EQ(error, errc::guarantee_not_met);
}

/// A full disk that is freed, a permission that is granted.
TEST_F(failure_test, a_release_that_the_store_refuses_is_carried_out_when_it_accepts_it) {
    for (const auto why : {errc::store_error, errc::unauthorised}) {
        const auto told = events_->count(event_kind::release_unconfirmed);
        auto held = mutex{client_, "refused", {.ttl = 60s}}.acquire();
        plan_->fail_next(call_kind::release, 3, {why, "not now"});
        const stopwatch watch;
        EXPECT_EQ(held.release(), release_outcome::unknown);
        EXPECT_LT(watch.elapsed(), 1500ms) << "a refusal is an answer: nobody waits for the next";
        EXPECT_TRUE(becomes_free("refused"));
        ASSERT_TRUE(events_->wait_for(event_kind::release_unconfirmed, told + 1));
        EXPECT_EQ(events_->last(event_kind::release_unconfirmed).error.code, why);
        EXPECT_EQ(events_->count(event_kind::release_unconfirmed), told + 1) << "once";
    }
}

TEST_F(failure_test, what_waits_behind_a_refused_release_gets_the_lock_when_the_store_accepts_it) {
    mutex lock{client_, "refused", {.ttl = 60s}};
    auto held = lock.acquire();
    auto next = in_background([&] { return mutex{other_, "refused"}.try_lock_for(patience); });
    ASSERT_TRUE(eventually([&] { return other_.inspect("refused").waiters == 1U; }));
    plan_->fail_next(call_kind::release, 2, {errc::store_error, "not now"});
    EXPECT_EQ(held.release(), release_outcome::unknown);
    EXPECT_TRUE(next.get());
}

}  // namespace

}  // namespace holdfast::testing
