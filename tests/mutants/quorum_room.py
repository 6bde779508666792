from mutant import mutant

MUTANTS = [
    mutant(
        "engines/quorum/watch.cpp",
        "const bool flows_again = active && !was_active_;",
        "const bool flows_again = active && was_active_ && false;",
        "When notifications flow from a majority again, those who wait ask again.",
        "holdfast_quorum_tests "
        "quorum_holding.a_watch_is_active_while_a_majority_of_its_parts_is_and_tells_"
        "when_it_is_again"),
    mutant(
        "engines/quorum/late_member.cpp",
        "        if (active) {\n"
        "            hint();\n"
        "        }\n",
        "        static_cast<void>(active);\n",
        "A watch on a member that joins late tells that it has begun.",
        "holdfast_quorum_tests late_store.*"),
    mutant(
        "engines/quorum/late_member.cpp",
        "            opened->attach(callbacks_);",
        "            static_cast<void>(opened);",
        "A member that joins late tells of revocations.",
        "holdfast_quorum_tests late_store.*"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "    parts_.holds.raise_largest_token(reply.first_token.value + "
        "reply.token_count - 1);\n",
        "    static_cast<void>(reply);\n",
        "Tokens rise when the clock was set back.",
        survives="Equivalent for users: the members' own counters rise. It costs a second "
        "question."),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "    hold.attempt += undone ? 1 : 0;\n",
        "    static_cast<void>(undone);\n",
        "What a failed vote gives back late does not take the next grant away.",
        "holdfast_quorum_tests "
        "quorum_acquiring.is_not_touched_by_the_late_release_of_an_attempt_before_it"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "young && !keeps_its_claim()",
        "young && purpose_ == round_purpose::upgrade",
        "A member that restarted a moment ago has no vote on a new lock.",
        "holdfast_quorum_tests "
        "quorum_acquiring.does_not_count_a_member_that_has_just_restarted"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "        settings.splits = hold.splits;\n",
        "",
        "After split votes a contender waits longer.",
        "holdfast_quorum_tests quorum_acquiring.waits_longer_the_more_often_the_vote_was_split"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "    hold.lead_next = machine_.split();\n",
        "    hold.lead_next = false;\n",
        "After a split vote one member is asked alone.",
        "holdfast_quorum_tests quorum_acquiring.asks_one_member_alone_after_a_split_vote"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "std::find(suspects.begin(), suspects.end(), false)",
        "suspects.begin()",
        "After a split vote the first member that answers is asked alone.",
        "holdfast_quorum_tests "
        "quorum_acquiring.asks_the_first_member_that_answers_after_a_split_vote"),
    mutant(
        "engines/quorum/acquire_vote.cpp",
        "machine_.turned_away() ? hold.splits : 0;",
        "0;",
        "Split votes are remembered when the one member that is asked turns a contender away.",
        "holdfast_quorum_tests "
        "quorum_acquiring.remembers_split_votes_when_the_one_member_turns_it_away"),
    mutant(
        "src/core/quorum.cpp",
        "if (split_ || turned_away_) {",
        "if (split_) {",
        "Whom the one member turns away comes back soon.",
        "holdfast_unit_tests "
        "quorum_round.whom_the_lead_turns_away_comes_back_after_a_short_random_pause"),
    mutant(
        "engines/quorum/renew_vote.cpp",
        "if (!revoked[member]) {\n            missing",
        "if (reply.result == outcome::gone) {\n            missing",
        "What was taken away by force is not given back to a member.",
        "holdfast_quorum_tests "
        "quorum_holding.what_was_revoked_on_one_member_is_not_repaired"),
    mutant(
        "engines/quorum/repairs.cpp",
        "hold->generation != generation",
        "hold->generation < generation",
        "A member is not repaired for a claim that has changed since.",
        survives="Harmless: a repair sends what is held now, with its token and its owner."),
    mutant(
        "engines/quorum/repairs.cpp",
        "released_meanwhile = !hold->held();",
        "released_meanwhile = false;",
        "A repair that a release overtook is given back.",
        survives="A second line of defence: the answer to the repair gives it back, too."),
    mutant(
        "engines/quorum/repairs.cpp",
        "if (!holds_.on_reply(claim, reply)) {",
        "if (!holds_.on_reply(claim, reply) || true) {",
        "A repair that arrives after the release is given back.",
        "holdfast_quorum_tests "
        "quorum_next_fault.a_repair_that_arrives_after_the_release_is_given_back"),
    mutant(
        "engines/quorum/release_vote.cpp",
        "if (any_released_) {",
        "if (any_released_ && asking_) {",
        "A release that reached some members but no majority is unknown, not undone.",
        "holdfast_quorum_tests "
        "quorum_next_fault.a_release_that_reached_one_member_of_three_is_unknown"),
    mutant(
        "engines/quorum/release_vote.cpp",
        "if (hold->unanswered == 0 && !hold->vote) {",
        "if (!hold->vote) {",
        "A late request of a released claim does not meet the same owner again.",
        survives="A second line of defence: a late grant is recognised by its round as well."),
    mutant(
        "engines/quorum/leftovers.cpp",
        "leftovers_.push_back({std::move(claim), until});",
        "static_cast<void>(until);",
        "What could not be given back is given back with the owner's next request.",
        "holdfast_quorum_tests "
        "quorum_next_fault.what_a_lost_vote_could_not_give_back_goes_with_the_next_"
        "request"),
    mutant(
        "engines/quorum/opening.cpp",
        "    whole->repeat_releases();\n",
        "",
        "A member that missed a release is told again without a request.",
        "holdfast_redis_tests "
        "redis_quorum.a_server_that_missed_a_release_is_told_again_by_a_client_that_asks_for_"
        "nothing"),
    mutant(
        "engines/quorum/leftovers.cpp",
        "        last.swap(leftovers_);",
        "        leftovers_.clear();",
        "A member that missed a release is told again when the client ends.",
        "holdfast_quorum_tests "
        "quorum_holding.a_member_that_missed_a_release_is_told_again_when_the_client_ends"),
    mutant(
        "engines/quorum/merge.cpp",
        "if (seen.size() + silent >= needed) {",
        "if (seen.size() >= needed) {",
        "inspect shows a holder that silent members may have.",
        "holdfast_quorum_tests "
        "quorum_next_fault.a_holder_that_a_silent_member_may_know_is_shown"),
    mutant(
        "engines/quorum/merge.cpp",
        "holder.remaining = remaining[std::min(needed, remaining.size()) - 1];",
        "holder.remaining = remaining[std::min(needed, std::size_t{1}) - 1];",
        "A lock ends for all when it has ended on so many that the rest is no "
        "majority.",
        "holdfast_quorum_tests quorum_merge.*"),
]
