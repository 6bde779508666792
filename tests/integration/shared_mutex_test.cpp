#include <mutex>
#include <shared_mutex>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class shared_mutex_test : public stage {
protected:
    /// Unlocks what `near_` is locked as.
    shared_mutex near_{client_, "catalogue"};
    shared_mutex far_{other_, "catalogue"};
};

TEST_F(shared_mutex_test, readers_are_in_together) {
    const auto one = near_.acquire_shared();
    const auto two = near_.acquire_shared();
    const auto three = far_.acquire_shared();
    EXPECT_EQ(holders("catalogue").size(), 3U);
    EXPECT_TRUE(one && two && three);
}

TEST_F(shared_mutex_test, a_reader_keeps_writers_out) {
    const std::shared_lock reading{near_};
    EXPECT_FALSE(near_.try_lock());
    EXPECT_FALSE(far_.try_lock());
    EXPECT_FALSE(far_.try_lock_for(30ms));
}

TEST_F(shared_mutex_test, a_writer_keeps_everybody_out) {
    const std::unique_lock writing{near_};
    EXPECT_FALSE(near_.try_lock_shared());
    EXPECT_FALSE(far_.try_lock_shared());
    EXPECT_FALSE(far_.try_lock());
    EXPECT_FALSE(far_.try_lock_shared_for(30ms));
}

TEST_F(shared_mutex_test, a_waiting_writer_gets_in_when_the_last_reader_leaves) {
    auto one = far_.acquire_shared();
    auto two = far_.acquire_shared();
    auto writer = in_background([&] { return near_.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    one.release();
    EXPECT_FALSE(is_done(writer));
    two.release();
    EXPECT_TRUE(writer.get());
}

TEST_F(shared_mutex_test, waiting_readers_all_get_in_when_the_writer_leaves) {
    auto writing = far_.acquire();
    auto one = in_background([&] { return near_.acquire_shared(); });
    auto two = in_background([&] { return near_.acquire_shared(); });
    ASSERT_TRUE(eventually([&] { return plan_->calls(call_kind::acquire) >= 2; }));
    writing.release();
    const auto first = one.get();
    const auto second = two.get();
    EXPECT_TRUE(first && second);
    EXPECT_EQ(holders("catalogue").size(), 2U);
}

TEST_F(shared_mutex_test, a_waiting_reader_can_be_cancelled) {
    const auto writing = far_.acquire();
    std::stop_source stop;
    auto reader = in_background([&] { return near_.lock_shared_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stop.request_stop();
    EXPECT_FALSE(reader.get());
}

TEST_F(shared_mutex_test, a_writers_token_is_larger_than_those_of_the_readers_before) {
    const auto reader = near_.acquire_shared().token();
    const auto writer = far_.acquire().token();
    EXPECT_LT(reader, writer);
}

TEST_F(shared_mutex_test, a_downgraded_writer_keeps_its_token_and_lets_readers_in) {
    auto writing = near_.acquire();
    const auto token = writing.token();
    auto reading = writing.downgrade();
    EXPECT_FALSE(writing);
    EXPECT_EQ(reading.token(), token);
    EXPECT_EQ(holders("catalogue").at(0).mode, claim_mode::shared);
    EXPECT_EQ(holders("catalogue").at(0).token, token);
    EXPECT_TRUE(far_.try_lock_shared());
    EXPECT_FALSE(far_.try_lock());
    far_.unlock_shared();
    EXPECT_EQ(reading.release(), release_outcome::released);
    EXPECT_TRUE(holders("catalogue").empty());
}

TEST_F(shared_mutex_test, a_downgrade_lets_waiting_readers_in) {
    auto writing = far_.acquire();
    auto reader = in_background([&] { return near_.acquire_shared(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    const auto reading = writing.downgrade();
    EXPECT_TRUE(reader.get());
}

TEST_F(shared_mutex_test, a_downgraded_hold_is_still_renewed) {
    shared_mutex brief{client_, "brief", {.ttl = 600ms}};
    const auto reading = brief.acquire().downgrade();
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, 4));
    EXPECT_TRUE(reading);
}

TEST_F(shared_mutex_test, the_only_reader_becomes_the_writer_with_a_larger_token) {
    auto reading = near_.acquire_shared();
    const auto as_reader = holders("catalogue").at(0).token;
    auto writing = reading.try_upgrade();
    ASSERT_TRUE(writing);
    EXPECT_FALSE(reading);
    EXPECT_GT(writing->token(), as_reader);
    EXPECT_FALSE(far_.try_lock_shared());
    EXPECT_EQ(writing->release(), release_outcome::released);
    EXPECT_TRUE(holders("catalogue").empty());
}

TEST_F(shared_mutex_test, one_of_two_readers_stays_a_reader) {
    const auto other_reader = far_.acquire_shared();
    auto reading = near_.acquire_shared();
    EXPECT_FALSE(reading.try_upgrade());
    EXPECT_EQ(holders("catalogue").size(), 2U);
    EXPECT_TRUE(reading);
}

TEST_F(shared_mutex_test, a_conversion_to_what_the_lease_is_already_asks_nobody) {
    auto reading = near_.acquire_shared();
    const auto token = reading.token();
    const auto asked = requests();
    auto still_reading = reading.downgrade();
    EXPECT_EQ(still_reading.token(), token);
    auto writing = still_reading.try_upgrade();
    ASSERT_TRUE(writing);
    auto still_writing = writing->try_upgrade();
    ASSERT_TRUE(still_writing);
    EXPECT_EQ(requests(), asked + 1);
}

TEST_F(shared_mutex_test, only_a_lease_of_a_shared_mutex_can_be_converted) {
    auto plain = mutex{client_, "plain"}.acquire();
    EXPECT_EQ(error_of([&] { return plain.downgrade(); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return plain.try_upgrade(); }), errc::invalid_argument);
    EXPECT_TRUE(plain);
    lease empty;
    EXPECT_EQ(error_of([&] { return empty.downgrade(); }), errc::lost);
    EXPECT_EQ(error_of([&] { return empty.try_upgrade(); }), errc::lost);
}

TEST_F(shared_mutex_test, a_lost_writer_cannot_become_a_reader) {
    auto writing = near_.acquire();
    revoke("catalogue");
    ASSERT_TRUE(eventually([&] { return writing.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { return writing.downgrade(); }), errc::revoked);
}

TEST_F(shared_mutex_test, a_lost_reader_cannot_become_the_writer) {
    auto reading = near_.acquire_shared();
    revoke("catalogue");
    ASSERT_TRUE(eventually([&] { return reading.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { return reading.try_upgrade(); }), errc::revoked);
}

TEST_F(shared_mutex_test, a_downgrade_whose_answer_is_lost_is_asked_again) {
    auto writing = near_.acquire();
    plan_->lose_replies_of_next(call_kind::acquire);
    auto reading = writing.downgrade();
    EXPECT_TRUE(reading);
    EXPECT_EQ(reading.release(), release_outcome::released);
    EXPECT_TRUE(holders("catalogue").empty());
}

TEST_F(shared_mutex_test, an_upgrade_whose_answer_is_lost_leaves_a_reader_that_can_let_go) {
    auto reading = near_.acquire_shared();
    plan_->lose_replies_of_next(call_kind::acquire);
    EXPECT_EQ(error_of([&] { return reading.try_upgrade(); }), errc::outcome_unknown);
    EXPECT_TRUE(reading);
    EXPECT_EQ(reading.release(), release_outcome::released);
    EXPECT_TRUE(holders("catalogue").empty());
}

TEST_F(shared_mutex_test, whoever_counts_as_the_writer_is_the_writer_in_the_store) {
    auto writing = near_.acquire();
    plan_->lose_replies_of_next(call_kind::acquire);
    lease reading;
    static_cast<void>(error_of([&] {
        reading = writing.downgrade();
        return true;
    }));
    EXPECT_NE(far_.try_acquire_shared().has_value(), static_cast<bool>(writing));
}

TEST_F(shared_mutex_test, a_reader_that_is_cut_off_keeps_writers_out_no_longer_than_its_ttl) {
    const auto reading = shared_mutex{client_, "catalogue", {.ttl = 100ms}}.acquire_shared();
    plan_->cut_off();
    EXPECT_TRUE(far_.try_lock_for(patience));
    EXPECT_FALSE(reading);
    far_.unlock();
}

TEST_F(shared_mutex_test, two_reader_threads_of_one_object_release_their_own) {
    near_.lock_shared();
    const auto mine = holders("catalogue").at(0).owner;
    auto other_thread = in_background([&] {
        near_.lock_shared();
        near_.unlock_shared();
    });
    other_thread.get();
    ASSERT_EQ(holders("catalogue").size(), 1U);
    EXPECT_EQ(holders("catalogue").at(0).owner, mine);
    near_.unlock_shared();
}

TEST_F(shared_mutex_test, two_threads_do_not_convert_one_share_at_once) {
    core::claim reading;
    reading.name = "catalogue";
    reading.mode = claim_mode::shared;
    reading.kind = lock_kind::shared_mutex;
    reading.terms.ttl = 10s;
    reading.terms.margin = 100ms;
    reading.terms.release_timeout = 2s;
    auto& session = *detail::access::session_of(client_);
    const auto share = session.acquire(reading, {}).taken;
    ASSERT_TRUE(share);
    plan_->delay_next(call_kind::acquire);
    const auto convert = [&] { return session.convert(*share, claim_mode::exclusive).code; };
    auto first = in_background(convert);
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::acquire, 2, patience));
    auto second = in_background(convert);
    ASSERT_TRUE(gets_done(second));
    EXPECT_EQ(second.get(), errc::not_owner);
    plan_->let_go();
    EXPECT_EQ(first.get(), errc{});
    EXPECT_EQ(session.release(*share, {}), release_outcome::released);
}

}  // namespace

}  // namespace holdfast::testing
