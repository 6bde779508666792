#include <records/exchange.hpp>

#include <support.hpp>

namespace holdfast::engines::test::exchanges {

namespace {

using records::exchange;
using records::known_records;
using records::moment;
using records::operation;
using records::saved_record;
using records::verdict;
using action = exchange::action;

constexpr clock::time_point start{100s};
constexpr std::chrono::microseconds store_start{1'000'000'000'000};

/// Writes the script of a conversation: what the machine asks for, what the store answers.
class script : public ::testing::Test {
protected:
    [[nodiscard]] exchange acquiring(std::int64_t sequence = 1) {
        return {known_,
                {.name = "stock",
                 .rule =
                     [this, sequence](saved_record& record, const moment& at) {
                         auto result =
                             records::acquire(record.holds, exclusive("stock", {1, 1, sequence}, 10s),
                                              at, record.last_token);
                         granted_ = std::move(result.reply);
                         return verdict{result.changed, result.freed};
                     }},
                start + 1min,
                1};
    }
    [[nodiscard]] exchange renewing(std::int64_t sequence = 1) {
        return {
            known_,
            {.name = "stock",
             .owner = {1, 1, sequence},
             .rule =
                 [this, sequence](saved_record& record, const moment& at) {
                     auto result = records::renew(
                         record,
                         {.name = "stock", .owner = {1, 1, sequence}, .ttl = std::chrono::seconds{10}},
                         at.now);
                     renewed_ = std::move(result.reply);
                     return verdict{result.changed, result.freed};
                 }},
            start + 1min,
            4};
    }
    [[nodiscard]] exchange releasing(std::int64_t sequence = 1) {
        return {known_,
                {.name = "stock",
                 .rule =
                     [this, sequence](saved_record& record, const moment& at) {
                         auto result = records::release(
                             record, {.name = "stock", .owner = {1, 1, sequence}}, at.now);
                         released_ = std::move(result.reply);
                         return verdict{result.changed, result.freed};
                     },
                 .repetition = operation::kind::once},
                start + 1min,
                2};
    }
    [[nodiscard]] exchange looking() {
        return {known_,
                {.name = "stock",
                 .rule = [](saved_record&, const moment&) { return verdict{}; },
                 .repetition = operation::kind::looks},
                start + 1min,
                3};
    }
    /// An answer that took from `now` to a millisecond later, halfway through which the store's clock
    /// was read.
    [[nodiscard]] action answer(exchange& machine, record_reply::outcome result,
                                stored_record current = {}, failure error = {}) {
        const auto sent = now_;
        now_ += 1ms;
        return machine.on_reply(
            {.result = result,
             .current = std::move(current),
             .now = store_start + std::chrono::duration_cast<std::chrono::microseconds>(now_ - start) -
                    500us,
             .error = std::move(error)},
            sent, now_);
    }
    [[nodiscard]] action silence(exchange& machine) {
        return answer(machine, record_reply::outcome::failed, {}, {errc::outcome_unknown, "no answer"});
    }
    /// The store does what the machine wants, and says so.
    [[nodiscard]] action write(exchange& machine) {
        stored_ = {++version_, machine.change().bytes};
        return answer(machine, record_reply::outcome::done, {version_, {}});
    }
    [[nodiscard]] action show(exchange& machine) {
        return answer(machine, record_reply::outcome::done, stored_);
    }
    /// The lock, taken in two requests by an engine that has not seen the store before.
    void take(std::int64_t sequence = 1) {
        auto machine = acquiring(sequence);
        ASSERT_EQ(machine.start(now_), action::read);
        ASSERT_EQ(show(machine), action::replace);
        ASSERT_EQ(write(machine), action::finish);
    }

    known_records known_;
    acquire_reply granted_;
    renew_reply renewed_;
    release_reply released_;
    clock::time_point now_{start};
    std::uint64_t version_{};
    stored_record stored_;
};

TEST_F(script, the_first_request_to_a_store_reads_because_it_needs_the_stores_time) {
    auto machine = acquiring();
    EXPECT_EQ(machine.start(now_), action::read);
    EXPECT_EQ(show(machine), action::replace);
    EXPECT_EQ(machine.change().version, 0U);
    EXPECT_EQ(write(machine), action::finish);
    EXPECT_FALSE(machine.error());
    EXPECT_EQ(granted_.result, granted);
}

TEST_F(script, an_uncontended_release_and_the_next_acquire_take_one_request_each) {
    take();
    auto release = releasing();
    ASSERT_EQ(release.start(now_), action::replace);
    EXPECT_EQ(release.change().version, 1U);
    EXPECT_TRUE(release.change().frees);
    ASSERT_EQ(write(release), action::finish);
    EXPECT_EQ(released_.result, release_reply::outcome::released);
    auto again = acquiring(2);
    ASSERT_EQ(again.start(now_), action::replace);
    EXPECT_EQ(again.change().version, 2U);
    EXPECT_EQ(write(again), action::finish);
}

TEST_F(script, a_name_nobody_has_asked_for_is_inserted_at_once) {
    auto look = looking();
    ASSERT_EQ(look.start(now_), action::read);
    ASSERT_EQ(show(look), action::finish);
    ASSERT_TRUE(known_.take("stock"));
    auto machine = acquiring();
    EXPECT_EQ(machine.start(now_), action::replace);
    EXPECT_EQ(machine.change().version, 0U);
}

TEST_F(script, a_lock_that_is_known_to_be_taken_is_looked_at_before_it_is_called_busy) {
    take(1);
    auto machine = acquiring(2);
    EXPECT_EQ(machine.start(now_), action::read);
    EXPECT_EQ(show(machine), action::finish);
    EXPECT_EQ(granted_.result, busy);
}

TEST_F(script, after_a_conflict_it_decides_on_what_is_there) {
    take(1);
    auto release = releasing(1);
    ASSERT_EQ(release.start(now_), action::replace);
    ASSERT_EQ(write(release), action::finish);
    auto machine = acquiring(2);
    ASSERT_EQ(machine.start(now_), action::replace);
    saved_record taken;
    taken.last_token = 5;
    taken.holds.push_back(
        {.owner = {9, 9, 9}, .first_token = {5}, .expires = clock::time_point{store_start + 1h}});
    EXPECT_EQ(answer(machine, record_reply::outcome::conflict, {77, records::encode(taken)}),
              action::finish);
    EXPECT_EQ(granted_.result, busy);
}

TEST_F(script, a_lease_never_ends_in_the_store_before_its_holder_thinks_so) {
    take(1);
    auto release = releasing(1);
    ASSERT_EQ(release.start(now_), action::replace);
    ASSERT_EQ(write(release), action::finish);
    now_ += 5s;
    const auto asked_at = now_;
    auto machine = acquiring(2);
    ASSERT_EQ(machine.start(now_), action::replace);
    const auto record = records::decode(machine.change().bytes);
    ASSERT_TRUE(record);
    const auto expires = record->holds.at(0).expires;
    const auto store_at_asking = clock::time_point{store_start} + (asked_at - start);
    EXPECT_LE(expires, store_at_asking + 10s);
    EXPECT_GE(expires, store_at_asking + 10s - 20ms);
    ASSERT_EQ(write(machine), action::finish);
    const auto ttl = machine.shortened_ttl(expires, 10s, asked_at);
    EXPECT_GT(ttl, 9900ms);
    EXPECT_LE(store_at_asking + ttl, expires);
}

TEST_F(script, a_stores_clock_that_jumped_ahead_shortens_the_lease_that_is_reported) {
    take(1);
    auto machine = acquiring(1);
    ASSERT_EQ(machine.start(now_), action::replace);
    const auto sent = now_;
    const auto expires = records::decode(machine.change().bytes).value().holds.at(0).expires;
    ASSERT_EQ(machine.on_reply({.result = record_reply::outcome::done,
                                .current = {2, {}},
                                .now = store_start + 4s,
                                .error = {}},
                               sent, now_ + 1ms),
              action::finish);
    const auto left = machine.shortened_ttl(expires, 10s, sent);
    EXPECT_GT(left, 5s);
    EXPECT_LT(left, 7s);
}

TEST_F(script, a_renewal_that_may_come_after_the_end_of_the_lease_reads_first) {
    take();
    now_ = start + 10s;  // the lease ends within the millisecond that the answer took
    auto renewal = renewing();
    EXPECT_EQ(renewal.start(now_), action::read);
}

TEST_F(script, a_renewal_that_took_effect_after_the_end_of_the_lease_is_taken_back) {
    take();
    now_ = start + 9990ms;
    auto renewal = renewing();
    ASSERT_EQ(renewal.start(now_), action::replace);
    now_ += 1s;
    ASSERT_EQ(write(renewal), action::replace);
    EXPECT_TRUE(records::decode(renewal.change().bytes).value().holds.empty());
    EXPECT_TRUE(renewal.change().frees);
    EXPECT_EQ(write(renewal), action::finish);
    EXPECT_EQ(renewed_.result, renew_reply::outcome::gone);
}

TEST_F(script, a_renewal_without_an_answer_does_not_count_later_once_the_lease_is_over) {
    take();
    now_ = start + 9s;
    auto renewal = renewing();
    ASSERT_EQ(renewal.start(now_), action::replace);
    const auto late = renewal.change().bytes;
    ASSERT_EQ(silence(renewal), action::pause);
    now_ = start + 2min;
    ASSERT_EQ(renewal.on_pause_over(now_), action::finish);
    // It arrives when the lease is over.
    stored_ = {++version_, late};
    now_ = start + 11s;
    auto again = renewing();
    ASSERT_EQ(again.start(now_), action::read);
    ASSERT_EQ(show(again), action::replace);
    EXPECT_TRUE(records::decode(again.change().bytes).value().holds.empty());
    EXPECT_EQ(write(again), action::finish);
    EXPECT_EQ(renewed_.result, renew_reply::outcome::gone);
}

TEST_F(script, of_two_writes_of_a_renewal_the_earlier_may_have_taken_effect) {
    take();
    auto renewal = renewing();
    ASSERT_EQ(renewal.start(now_), action::replace);
    const auto first = renewal.change().bytes;
    ASSERT_EQ(silence(renewal), action::pause);
    ASSERT_EQ(renewal.on_pause_over(now_), action::read);
    now_ += 1s;
    ASSERT_EQ(show(renewal), action::replace);
    stored_ = {++version_, first};
    // The rule's answer is about the later end: it must be in the record.
    ASSERT_EQ(answer(renewal, record_reply::outcome::conflict, stored_), action::replace);
    EXPECT_EQ(write(renewal), action::finish);
    EXPECT_EQ(renewed_.result, renew_reply::outcome::renewed);
}

TEST_F(script, a_write_without_an_answer_that_took_effect_counts) {
    take(1);
    auto release = releasing(1);
    ASSERT_EQ(release.start(now_), action::replace);
    stored_ = {++version_, release.change().bytes};
    ASSERT_EQ(silence(release), action::pause);
    ASSERT_EQ(release.on_pause_over(now_), action::read);
    EXPECT_EQ(show(release), action::finish);
    EXPECT_FALSE(release.error());
    EXPECT_EQ(released_.result, release_reply::outcome::released);
    EXPECT_FALSE(known_.doubted("stock"));
}

TEST_F(script, a_release_that_may_have_been_followed_by_others_writes_is_not_guessed) {
    take(1);
    auto release = releasing(1);
    ASSERT_EQ(release.start(now_), action::replace);
    ASSERT_EQ(silence(release), action::pause);
    ASSERT_EQ(release.on_pause_over(now_), action::read);
    stored_ = {50, records::encode({})};
    EXPECT_EQ(show(release), action::finish);
    EXPECT_EQ(release.error().code, errc::outcome_unknown);
}

TEST_F(script, while_a_write_may_still_arrive_gone_is_not_said_before_the_record_has_changed) {
    auto machine = acquiring(1);
    ASSERT_EQ(machine.start(now_), action::read);
    ASSERT_EQ(show(machine), action::replace);
    ASSERT_EQ(silence(machine), action::pause);
    now_ = start + 2min;
    ASSERT_EQ(machine.on_pause_over(now_), action::finish);
    EXPECT_EQ(machine.error().code, errc::outcome_unknown);
    // The caller gives up, and releases what it may have.
    auto release = exchange{
        known_,
        {.name = "stock",
         .rule =
             [this](saved_record& record, const moment& at) {
                 auto result = records::release(record, {.name = "stock", .owner = {1, 1, 1}}, at.now);
                 released_ = std::move(result.reply);
                 return verdict{result.changed, result.freed};
             },
         .repetition = operation::kind::once},
        now_ + 1min,
        5};
    ASSERT_EQ(release.start(now_), action::read);
    ASSERT_EQ(show(release), action::replace) << "the write that was not answered could come now";
    EXPECT_EQ(release.change().version, 0U);
    EXPECT_EQ(write(release), action::finish);
    EXPECT_EQ(released_.result, release_reply::outcome::gone);
    EXPECT_FALSE(known_.doubted("stock"));
}

TEST_F(script, conflicts_without_end_end_at_the_deadline) {
    auto machine = acquiring(1);
    ASSERT_EQ(machine.start(now_), action::read);
    auto next = show(machine);
    int steps = 0;
    for (; next != action::finish && steps < 1'000'000; ++steps) {
        if (next == action::pause) {
            EXPECT_LE(machine.pause(), 21ms);
            now_ += machine.pause();
            next = machine.on_pause_over(now_);
        } else {
            next = answer(machine, record_reply::outcome::conflict, {++version_, records::encode({})});
        }
    }
    EXPECT_EQ(machine.error().code, errc::store_unavailable);
    EXPECT_GE(now_, start + 1min);
    EXPECT_LT(now_, start + 61s);
}

TEST_F(script, a_damaged_record_is_an_error_and_is_not_replaced) {
    auto machine = acquiring(1);
    ASSERT_EQ(machine.start(now_), action::read);
    stored_ = {3, "something else"};
    EXPECT_EQ(show(machine), action::finish);
    EXPECT_EQ(machine.error().code, errc::store_error);
}

TEST_F(script, a_record_is_needed_for_a_while_after_it_says_nothing) {
    take(1);
    auto release = releasing(1);
    ASSERT_EQ(release.start(now_), action::replace);
    EXPECT_GE(release.change().needed_until, store_start + 10min);
}

TEST_F(script, tokens_of_a_new_record_start_at_the_stores_time) {
    take(1);
    EXPECT_GE(granted_.first_token.value, static_cast<std::uint64_t>(store_start.count()));
}

}  // namespace

}  // namespace holdfast::engines::test::exchanges
