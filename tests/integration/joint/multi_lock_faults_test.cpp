#include <functional>
#include <optional>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> four{"a", "b", "c", "d"};

/// Two stores, of which one has a bad connection.
class multi_lock_faults : public stage {
protected:
    [[nodiscard]] bool all_free() {
        return std::all_of(four.begin(), four.end(),
                           [this](const auto& one) { return holders(one).empty(); });
    }
    [[nodiscard]] bool all_become_free() {
        return eventually([this] { return all_free(); });
    }
};

TEST_F(multi_lock_faults, release_goes_on_past_a_store_that_is_silent) {
    client second{fresh_store()};
    multi_lock both{{{client_, "a"}, {second, "b"}}, {.release_timeout = 50ms}};
    auto held = both.acquire();
    plan_->go_silent();
    const auto report = held.release();
    ASSERT_EQ(report.members.size(), 2U);
    for (const auto& [store, name, outcome] : report.members) {
        EXPECT_EQ(outcome, name == "a" ? release_outcome::unknown : release_outcome::released) << name;
    }
    EXPECT_EQ(report.worst(), release_outcome::unknown);
    EXPECT_TRUE(second.inspect("b").holders.empty());
    plan_->heal();
    EXPECT_TRUE(becomes_free("a")) << "long before its ttl ends";
}

/// Losses are told one after the other: a callback that takes its time must not hide the next loss.
TEST_F(multi_lock_faults, a_loss_shows_in_the_stop_token_before_anybody_is_told) {
    gate entered;
    gate go_on;
    const auto first = mutex{client_, "d"}.acquire();
    const std::stop_callback slow{first.lost(), [&] {
                                      entered.open();
                                      go_on.wait();
                                  }};
    revoke("d");
    ASSERT_TRUE(entered.wait());
    const auto held =
        multi_lock{client_, {"a", "b"}, {.ttl = 100ms, .renewal = renewal_mode::none}}.acquire();
    ASSERT_TRUE(eventually([&] { return clock::now() >= held.valid_until(); }));
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.loss_reason(), errc::lost);
    go_on.open();
}

TEST_F(multi_lock_faults, what_cannot_be_given_back_now_is_given_back_in_the_background) {
    mutex in_the_way{other_, "d"};
    in_the_way.lock();
    auto hurried = make_client({.request_timeout = 500ms});
    multi_lock all{hurried, four};
    std::stop_source stop;
    auto waiting =
        in_background([&] { return all.acquire_unless_stopped(stop.get_token()).has_value(); });
    EXPECT_TRUE(eventually([&] { return !holders("c").empty(); }));
    plan_->go_silent();
    const stopwatch since;
    stop.request_stop();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_FALSE(waiting.get());
    EXPECT_LT(since.elapsed(), 450ms) << "it waits for a moment, not for the request's time";
    plan_->heal();
    in_the_way.unlock();
    EXPECT_TRUE(all_become_free());
}

TEST_F(multi_lock_faults, an_error_half_way_leaves_nothing) {
    multi_lock all{client_, four};
    plan_->fail_next(call_kind::acquire, 1, {errc::unauthorised, "for the test"});
    EXPECT_EQ(error_of([&] { return all.acquire(); }), errc::unauthorised);
    EXPECT_TRUE(all_become_free());
}

TEST_F(multi_lock_faults, a_member_lost_while_others_were_waited_for_is_taken_anew) {
    mutex in_the_way{other_, "d"};
    in_the_way.lock();
    multi_lock all{client_, four, {.ttl = 100ms, .renewal = renewal_mode::none}};
    auto waiting = in_background([&] { return all.try_acquire_for(patience); });
    EXPECT_TRUE(eventually([&] { return !holders("a").empty(); }));
    EXPECT_TRUE(eventually([&] { return holders("a").empty(); }));
    in_the_way.unlock();
    ASSERT_TRUE(gets_done(waiting));
    const auto held = waiting.get();
    ASSERT_TRUE(held);
    EXPECT_EQ(held->members().size(), four.size());
    EXPECT_FALSE(holders("a").empty());
}

/// What happens to the request at which the caller stops, and on which store: one takes all names in
/// one request, the other one by one.
struct interruption {
    std::string name;
    std::string scheme;
    std::function<void(fault_plan&)> fault;
};

[[nodiscard]] std::vector<interruption> interruptions() {
    std::vector<interruption> all;
    for (const auto* scheme : {"memory", "local"}) {
        all.push_back({"with_its_answer_on_the_way", scheme,
                       [](fault_plan& plan) { plan.delay_replies_of_next(call_kind::acquire, 20); }});
        all.push_back({"with_the_request_on_the_way", scheme,
                       [](fault_plan& plan) { plan.delay_next(call_kind::acquire, 20); }});
        all.push_back({"with_its_answer_lost", scheme, [](fault_plan& plan) {
                           plan.lose_replies_of_next(call_kind::acquire);
                           plan.delay_replies_of_next(call_kind::acquire, 20);
                       }});
        all.push_back({"with_answers_to_the_clean_up_lost", scheme, [](fault_plan& plan) {
                           plan.delay_replies_of_next(call_kind::acquire, 20);
                           plan.lose_replies_of_next(call_kind::release, 4);
                       }});
    }
    return all;
}

enum class reached : bool { no, yes };

/// A caller that gives up while its n-th request is under way, for every n.
class multi_lock_stopped : public ::testing::TestWithParam<interruption> {
protected:
    [[nodiscard]] bool all_free() {
        return std::all_of(four.begin(), four.end(),
                           [this](const auto& one) { return other_.inspect(one).holders.empty(); });
    }
    /// Whether there was an n-th request. Checks that nothing is left while the client is still there.
    [[nodiscard]] reached stop_at(std::size_t number, std::optional<mutex>& in_the_way) {
        const auto plan = std::make_shared<fault_plan>();
        const auto identity = engines::make_identity();
        client stopped{std::make_unique<fault_engine>(engines::open(store_.address(), identity), plan),
                       identity};
        multi_lock all{stopped, four};
        if (number > 1) {
            plan->delay_replies_of_next(call_kind::acquire, number - 1);
        }
        GetParam().fault(*plan);
        if (in_the_way) {
            in_the_way->lock();
        }
        std::stop_source stop;
        auto waiting =
            in_background([&] { return all.acquire_unless_stopped(stop.get_token()).has_value(); });
        const auto result = pass_requests(number, *plan, waiting);
        stop.request_stop();
        if (in_the_way) {
            in_the_way->unlock();
        }
        EXPECT_TRUE(eventually([&] {
            plan->let_go();
            return is_done(waiting);
        }));
        EXPECT_TRUE(eventually([&] {
            plan->let_go();
            return all_free();
        })) << "stopped at request "
            << number;
        return result;
    }
    /// At every request there is; returns how many that were.
    [[nodiscard]] std::size_t stop_at_each(std::optional<mutex>& in_the_way) {
        constexpr std::size_t more_than_there_are = 20;
        std::size_t number = 1;
        while (number < more_than_there_are && stop_at(number, in_the_way) == reached::yes) {
            ++number;
        }
        EXPECT_LT(number, more_than_there_are);
        return number - 1;
    }

private:
    [[nodiscard]] static reached pass_requests(std::size_t number, fault_plan& plan,
                                               const std::future<bool>& waiting) {
        // Long enough for a thread to get going, and it is waited for only when nothing more comes.
        constexpr std::chrono::milliseconds limit{200};
        for (std::size_t passed = 1; passed < number; ++passed) {
            if (!eventually([&] { return plan.held() > 0 || is_done(waiting); }, limit)) {
                return reached::no;  // it waits for the name that is busy
            }
            plan.let_go();
        }
        const auto there = [&] { return plan.calls(call_kind::acquire) >= number; };
        static_cast<void>(eventually([&] { return there() || is_done(waiting); }, limit));
        return there() ? reached::yes : reached::no;
    }

    any_store store_{GetParam().scheme};

protected:
    client other_{store_.address()};
    /// How many requests it takes without trouble.
    const std::size_t requests_{GetParam().scheme == "memory" ? 1U : four.size()};
};

TEST_P(multi_lock_stopped, at_any_request_leaves_nothing) {
    std::optional<mutex> nobody;
    EXPECT_GE(stop_at_each(nobody), requests_);
}

TEST_P(multi_lock_stopped, at_any_request_while_a_name_is_busy_leaves_nothing) {
    std::optional<mutex> in_the_way{std::in_place, other_, "c"};
    EXPECT_GE(stop_at_each(in_the_way), 3U);
}

INSTANTIATE_TEST_SUITE_P(joint, multi_lock_stopped, ::testing::ValuesIn(interruptions()),
                         [](const auto& one) { return one.param.name + "_on_" + one.param.scheme; });

TEST_F(multi_lock_faults, a_multi_lease_is_valid_until_the_first_member_ends) {
    // Whichever comes first in the order of stores.
    for (const bool first : {false, true}) {
        const auto renewed = std::make_shared<recorder>();
        const auto identity = engines::make_identity();
        client healthy{engines::open(fresh_store(), identity), identity, {.events = renewed}};
        multi_lock both{{{client_, first ? "a" : "b"}, {healthy, first ? "b" : "a"}}, {.ttl = 900ms}};
        const auto held = both.acquire();
        plan_->cut_off();
        const auto latest = clock::now() + 900ms;  // for the one that is not renewed
        ASSERT_TRUE(renewed->wait_for(event_kind::renewed));
        EXPECT_LE(held.valid_until().time_since_epoch(), latest.time_since_epoch());
        plan_->heal();
    }
}

TEST_F(multi_lock_faults, a_question_to_a_silent_store_ends_by_the_callers_deadline) {
    auto patient = make_client({.request_timeout = 15s});
    multi_lock all{patient, four};
    plan_->go_silent();
    const stopwatch since;
    static_cast<void>(error_of([&] { return all.try_acquire_for(200ms).has_value(); }));
    EXPECT_LT(since.elapsed(), 8s);
}

TEST_F(multi_lock_faults, what_is_granted_after_the_caller_stopped_is_not_kept) {
    multi_lock all{client_, four};
    std::stop_source stop;
    plan_->delay_replies_of_next(call_kind::acquire, 1);
    auto waiting =
        in_background([&] { return all.acquire_unless_stopped(stop.get_token()).has_value(); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    stop.request_stop();
    plan_->let_go();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_FALSE(waiting.get());
    EXPECT_TRUE(all_become_free());
}

TEST_F(multi_lock_faults, a_lost_member_is_the_worst_that_a_release_can_find) {
    using outcome = release_outcome;
    const multi_release report{{{"s", "a", outcome::released},
                                {"s", "b", outcome::already_lost},
                                {"s", "c", outcome::unknown}}};
    EXPECT_EQ(report.worst(), outcome::already_lost);
}

}  // namespace

}  // namespace holdfast::testing
