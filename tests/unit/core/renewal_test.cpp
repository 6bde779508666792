#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/renewal.hpp>
#include <core/script.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace script;
using holdfast::claim_mode;
using holdfast::errc;
using holdfast::core::renewal;
using holdfast::core::tenure_id;
using holdfast::core::terms;
using kind = renewal::event::kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A ttl of 30 s: due after 10 s, in jeopardy at 19.5 s, lost at 29.5 s, forgotten by the store at 30 s.
class renewal_script : public testing::Test {
protected:
    void add(tenure_id id, holdfast::clock::time_point sent_at = at(0ms),
             const terms& how = lease_terms(), bool incomplete = false,
             std::optional<std::chrono::milliseconds> granted = {}) {
        auto& one = held[id];
        one.name = std::make_shared<const std::string>("lock" + std::to_string(id));
        one.terms = std::make_shared<const terms>(how);
        one.owner = owner(static_cast<std::int64_t>(id));
        leases.add(one, id, sent_at, granted.value_or(how.ttl), incomplete);
    }

    void suspect_all(holdfast::clock::time_point now) {
        for (auto& [id, one] : held) {
            leases.suspect(one, now);
        }
    }

    std::vector<renewal::event> time(holdfast::clock::duration since_start) {
        return leases.on_time(at(since_start));
    }

    /// What is sent at this moment.
    std::vector<tenure_id> due(holdfast::clock::duration since_start) {
        EXPECT_THAT(time(since_start), IsEmpty());
        return leases.next_batch(at(since_start)).ids;
    }

    /// The answer, at once, to a request sent for this lease alone.
    std::vector<renewal::event> answer(tenure_id id, const holdfast::engines::renew_reply& reply,
                                       holdfast::clock::duration sent, holdfast::clock::duration now) {
        const auto event = leases.on_reply(held.at(id), reply, at(sent), at(now));
        return event ? std::vector{*event} : std::vector<renewal::event>{};
    }

    std::map<tenure_id, renewal::tenure> held;
    renewal leases;
};

TEST_F(renewal_script, fresh_lease_is_left_alone_until_a_third_of_its_ttl) {
    add(1);

    EXPECT_EQ(leases.wake_at(), at(10s));
    EXPECT_THAT(due(10s - 1ns), IsEmpty());
    EXPECT_THAT(due(10s), ElementsAre(1));
}

TEST_F(renewal_script, lease_counts_for_the_ttl_that_the_store_granted) {
    add(1, at(0ms), lease_terms(), false, 12s);

    EXPECT_EQ(held.at(1).valid_until(), at(12s - lease_terms().margin));
    EXPECT_THAT(due(4s - 1ns), IsEmpty()) << "a third of what was granted";
    EXPECT_THAT(due(4s), ElementsAre(1));
}

TEST_F(renewal_script, renewal_counts_for_the_ttl_that_the_store_granted_and_never_moves_back) {
    const auto renewed_for = [](std::chrono::milliseconds ttl) {
        return holdfast::engines::renew_reply{
            .result = holdfast::engines::renew_reply::outcome::renewed, .error = {}, .ttl = ttl};
    };
    add(1);
    ASSERT_THAT(due(10s), ElementsAre(1));
    (void)answer(1, renewed_for(25s), 10s, 10s);
    EXPECT_EQ(held.at(1).valid_until(), at(35s - lease_terms().margin));
    ASSERT_THAT(due(19s), ElementsAre(1));
    (void)answer(1, renewed_for(12s), 19s, 19s);
    EXPECT_EQ(held.at(1).valid_until(), at(35s - lease_terms().margin));
    EXPECT_THAT(due(23s - 1ns), IsEmpty());
    ASSERT_THAT(due(23s), ElementsAre(1)) << "a third of what was granted last";
    (void)answer(1, renewed_for(90s), 23s, 23s);
    EXPECT_EQ(held.at(1).valid_until(), at(53s - lease_terms().margin)) << "no more than asked for";
}

TEST_F(renewal_script,
       lease_that_a_part_of_the_store_does_not_know_is_renewed_soon_until_all_of_it_does) {
    const holdfast::engines::renew_reply still_incomplete{
        .result = holdfast::engines::renew_reply::outcome::renewed, .incomplete = true};
    add(1, at(0ms), lease_terms(), true);

    EXPECT_THAT(due(50ms - 1ns), IsEmpty());
    EXPECT_THAT(due(50ms), ElementsAre(1));
    EXPECT_EQ(answer(1, still_incomplete, 50ms, 51ms).at(0).type, kind::extended);
    EXPECT_THAT(due(150ms), ElementsAre(1));
    EXPECT_EQ(answer(1, renewed(), 150ms, 151ms).at(0).type, kind::extended);
    EXPECT_EQ(leases.wake_at(), at(10s + 150ms));
}

TEST_F(renewal_script, lease_that_stays_incomplete_is_renewed_no_later_than_others) {
    const holdfast::engines::renew_reply still_incomplete{
        .result = holdfast::engines::renew_reply::outcome::renewed, .incomplete = true};
    add(1, at(0ms), lease_terms(), true);

    auto sent = holdfast::clock::duration{50ms};
    for (int round = 0; round < 100; ++round) {
        ASSERT_THAT(due(sent), ElementsAre(1));
        (void)answer(1, still_incomplete, sent, sent);
        ASSERT_LE(leases.wake_at(), at(sent + 10s));
        sent = leases.wake_at() - at(0ms);
    }
}

TEST_F(renewal_script,
       fixed_lease_that_a_part_of_the_store_does_not_know_is_asked_after_but_not_extended) {
    auto fixed = lease_terms();
    fixed.renewal = holdfast::renewal_mode::none;
    add(1, at(0ms), fixed, true);

    EXPECT_THAT(due(50ms), ElementsAre(1));
    EXPECT_THAT(answer(1, renewed(), 50ms, 51ms), IsEmpty());
    EXPECT_EQ(held.at(1).valid_until(), at(29s + 500ms));
    EXPECT_EQ(leases.wake_at(), at(29s + 500ms));
}

TEST_F(renewal_script, request_names_the_lease_and_its_terms) {
    add(1);
    (void)time(10s);

    const auto batch = leases.next_batch(at(10s));

    ASSERT_EQ(batch.requests.size(), 1U);
    EXPECT_EQ(batch.requests[0].name, "lock1");
    EXPECT_EQ(batch.requests[0].mode, claim_mode::exclusive);
    EXPECT_EQ(batch.requests[0].owner, owner(1));
    EXPECT_EQ(batch.requests[0].ttl, 30s);
    EXPECT_EQ(batch.useful_until, at(29'500ms));
}

TEST_F(renewal_script, validity_is_counted_from_the_request_that_brought_the_grant) {
    add(1, at(2s));

    EXPECT_EQ(held.at(1).valid_until(), at(2s + 29'500ms));
}

TEST_F(renewal_script, renewed_lease_is_valid_from_the_moment_the_renewal_was_sent) {
    add(1);
    (void)due(10s);

    const auto events = answer(1, renewed(), 10s, 12s);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::extended);
    EXPECT_EQ(events[0].id, 1U);
    EXPECT_EQ(events[0].valid_until, at(10s + 29'500ms));
    EXPECT_EQ(held.at(1).valid_until(), at(10s + 29'500ms));
}

TEST_F(renewal_script, renewed_lease_is_due_a_third_after_the_renewal_was_sent) {
    add(1);
    (void)due(10s);
    (void)answer(1, renewed(), 10s, 12s);

    EXPECT_EQ(leases.wake_at(), at(20s));
    EXPECT_THAT(due(20s), ElementsAre(1));
}

TEST_F(renewal_script, request_under_way_is_not_sent_again) {
    add(1);
    (void)due(10s);

    EXPECT_THAT(due(15s), IsEmpty());
}

TEST_F(renewal_script, answer_to_an_older_request_never_moves_a_deadline_back) {
    add(1, at(5s));

    (void)answer(1, renewed(), 1s, 6s);

    EXPECT_EQ(held.at(1).valid_until(), at(5s + 29'500ms));
}

TEST_F(renewal_script, neighbours_go_along) {
    add(1, at(0s));
    add(2, at(2500ms));
    add(3, at(1s));

    EXPECT_THAT(due(10s), ElementsAre(1, 3, 2));
}

TEST_F(renewal_script, lease_that_has_more_than_a_quarter_of_its_period_left_does_not_go_along) {
    add(1, at(0s));
    add(2, at(2501ms));

    EXPECT_THAT(due(10s), ElementsAre(1));
    EXPECT_EQ(leases.wake_at(), at(12'501ms));
}

TEST_F(renewal_script, lease_whose_renewal_is_under_way_does_not_go_along) {
    add(1);
    (void)due(10s);
    add(2, at(9s));

    EXPECT_THAT(due(19s), ElementsAre(2));
}

TEST_F(renewal_script, batch_is_useful_until_the_last_of_its_deadlines) {
    add(1, at(0s));
    add(2, at(1s));
    (void)time(10s);

    EXPECT_EQ(leases.next_batch(at(10s)).useful_until, at(1s + 29'500ms));
}

TEST_F(renewal_script, batch_holds_at_most_256_and_the_rest_follows) {
    for (tenure_id id = 1; id <= 300; ++id) {
        add(id);
    }
    (void)time(10s);

    EXPECT_EQ(leases.next_batch(at(10s)).ids.size(), 256U);
    EXPECT_EQ(leases.next_batch(at(10s)).ids.size(), 44U);
    EXPECT_THAT(leases.next_batch(at(10s)).ids, IsEmpty());
}

TEST_F(renewal_script, failed_renewal_is_not_loss) {
    add(1);
    (void)due(10s);

    const auto events = answer(1, not_renewed(errc::store_unavailable), 10s, 11s);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::failed);
    EXPECT_EQ(events[0].error.code, errc::store_unavailable);
    EXPECT_EQ(held.at(1).valid_until(), at(29'500ms));
}

TEST_F(renewal_script, failed_renewal_is_tried_again_after_a_twentieth_of_the_ttl) {
    add(1);
    (void)due(10s);
    (void)answer(1, not_renewed(errc::store_unavailable), 10s, 11s);

    EXPECT_EQ(leases.wake_at(), at(12'500ms));
    EXPECT_THAT(due(12'500ms), ElementsAre(1));
}

TEST_F(renewal_script, short_leases_are_not_tried_again_sooner_than_after_five_milliseconds) {
    add(1, at(0ms), lease_terms(60ms));
    (void)due(20ms);
    (void)answer(1, not_renewed(errc::store_unavailable), 20ms, 21ms);

    EXPECT_EQ(leases.wake_at(), at(26ms));
}

TEST_F(renewal_script, jeopardy_is_reported_once) {
    add(1);
    (void)due(10s);

    const auto events = time(19'500ms);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::jeopardy);
    EXPECT_THAT(time(19'501ms), IsEmpty());
    EXPECT_THAT(time(29'499ms), IsEmpty());
}

TEST_F(renewal_script, failures_after_jeopardy_do_not_report_it_again) {
    add(1);
    (void)due(10s);
    (void)time(19'500ms);
    (void)answer(1, not_renewed(errc::outcome_unknown), 10s, 20s);

    EXPECT_THAT(due(21'500ms), ElementsAre(1));
}

TEST_F(renewal_script, jeopardy_is_reported_again_after_a_recovery) {
    add(1);
    (void)due(10s);
    (void)time(19'500ms);
    (void)answer(1, renewed(), 10s, 20s);
    (void)due(20s);

    const auto events = time(10s + 19'500ms);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::jeopardy);
}

TEST_F(renewal_script, deadline_is_loss_without_any_answer) {
    add(1);
    (void)due(10s);
    (void)time(19'500ms);
    EXPECT_EQ(leases.wake_at(), at(29'500ms));

    const auto events = time(29'500ms);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::lost);
    EXPECT_EQ(events[0].error.code, errc::lost);
    EXPECT_EQ(events[0].valid_until, at(29'500ms));
    EXPECT_EQ(leases.size(), 0U);
    EXPECT_EQ(leases.wake_at(), never);
}

TEST_F(renewal_script, lease_whose_deadline_passed_unnoticed_is_lost_rather_than_renewed) {
    add(1);

    const auto events = time(1h);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::lost);
    EXPECT_THAT(leases.next_batch(at(1h)).ids, IsEmpty());
}

TEST_F(renewal_script, answer_after_the_deadline_does_not_revive_a_lease) {
    add(1);
    (void)due(10s);
    (void)time(19'500ms);

    const auto late = answer(1, renewed(), 10s, 29'500ms);
    const auto afterwards = time(29'500ms);

    ASSERT_EQ(late.size() + afterwards.size(), 1U);
    EXPECT_EQ((late.empty() ? afterwards : late)[0].type, kind::lost);
    EXPECT_EQ(leases.size(), 0U);
}

TEST_F(renewal_script, gone_is_loss_for_the_reason_that_the_store_gives) {
    add(1);
    (void)due(10s);

    const auto events = answer(1, gone({errc::revoked, "by alice: stuck"}), 10s, 11s);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::lost);
    EXPECT_EQ(events[0].error.code, errc::revoked);
    EXPECT_EQ(events[0].error.detail, "by alice: stuck");
    EXPECT_EQ(leases.size(), 0U);
    EXPECT_EQ(leases.wake_at(), never);
}

TEST_F(renewal_script, gone_without_a_reason_is_plain_loss) {
    add(1);
    (void)due(10s);

    const auto events = answer(1, gone(), 10s, 11s);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].error.code, errc::lost);
}

TEST_F(renewal_script, removed_lease_is_never_renewed) {
    add(1);

    leases.remove(held.at(1));

    EXPECT_EQ(leases.wake_at(), never);
    EXPECT_THAT(due(10s), IsEmpty());
}

TEST_F(renewal_script, lease_removed_between_due_and_sent_is_not_sent) {
    add(1);
    add(2);
    (void)time(10s);

    leases.remove(held.at(1));

    EXPECT_THAT(leases.next_batch(at(10s)).ids, ElementsAre(2));
}

TEST_F(renewal_script, removing_what_was_removed_does_nothing) {
    add(1);
    add(2);
    leases.remove(held.at(1));

    leases.remove(held.at(1));

    EXPECT_EQ(leases.size(), 1U);
}

TEST_F(renewal_script, lease_that_was_passed_on_is_renewed_under_its_new_number) {
    add(1);

    leases.pass_on(held.at(1), 2, std::make_shared<const terms>(lease_terms()));

    EXPECT_EQ(held.at(1).valid_until(), at(29'500ms));
    EXPECT_THAT(due(10s), ElementsAre(2));
}

TEST_F(renewal_script, answer_to_what_was_sent_before_it_was_passed_on_counts_for_the_new_holder) {
    add(1);
    (void)due(10s);

    leases.pass_on(held.at(1), 2, std::make_shared<const terms>(lease_terms()));

    EXPECT_THAT(due(11s), IsEmpty());
    const auto events = answer(1, renewed(), 10s, 12s);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].id, 2U);
    EXPECT_EQ(events[0].valid_until, at(10s + 29'500ms));
}

TEST_F(renewal_script, new_holder_is_told_of_a_jeopardy_that_the_last_one_knew_of) {
    add(1);
    (void)due(10s);
    ASSERT_EQ(time(19'500ms).size(), 1U);

    leases.pass_on(held.at(1), 2, std::make_shared<const terms>(lease_terms()));

    const auto events = time(19'501ms);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::jeopardy);
    EXPECT_EQ(events[0].id, 2U);
}

TEST_F(renewal_script, new_holder_is_warned_of_jeopardy_when_it_asked_to_be) {
    auto how = lease_terms();
    how.jeopardy = 5s;
    add(1);

    leases.pass_on(held.at(1), 2, std::make_shared<const terms>(how));

    EXPECT_THAT(due(19'500ms), ElementsAre(2));
    EXPECT_EQ(leases.wake_at(), at(24'500ms));
}

TEST_F(renewal_script, fixed_lease_is_never_renewed_nor_in_jeopardy) {
    add(1, at(0ms), fixed_terms());

    EXPECT_EQ(leases.wake_at(), at(29'500ms));
    EXPECT_THAT(due(29'500ms - 1ns), IsEmpty());
}

TEST_F(renewal_script, fixed_lease_is_lost_at_its_deadline) {
    add(1, at(0ms), fixed_terms());

    const auto events = time(29'500ms);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::lost);
}

TEST_F(renewal_script, fixed_lease_does_not_go_along_with_a_neighbour) {
    add(1, at(0ms), fixed_terms(11s));
    add(2);

    EXPECT_THAT(due(10s), ElementsAre(2));
}

TEST_F(renewal_script, suspicion_makes_every_lease_due_at_once) {
    add(1, at(0s));
    add(2, at(3s));

    suspect_all(at(4s));

    EXPECT_EQ(leases.wake_at(), at(4s));
    EXPECT_THAT(due(4s), UnorderedElementsAre(1, 2));
}

TEST_F(renewal_script, suspicion_asks_after_a_fixed_lease_with_the_shortest_ttl) {
    auto how = fixed_terms();
    how.shortest_ttl = 20ms;
    add(1, at(0ms), how);

    suspect_all(at(4s));

    EXPECT_THAT(time(4s), IsEmpty());
    const auto sent = leases.next_batch(at(4s));
    ASSERT_EQ(sent.requests.size(), 1U);
    EXPECT_EQ(sent.requests[0].ttl, 20ms)
        << "a renewal never shortens a lease, nor must this lengthen it";
}

TEST_F(renewal_script, fixed_lease_that_is_there_still_ends_at_its_deadline) {
    add(1, at(0ms), fixed_terms());
    suspect_all(at(4s));
    EXPECT_THAT(due(4s), ElementsAre(1));

    EXPECT_THAT(answer(1, renewed(), 4s, 5s), IsEmpty());

    EXPECT_EQ(leases.wake_at(), at(29'500ms));
    EXPECT_EQ(held.at(1).valid_until(), at(29'500ms));
}

TEST_F(renewal_script, fixed_lease_that_is_gone_is_lost) {
    add(1, at(0ms), fixed_terms());
    suspect_all(at(4s));
    EXPECT_THAT(due(4s), ElementsAre(1));

    const auto events = answer(1, gone({errc::revoked, "by alice"}), 4s, 5s);

    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, kind::lost);
    EXPECT_EQ(events[0].error.code, errc::revoked);
}

TEST_F(renewal_script, fixed_lease_is_asked_after_again_when_no_answer_came) {
    add(1, at(0ms), fixed_terms());
    suspect_all(at(4s));
    EXPECT_THAT(due(4s), ElementsAre(1));

    EXPECT_THAT(answer(1, not_renewed(errc::store_unavailable), 4s, 5s), IsEmpty());

    EXPECT_THAT(due(7s), ElementsAre(1));
}

TEST_F(renewal_script, answer_to_a_request_from_before_the_suspicion_does_not_lift_it) {
    add(1);
    (void)due(10s);
    suspect_all(at(11s));
    EXPECT_THAT(due(11s), IsEmpty());

    (void)answer(1, renewed(), 10s, 12s);

    EXPECT_THAT(due(12s), ElementsAre(1));
}

TEST_F(renewal_script, answer_to_a_request_from_after_the_suspicion_lifts_it) {
    add(1);
    suspect_all(at(4s));
    (void)due(4s);

    (void)answer(1, renewed(), 4s, 5s);

    EXPECT_EQ(leases.wake_at(), at(14s));
}

TEST_F(renewal_script, changed_mode_is_renewed_as_such) {
    add(1);
    leases.change_mode(held.at(1), claim_mode::shared, at(1s));
    (void)time(10s);

    const auto batch = leases.next_batch(at(10s));

    ASSERT_EQ(batch.requests.size(), 1U);
    EXPECT_EQ(batch.requests[0].mode, claim_mode::shared);
}

TEST_F(renewal_script, gone_in_the_former_mode_is_asked_again_in_the_new_one) {
    add(1);
    (void)due(10s);
    leases.change_mode(held.at(1), claim_mode::shared, at(10s) + 1ms);

    EXPECT_THAT(answer(1, gone(), 10s, 11s), IsEmpty());

    (void)time(11s);
    const auto batch = leases.next_batch(at(11s));
    ASSERT_EQ(batch.requests.size(), 1U);
    EXPECT_EQ(batch.requests[0].mode, claim_mode::shared);
    const auto told = answer(1, gone(), 11s, 12s);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].type, kind::lost);
}

}  // namespace
