#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/blocking_engine.hpp>
#include <holdfast/testing/event_counter.hpp>
#include <holdfast/testing/eventually.hpp>
#include <holdfast/testing/fault_engine.hpp>

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using engines::acquire_reply;

/// A client whose connection to the store follows a plan, and a witness with a good one.
class fault_engine_test : public ::testing::Test {
protected:
    fault_engine_test() : engine_{faulty_engine()}, witness_{engines::open(address_, identity_)} {}

    [[nodiscard]] std::unique_ptr<engines::engine> faulty_engine() const {
        return std::make_unique<fault_engine>(engines::open(address_, identity_), plan_);
    }
    [[nodiscard]] engines::acquire_request request() const {
        return {.name = name_, .owner = owner(), .ttl = 60s};
    }
    [[nodiscard]] owner_id owner() const {
        auto first = identity_.client;
        first.sequence = 1;
        return first;
    }
    [[nodiscard]] std::size_t holders() { return witness_.inspect(name_).info.holders.size(); }

    /// Starts an acquire and does not wait for it.
    void acquire(engines::engine& where, clock::time_point deadline) {
        where.acquire(request(), {.deadline = deadline},
                      [answer = answer_, count = answers_.callback()](acquire_reply reply) {
                          *answer = std::move(reply);
                          count();
                      });
    }

    const std::string name_{"stock"};
    const engines::client_identity identity_{engines::make_identity("fault test")};
    const std::string address_{"memory:fault-" + identity_.client.client_text()};
    const std::shared_ptr<fault_plan> plan_{std::make_shared<fault_plan>()};
    const std::shared_ptr<acquire_reply> answer_{std::make_shared<acquire_reply>()};
    event_counter answers_;
    blocking_engine engine_;
    blocking_engine witness_;
};

TEST_F(fault_engine_test, without_faults_everything_goes_through) {
    EXPECT_TRUE(granted(engine_.acquire(request())));
    EXPECT_EQ(holders(), 1U);
    EXPECT_EQ(plan_->calls(call_kind::acquire), 1U);
    EXPECT_EQ(engine_.raw().address(), witness_.raw().address());
}

TEST_F(fault_engine_test, failing_calls_never_reach_the_store) {
    plan_->fail_next(call_kind::acquire, 2, {errc::unauthorised, "no"});
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::unauthorised));
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::unauthorised));
    EXPECT_EQ(holders(), 0U);
    EXPECT_TRUE(granted(engine_.acquire(request())));
}

TEST_F(fault_engine_test, faults_are_met_in_the_order_of_the_script_and_only_by_their_kind) {
    plan_->fail_next(call_kind::acquire, 1, {errc::store_unavailable, "first"});
    plan_->fail_next(call_kind::acquire, 1, {errc::store_error, "second"});
    EXPECT_TRUE(answered(engine_.inspect(name_)));
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::store_unavailable));
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::store_error));
}

TEST_F(fault_engine_test, a_failing_batch_of_renewals_has_an_answer_for_every_item) {
    plan_->fail_next(call_kind::renew, 1, {errc::store_unavailable, "no"});
    const engines::renew_request item{.name = name_, .owner = owner(), .ttl = 60s};
    const auto replies = engine_.renew({item, item, item});
    ASSERT_EQ(replies.size(), 3U);
    for (const auto& reply : replies) {
        EXPECT_TRUE(refused(reply, errc::store_unavailable));
    }
}

TEST_F(fault_engine_test, a_lost_reply_is_an_unknown_outcome_of_a_call_that_was_performed) {
    plan_->lose_replies_of_next(call_kind::acquire);
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::outcome_unknown));
    EXPECT_EQ(holders(), 1U);
}

TEST_F(fault_engine_test, a_delayed_reply_comes_when_it_is_let_go) {
    plan_->delay_replies_of_next(call_kind::acquire);
    acquire(engine_.raw(), clock::now() + patience);
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    EXPECT_EQ(holders(), 1U);
    EXPECT_EQ(answers_.count(), 0U);
    plan_->let_go();
    ASSERT_TRUE(answers_.wait_for(1, patience));
    EXPECT_TRUE(granted(*answer_));
    EXPECT_EQ(plan_->held(), 0U);
}

TEST_F(fault_engine_test, a_delayed_request_reaches_the_store_when_it_is_let_go) {
    plan_->delay_next(call_kind::acquire);
    acquire(engine_.raw(), clock::now() + patience);
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    EXPECT_EQ(holders(), 0U);
    plan_->let_go();
    ASSERT_TRUE(answers_.wait_for(1, patience));
    EXPECT_TRUE(granted(*answer_));
    EXPECT_EQ(holders(), 1U);
}

TEST_F(fault_engine_test, a_delayed_call_ends_at_its_deadline_and_still_reaches_the_store_later) {
    plan_->delay_next(call_kind::acquire);
    const auto deadline = clock::now() + 50ms;
    acquire(engine_.raw(), deadline);
    ASSERT_TRUE(answers_.wait_for(1, patience));
    EXPECT_GE(clock::now(), deadline);
    EXPECT_TRUE(refused(*answer_, errc::outcome_unknown));
    EXPECT_EQ(holders(), 0U);
    plan_->let_go();
    EXPECT_TRUE(eventually([&] { return holders() == 1; }));
    EXPECT_EQ(answers_.count(), 1U);
}

TEST_F(fault_engine_test, a_delayed_reply_is_lost_at_its_deadline) {
    plan_->delay_replies_of_next(call_kind::acquire);
    acquire(engine_.raw(), clock::now() + 50ms);
    ASSERT_TRUE(answers_.wait_for(1, patience));
    EXPECT_TRUE(refused(*answer_, errc::outcome_unknown));
    plan_->let_go();
    EXPECT_EQ(answers_.count(), 1U);
    EXPECT_EQ(holders(), 1U);
}

TEST_F(fault_engine_test, cut_off_means_unavailable_until_healed) {
    plan_->cut_off();
    EXPECT_TRUE(refused(engine_.acquire(request()), errc::store_unavailable));
    EXPECT_TRUE(refused(engine_.inspect(name_), errc::store_unavailable));
    EXPECT_EQ(holders(), 0U);
    plan_->heal();
    EXPECT_TRUE(granted(engine_.acquire(request())));
}

TEST_F(fault_engine_test, silence_means_no_answer_until_the_deadline) {
    plan_->go_silent();
    const auto deadline = clock::now() + 50ms;
    acquire(engine_.raw(), deadline);
    ASSERT_TRUE(answers_.wait_for(1, patience));
    EXPECT_GE(clock::now(), deadline);
    EXPECT_TRUE(refused(*answer_, errc::outcome_unknown));
    plan_->heal();
    EXPECT_EQ(holders(), 0U);
}

TEST_F(fault_engine_test, healing_gives_a_hint_to_everybody_who_watches) {
    event_counter hints;
    const auto watch =
        engine_.raw().offers().watching->watch(name_, lock_kind::mutex, hints.callback());
    ASSERT_TRUE(eventually([&] { return watch->active(); }));
    plan_->cut_off();
    EXPECT_FALSE(watch->active());
    const auto before = hints.count();
    plan_->heal();
    EXPECT_TRUE(hints.wait_for(before + 1, patience));
    EXPECT_TRUE(watch->active());
}

TEST_F(fault_engine_test, dropped_hints_are_lost_without_a_sign) {
    event_counter dropped;
    event_counter delivered;
    ASSERT_TRUE(granted(engine_.acquire(request())));
    const auto watch =
        engine_.raw().offers().watching->watch(name_, lock_kind::mutex, dropped.callback());
    const auto other_watch =
        witness_.raw().offers().watching->watch(name_, lock_kind::mutex, delivered.callback());
    ASSERT_TRUE(eventually([&] { return watch->active() && other_watch->active(); }));
    const auto before = dropped.count();
    plan_->drop_hints();
    EXPECT_TRUE(released(engine_.release({.name = name_, .owner = owner()})));
    ASSERT_TRUE(delivered.wait_for(1, patience));
    EXPECT_EQ(dropped.count(), before);
    EXPECT_TRUE(watch->active());

    plan_->deliver_hints();
    ASSERT_TRUE(granted(engine_.acquire(request())));
    EXPECT_TRUE(released(engine_.release({.name = name_, .owner = owner()})));
    EXPECT_TRUE(dropped.wait_for(before + 1, patience));
}

TEST_F(fault_engine_test, a_destroyed_engine_ends_what_was_kept_with_shut_down) {
    plan_->delay_next(call_kind::acquire);
    plan_->delay_replies_of_next(call_kind::release);
    auto engine = faulty_engine();
    acquire(*engine, clock::now() + patience);
    event_counter releases;
    engine->release({.name = name_, .owner = owner()}, {.deadline = clock::now() + patience},
                    [count = releases.callback()](const engines::release_reply& reply) {
                        EXPECT_TRUE(refused(reply, errc::shut_down));
                        count();
                    });
    ASSERT_TRUE(plan_->wait_until_held(2, patience));
    engine.reset();
    EXPECT_EQ(answers_.count(), 1U);
    EXPECT_TRUE(refused(*answer_, errc::shut_down));
    EXPECT_EQ(releases.count(), 1U);
    plan_->let_go();
    EXPECT_EQ(holders(), 0U);
}

}  // namespace

}  // namespace holdfast::testing
