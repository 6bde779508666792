"""Mistakes in the engines with one record for each name, which the simulator finds (tests/sim).

planted.hpp says what each one is.
"""

from mistake import mistake, table

EXCHANGE = "engines/records/exchange.cpp"
RULES = "engines/records/rules.cpp"

TABLE = table("planted.hpp", "core::planted(core::bug::NAME)", [
    # The machine.
    mistake(
        "engines/records/known_records.cpp",
        "    const auto since = now - clock_->received;\n",
        "    const bool early = core::planted(core::bug::records_others_end_early);\n"
        "    const auto since = now - (early ? clock_->sent : clock_->received);\n",
        "records_others_end_early"),
    mistake(
        EXCHANGE,
        "    if (!confirmed_) {\n"
        "        return {};\n",
        "    if (!confirmed_ || core::planted(core::bug::records_short_lease_not_told)) {\n"
        "        return {};\n",
        "records_short_lease_not_told"),
    mistake(
        EXCHANGE,
        "    if (own_end_ && *own_end_ <= store_now) {\n",
        "    if (own_end_ && *own_end_ <= store_now &&\n"
        "        !core::planted(core::bug::records_ended_hold_extended)) {\n",
        "records_ended_hold_extended"),
    mistake(
        EXCHANGE,
        "        if (own_end_) {\n",
        "        if (own_end_ && !core::planted(core::bug::records_late_hold_believed)) {\n",
        "records_late_hold_believed"),
    mistake(
        EXCHANGE,
        "    return made.changed ? write(made, at) : asked_;\n",
        "    if (!made.changed && core::planted(core::bug::records_gone_from_memory)) {\n"
        "        return asked_ = action::finish;\n"
        "    }\n"
        "    return made.changed ? write(made, at) : asked_;\n",
        "records_gone_from_memory"),
    mistake(
        EXCHANGE,
        "        known_.doubt(request_.name, change_.version, received);\n",
        "        if (!core::planted(core::bug::records_doubt_forgotten)) {\n"
        "            known_.doubt(request_.name, change_.version, received);\n"
        "        }\n",
        "records_doubt_forgotten"),
    mistake(
        EXCHANGE,
        "        unanswered_edit_ = next_.edit;\n",
        "        if (core::planted(core::bug::records_silence_means_done)) {\n"
        "            return asked_ = action::finish;\n"
        "        }\n"
        "        unanswered_edit_ = next_.edit;\n",
        "records_silence_means_done"),
    mistake(
        EXCHANGE,
        "    next_.edit = random();\n",
        "    next_.edit = core::planted(core::bug::records_edit_repeats) ? next_.edit : random();\n",
        "records_edit_repeats"),
    mistake(
        EXCHANGE,
        "    next_ = seen_.record;\n"
        "    drop_ended(next_, store_now);\n",
        "    if (conflicts_ > 0 && core::planted(core::bug::records_conflict_overwritten)) {\n"
        "        return write({true, false}, store_now);\n"
        "    }\n"
        "    next_ = seen_.record;\n"
        "    drop_ended(next_, store_now);\n",
        "records_conflict_overwritten"),
    mistake(
        EXCHANGE,
        "    if (unanswered_edit_ && request_.repetition == operation::kind::once) {\n",
        "    if (unanswered_edit_ && request_.repetition == operation::kind::once &&\n"
        "        !core::planted(core::bug::records_second_release_believed)) {\n",
        "records_second_release_believed"),
    mistake(
        EXCHANGE,
        "        end = std::max(end, one.expires);\n",
        "        end = core::planted(core::bug::records_removed_while_held)\n"
        "                  ? end - remembered\n"
        "                  : std::max(end, one.expires);\n",
        "records_removed_while_held"),
    mistake(
        EXCHANGE,
        "    record.last_token = std::max(record.last_token, static_cast<std::uint64_t>(since));\n",
        "    if (!core::planted(core::bug::records_tokens_start_over)) {\n"
        "        record.last_token = std::max(record.last_token, static_cast<std::uint64_t>(since));\n"
        "    }\n",
        "records_tokens_start_over"),

    # The rules.
    mistake(
        RULES,
        "            return one.mode == claim_mode::exclusive || same_owner;\n",
        "            return (one.mode == claim_mode::exclusive &&\n"
        "                    !core::planted(core::bug::records_share_beside_exclusive)) ||\n"
        "                   same_owner;\n",
        "records_share_beside_exclusive"),
    mistake(
        RULES,
        "        return !same_owner || one.lingering;\n",
        "        if (held && core::planted(core::bug::records_upgrade_among_others)) {\n"
        "            return false;\n"
        "        }\n"
        "        return !same_owner || one.lingering;\n",
        "records_upgrade_among_others"),
    mistake(
        RULES,
        "        if (made.next == action::upgrade) {\n",
        "        if (made.next == action::upgrade &&\n"
        "            !core::planted(core::bug::records_upgrade_keeps_token)) {\n",
        "records_upgrade_keeps_token"),
    mistake(
        RULES,
        "    if (taken + request.permits <= request.limit && !same_owner_lingers) {\n",
        "    const std::uint32_t more = core::planted(core::bug::records_permit_too_many) ? 1 : 0;\n"
        "    if (taken + request.permits <= request.limit + more && !same_owner_lingers) {\n",
        "records_permit_too_many"),
    mistake(
        RULES,
        "        holds.erase(own);\n",
        "        const bool first = core::planted(core::bug::records_release_takes_the_first);\n"
        "        holds.erase(first ? holds.begin() : own);\n",
        "records_release_takes_the_first"),
    mistake(
        RULES,
        "        state.counted.push_back(request.request);\n",
        "        if (!core::planted(core::bug::records_latch_counts_twice)) {\n"
        "            state.counted.push_back(request.request);\n"
        "        }\n",
        "records_latch_counts_twice"),
])
