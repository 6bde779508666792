#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/quorum.hpp>
#include <core/script.hpp>
#include <string>

namespace {

using namespace script;
using holdfast::errc;
using holdfast::core::quorum_round;
using holdfast::core::round_purpose;
using testing::HasSubstr;
using outcome = holdfast::engines::acquire_reply::outcome;

/// What the machine wants done, as words: "ask 0, ask 1, raise 2 to 7, undo 1, complete".
std::string words(const quorum_round::actions& actions) {
    using kind = quorum_round::action::kind;
    std::string text;
    for (const auto& what : actions) {
        text += text.empty() ? "" : ", ";
        const auto whom = std::to_string(what.member);
        switch (what.what) {
            case kind::ask:
                text += "ask " + whom;
                break;
            case kind::raise:
                text += "raise " + whom + " to " + std::to_string(what.token.value);
                break;
            case kind::undo:
                text += "undo " + whom;
                break;
            case kind::complete:
                text += "complete";
                break;
        }
    }
    return text;
}

quorum_round::settings among(std::size_t members) {
    quorum_round::settings how;
    for (std::size_t index = 0; index < members; ++index) {
        how.members.push_back("store " + std::to_string(index));
    }
    how.started = at(0ms);
    how.ttl = 30s;
    how.drift = 302ms;
    return how;
}

/// A round that has asked everybody.
quorum_round started(const quorum_round::settings& how) {
    quorum_round round{how};
    (void)round.start();
    return round;
}

TEST(quorum_round, all_members_are_asked_at_once) {
    quorum_round round{among(5)};
    EXPECT_EQ(words(round.start()), "ask 0, ask 1, ask 2, ask 3, ask 4");
}

TEST(quorum_round, a_majority_with_one_token_is_a_grant_and_nobody_else_is_waited_for) {
    auto round = started(among(3));
    EXPECT_EQ(words(round.on_reply(2, granted(7), at(1ms))), "");
    EXPECT_EQ(words(round.on_reply(0, granted(7), at(2ms))), "complete");
    EXPECT_TRUE(round.won());
    EXPECT_EQ(round.reply().first_token.value, 7U);
}

TEST(quorum_round, half_of_an_even_number_is_no_majority) {
    auto round = started(among(4));
    (void)round.on_reply(0, granted(7), at(1ms));
    (void)round.on_reply(1, granted(7), at(1ms));
    EXPECT_FALSE(round.done());
    (void)round.on_reply(2, granted(7), at(1ms));
    EXPECT_TRUE(round.won());
}

TEST(quorum_round, the_largest_token_is_written_to_a_majority_before_the_grant_is_known) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(5), at(1ms));
    EXPECT_EQ(words(round.on_reply(1, granted(9), at(1ms))), "raise 0 to 9");
    EXPECT_FALSE(round.done());
    EXPECT_EQ(words(round.on_reply(0, granted(9), at(2ms))), "complete");
    EXPECT_EQ(round.reply().first_token.value, 9U);
}

TEST(quorum_round, a_larger_token_that_comes_while_members_are_raised_raises_them_again) {
    auto round = started(among(5));
    (void)round.on_reply(0, granted(5), at(1ms));
    (void)round.on_reply(1, granted(5), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, granted(9), at(1ms))), "raise 0 to 9, raise 1 to 9");
    (void)round.on_reply(3, granted(11), at(1ms));
    EXPECT_EQ(words(round.on_reply(0, granted(9), at(2ms))), "raise 0 to 11");
    EXPECT_EQ(words(round.on_reply(0, granted(11), at(2ms))), "");
    EXPECT_EQ(words(round.on_reply(1, granted(9), at(2ms))), "raise 1 to 11");
    EXPECT_FALSE(round.done());
    EXPECT_EQ(words(round.on_reply(1, granted(11), at(3ms))), "complete");
    EXPECT_EQ(round.reply().first_token.value, 11U);
}

TEST(quorum_round, a_member_that_cannot_be_raised_has_no_vote_but_is_given_back) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(5), at(1ms));
    (void)round.on_reply(1, granted(9), at(1ms));
    (void)round.on_reply(2, not_acquired(errc::store_unavailable), at(1ms));
    EXPECT_EQ(words(round.on_reply(0, not_acquired(errc::store_unavailable), at(2ms))),
              "undo 0, undo 1, complete");
    EXPECT_EQ(round.reply().error.code, errc::store_unavailable);
}

TEST(quorum_round, a_member_that_ignores_the_token_it_is_raised_to_has_no_vote) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(5), at(1ms));
    (void)round.on_reply(1, granted(9), at(1ms));
    (void)round.on_reply(2, busy(), at(1ms));
    EXPECT_EQ(words(round.on_reply(0, granted(5), at(2ms))), "undo 0, undo 1, complete");
    EXPECT_FALSE(round.won());
}

TEST(quorum_round, members_without_tokens_to_agree_on_are_not_raised) {
    auto how = among(3);
    how.tokens_agree = false;
    auto round = started(how);
    (void)round.on_reply(0, granted(5), at(1ms));
    EXPECT_EQ(words(round.on_reply(1, granted(9), at(1ms))), "complete");
    EXPECT_EQ(round.reply().first_token.value, 9U);
}

TEST(quorum_round, an_owner_that_let_go_meanwhile_is_not_written_back) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(5), at(1ms));
    round.stop_raising();
    EXPECT_EQ(words(round.on_reply(1, granted(9), at(1ms))), "");
    EXPECT_EQ(words(round.on_reply(2, granted(9), at(1ms))), "complete");
}

TEST(quorum_round, a_late_grant_with_a_smaller_token_is_raised_for_the_record) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(9), at(1ms));
    (void)round.on_reply(1, granted(9), at(1ms));
    ASSERT_TRUE(round.won());
    EXPECT_EQ(words(round.on_reply(2, granted(4), at(5ms))), "raise 2 to 9");
    EXPECT_EQ(words(round.on_reply(2, granted(9), at(6ms))), "");
    EXPECT_EQ(round.reply().first_token.value, 9U);
}

TEST(quorum_round, a_grant_that_took_longer_than_ttl_less_drift_is_given_back) {
    auto in_time = started(among(3));
    (void)in_time.on_reply(0, granted(7), at(1ms));
    (void)in_time.on_reply(1, granted(7), at(30s - 303ms));
    EXPECT_TRUE(in_time.won());

    auto late = started(among(3));
    (void)late.on_reply(0, granted(7), at(1ms));
    (void)late.on_reply(2, busy(), at(1ms));
    EXPECT_EQ(words(late.on_reply(1, granted(7), at(30s - 302ms))), "undo 0, undo 1, complete");
    EXPECT_EQ(late.reply().error.code, errc::store_unavailable);
}

TEST(quorum_round, a_majority_that_is_taken_is_busy_as_soon_as_that_is_known) {
    auto round = started(among(3));
    (void)round.on_reply(0, busy(20s), at(1ms));
    EXPECT_EQ(words(round.on_reply(1, busy(10s), at(1ms))), "undo 2, complete")
        << "the third was asked, and may grant what nobody wants any more";
    EXPECT_EQ(round.reply().result, outcome::busy);
}

TEST(quorum_round, busy_lasts_until_so_many_leases_end_that_a_majority_may_be_free) {
    auto round = started(among(3));
    (void)round.on_reply(0, not_acquired(errc::store_unavailable), at(1ms));
    (void)round.on_reply(1, busy(10s), at(1ms));
    (void)round.on_reply(2, busy(20s), at(1ms));
    EXPECT_EQ(round.reply().result, outcome::busy);
    EXPECT_EQ(round.reply().retry_after, 20s) << "both must be free";
}

TEST(quorum_round, a_split_vote_is_given_back_and_tried_again_after_a_short_random_pause) {
    auto how = among(3);
    how.jitter = 0.5;
    auto round = started(how);
    (void)round.on_reply(0, granted(7), at(1ms));
    (void)round.on_reply(1, busy(30s), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, busy(30s), at(1ms))), "undo 0, complete");
    EXPECT_TRUE(round.split());
    EXPECT_EQ(round.reply().retry_after, 5ms);

    how.splits = 3;
    auto later = started(how);
    (void)later.on_reply(0, granted(7), at(1ms));
    (void)later.on_reply(1, busy(30s), at(1ms));
    (void)later.on_reply(2, busy(30s), at(1ms));
    EXPECT_EQ(later.reply().retry_after, 33ms) << "the pause grows while nobody wins";
}

TEST(quorum_round, a_lead_is_asked_before_the_others) {
    auto how = among(3);
    how.lead = 1;
    quorum_round round{how};
    EXPECT_EQ(words(round.start()), "ask 1");
    EXPECT_EQ(words(round.on_reply(1, granted(7), at(1ms))), "ask 0, ask 2");
    EXPECT_EQ(words(round.on_reply(0, granted(7), at(1ms))), "complete");
}

TEST(quorum_round, whom_the_lead_turns_away_takes_nothing_from_the_others) {
    auto how = among(3);
    how.lead = 0;
    auto round = started(how);
    EXPECT_EQ(words(round.on_reply(0, busy(30s), at(1ms))), "complete");
    EXPECT_TRUE(round.turned_away());
    EXPECT_EQ(round.reply().result, outcome::busy);
}

TEST(quorum_round, whom_the_lead_turns_away_comes_back_after_a_short_random_pause) {
    auto how = among(3);
    how.lead = 0;
    how.jitter = 0.5;
    quorum_round round{how};
    (void)round.start();
    (void)round.on_reply(0, busy(30s), at(1ms));
    EXPECT_EQ(round.reply().retry_after, 5ms) << "the lead has it for the moment of a vote";
}

TEST(quorum_round, a_lead_that_fails_is_no_lead) {
    auto how = among(3);
    how.lead = 0;
    auto round = started(how);
    EXPECT_EQ(words(round.on_reply(0, not_acquired(errc::store_unavailable), at(1ms))), "ask 1, ask 2");
}

TEST(quorum_round, without_a_quorum_the_error_names_every_member_that_failed) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(7), at(1ms));
    (void)round.on_reply(1, not_acquired(errc::store_unavailable), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, not_acquired(errc::store_unavailable), at(1ms))),
              "undo 0, complete");
    EXPECT_EQ(round.reply().error.code, errc::store_unavailable);
    EXPECT_EQ(
        round.reply().error.detail,
        "no quorum: 1 of 3 members answered, 2 needed; store 1: as scripted; store 2: as scripted");
}

TEST(quorum_round, members_that_did_not_answer_are_undone_too_and_make_the_outcome_unknown) {
    auto how = among(3);
    how.suspects = {true, false, false};
    auto round = started(how);
    (void)round.on_reply(1, not_acquired(errc::outcome_unknown), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, not_acquired(errc::store_unavailable), at(1ms))),
              "undo 0, undo 1, complete");
    EXPECT_EQ(round.reply().error.code, errc::outcome_unknown);
    EXPECT_THAT(round.reply().error.detail, HasSubstr("store 0: has not answered"));
    EXPECT_EQ(words(round.on_reply(0, granted(7), at(2ms))), "undo 0");
}

TEST(quorum_round, with_a_member_down_a_lock_that_is_taken_is_busy_and_not_without_quorum) {
    auto round = started(among(3));
    (void)round.on_reply(0, not_acquired(errc::store_unavailable), at(1ms));
    EXPECT_EQ(words(round.on_reply(1, busy(10s), at(1ms))), "") << "the third may still tell";
    (void)round.on_reply(2, granted(7), at(1ms));
    EXPECT_EQ(round.reply().result, outcome::busy);
}

TEST(quorum_round, a_refusal_that_a_majority_shares_is_the_answer) {
    auto round = started(among(3));
    (void)round.on_reply(0, not_acquired(errc::wrong_kind), at(1ms));
    (void)round.on_reply(2, not_acquired(errc::wrong_kind), at(1ms));
    EXPECT_EQ(round.reply().error.code, errc::wrong_kind);
}

TEST(quorum_round, one_member_that_refuses_does_not_spoil_the_grant_of_the_others) {
    auto round = started(among(3));
    (void)round.on_reply(0, not_acquired(errc::unauthorised), at(1ms));
    (void)round.on_reply(1, granted(7), at(1ms));
    (void)round.on_reply(2, granted(7), at(1ms));
    EXPECT_TRUE(round.won());
}

TEST(quorum_round, a_suspect_is_not_waited_for_once_the_others_have_answered) {
    auto how = among(3);
    how.suspects = {false, false, true};
    auto round = started(how);
    (void)round.on_reply(0, granted(7), at(1ms));
    EXPECT_EQ(words(round.on_reply(1, busy(30s), at(1ms))), "undo 0, undo 2, complete");
    EXPECT_EQ(round.reply().result, outcome::busy);
}

TEST(quorum_round, suspects_are_waited_for_when_no_majority_is_possible_without_them) {
    auto how = among(3);
    how.suspects = {false, true, true};
    auto round = started(how);
    (void)round.on_reply(0, granted(7), at(1ms));
    EXPECT_FALSE(round.done());
    (void)round.on_reply(2, granted(7), at(1ms));
    EXPECT_TRUE(round.won());
}

TEST(quorum_round, the_vote_of_a_suspect_that_answers_counts) {
    auto how = among(3);
    how.suspects = {false, false, true};
    auto round = started(how);
    (void)round.on_reply(2, granted(7), at(1ms));
    (void)round.on_reply(0, granted(7), at(1ms));
    EXPECT_TRUE(round.won());
}

TEST(quorum_round, a_grant_that_must_not_count_is_given_back_when_the_round_is_lost) {
    auto round = started(among(3));
    (void)round.on_uncounted_grant(0, {errc::store_unavailable, "restarted 3 s ago"}, at(1ms));
    (void)round.on_reply(1, granted(7), at(1ms));
    EXPECT_FALSE(round.done());
    EXPECT_EQ(words(round.on_reply(2, not_acquired(errc::store_unavailable), at(1ms))),
              "undo 0, undo 1, complete");
    EXPECT_THAT(round.reply().error.detail, HasSubstr("store 0: restarted 3 s ago"));
}

TEST(quorum_round, a_grant_that_must_not_count_and_comes_late_is_given_back) {
    auto round = started(among(3));
    (void)round.on_reply(1, busy(1s), at(1ms));
    (void)round.on_reply(2, busy(1s), at(1ms));
    EXPECT_EQ(words(round.on_uncounted_grant(0, {errc::store_unavailable, "restarted"}, at(2ms))),
              "undo 0");
}

TEST(quorum_round, an_aborted_round_gives_everything_back) {
    auto round = started(among(3));
    (void)round.on_reply(0, granted(7), at(1ms));
    EXPECT_EQ(words(round.abort({errc::bad_configuration, "one server twice"})),
              "undo 0, undo 1, undo 2, complete");
    EXPECT_EQ(round.reply().error.code, errc::bad_configuration);
}

TEST(quorum_round, who_asks_again_for_what_it_has_keeps_its_token_and_loses_nothing) {
    auto how = among(3);
    how.purpose = round_purpose::again;
    how.keep_token = holdfast::fencing_token{5};
    auto round = started(how);
    (void)round.on_reply(0, granted(5), at(1ms));
    (void)round.on_reply(1, granted(8), at(1ms));
    EXPECT_EQ(round.reply().first_token.value, 5U) << "a repaired member may know a larger one";

    auto lost = started(how);
    (void)lost.on_reply(0, granted(5), at(1ms));
    (void)lost.on_reply(1, busy(), at(1ms));
    EXPECT_EQ(words(lost.on_reply(2, busy(), at(1ms))), "complete");
}

TEST(quorum_round, a_downgrade_that_some_members_made_has_an_unknown_outcome) {
    auto how = among(3);
    how.purpose = round_purpose::downgrade;
    how.keep_token = holdfast::fencing_token{5};
    auto round = started(how);
    (void)round.on_reply(0, granted(5), at(1ms));
    (void)round.on_reply(1, not_acquired(errc::store_unavailable), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, not_acquired(errc::store_unavailable), at(1ms))), "complete");
    EXPECT_EQ(round.reply().error.code, errc::outcome_unknown);
}

TEST(quorum_round, a_failed_upgrade_is_undone_where_it_was_or_may_have_been_made) {
    auto how = among(3);
    how.purpose = round_purpose::upgrade;
    auto round = started(how);
    (void)round.on_reply(0, granted(9), at(1ms));
    (void)round.on_reply(1, busy(30s), at(1ms));
    EXPECT_EQ(words(round.on_reply(2, busy(30s), at(1ms))), "undo 0, complete");
}

TEST(quorum_round, one_member_alone_is_its_own_majority) {
    auto round = started(among(1));
    EXPECT_EQ(words(round.on_reply(0, granted(3), at(1ms))), "complete");
    EXPECT_TRUE(round.won());
}

}  // namespace
