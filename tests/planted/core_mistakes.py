"""Mistakes in the core and the performer, which the simulator finds (tests/sim).

The `store_…` ones are mistakes of the simulated store, and are in testing/sim.
"""

from mistake import mistake, table

TABLE = table("planted.hpp", "planted(bug::NAME)", [
    # Deadlines.
    mistake(
        "src/core/acquisition.cpp",
        "valid_until_ = sent_at_ + granted_ttl_ - margin_;\n"
        "    return now < valid_until_",
        "if (planted(bug::deadline_from_receipt)) {\n"
        "        sent_at_ = now;\n"
        "    }\n"
        "    valid_until_ = sent_at_ + granted_ttl_ - margin_;\n"
        "    return now < valid_until_",
        "deadline_from_receipt"),
    mistake(
        "src/core/renewal.cpp",
        "            extend(held, sent_at, trusted_ttl(held.terms->ttl, reply.ttl));\n"
        "            if (suspected) {\n",
        "            extend(held, planted(bug::deadline_from_receipt) ? now : sent_at,\n"
        "                   trusted_ttl(held.terms->ttl, reply.ttl));\n"
        "            if (suspected) {\n",
        "deadline_from_receipt"),
    mistake(
        "src/core/acquisition.cpp",
        "trusted_ttl(claim_.ttl, reply.ttl)",
        "planted(bug::granted_ttl_ignored) ? claim_.ttl : trusted_ttl(claim_.ttl, reply.ttl)",
        "granted_ttl_ignored"),
    mistake(
        "src/core/acquisition.cpp",
        "sent_at_ = grant.asked_at;",
        "sent_at_ = planted(bug::turn_from_receipt) ? now : grant.asked_at;",
        "turn_from_receipt"),
    mistake(
        "src/core/renewal.cpp",
        "auto next = one.valid_until();",
        "auto next = planted(bug::deadline_ignored) ? never : one.valid_until();",
        "deadline_ignored"),
    mistake(
        "src/core/renewal.cpp",
        "if (now >= one.valid_until()) {",
        "if (now >= one.valid_until() && !planted(bug::deadline_ignored)) {",
        "deadline_ignored"),
    mistake(
        "src/core/renewal.cpp",
        "if (reply.result == outcome::renewed && now >= held.valid_until()) {",
        "if (reply.result == outcome::renewed && now >= held.valid_until() &&\n"
        "        !planted(bug::deadline_ignored)) {",
        "deadline_ignored"),
    mistake(
        "src/core/holds.cpp",
        "if (!hold.lost && now >= hold.valid_until()) {",
        "if (!hold.lost && now >= hold.valid_until() && !planted(bug::deadline_ignored)) {",
        "deadline_ignored"),
    mistake(
        "src/core/holds.cpp",
        "    while (const auto* const due = longest_.pop_due(now)) {\n",
        "    while (const auto* const due = longest_.pop_due(now)) {\n"
        "        if (planted(bug::max_hold_keeps_the_lock)) {\n"
        '            lose(holds_.at(due->id), {errc::max_hold_exceeded, ""}, now);\n'
        "            continue;\n"
        "        }\n",
        "max_hold_keeps_the_lock"),

    # Renewal.
    mistake(
        "src/core/renewal.cpp",
        "    using outcome = engines::renew_reply::outcome;\n",
        "    using outcome = engines::renew_reply::outcome;\n"
        "    if (reply.result == outcome::gone && planted(bug::gone_means_renewed)) {\n"
        "        reply.result = outcome::renewed;\n"
        "    }\n",
        "gone_means_renewed"),
    mistake(
        "src/core/holds.cpp",
        "could be answered after it.\n"
        "    detach(hold);\n"
        "    forget(hold);\n",
        "could be answered after it.\n"
        "    if (planted(bug::renewal_outlives_release)) {\n"
        "        hold.lost = true;\n"
        "        longest_.disarm(hold.longest);\n"
        "    } else {\n"
        "        detach(hold);\n"
        "        forget(hold);\n"
        "    }\n",
        "renewal_outlives_release"),
    mistake(
        "src/core/renewal.cpp",
        "if (is_fixed(one)) {",
        "if (is_fixed(one) && !planted(bug::fixed_lease_extended)) {",
        "fixed_lease_extended"),
    mistake(
        "src/core/renewal.cpp",
        "            if (!is_fixed(held)) {\n"
        "                result = {event::kind::extended,",
        "            if (!is_fixed(held) || planted(bug::fixed_lease_extended)) {\n"
        "                result = {event::kind::extended,",
        "fixed_lease_extended"),

    # Local hand-over.
    mistake(
        "src/core/local_queue.cpp",
        "return {first_.value + used_++};",
        "const auto offset = used_++;\n"
        "    return {first_.value + (planted(bug::handover_keeps_token) ? 0 : offset)};",
        "handover_keeps_token"),
    mistake(
        "src/core/local_queue.cpp",
        "!waiting_.empty() && token_left() &&",
        "!waiting_.empty() && (token_left() || planted(bug::handover_overruns_block)) &&",
        "handover_overruns_block"),
    mistake(
        "src/core/handover.cpp",
        "} else if (queue.front() != hold->offered_to) {",
        "} else if (queue.front() != hold->offered_to &&\n"
        "               !planted(bug::offer_ends_with_the_front)) {",
        "offer_ends_with_the_front"),
    mistake(
        "src/core/handover.cpp",
        "    if (queue.empty()) {\n"
        "        holds_.give_back(*hold, now);\n",
        "    if (queue.empty()) {\n"
        "        if (!planted(bug::vacancy_kept)) {\n"
        "            holds_.give_back(*hold, now);\n"
        "        }\n",
        "vacancy_kept"),

    # Waiters that leave.
    mistake(
        "src/core/contests.cpp",
        "    auto& site = call.site;\n"
        "    auto* const contender = contest_for(call);\n",
        "    if (planted(bug::cancelled_waiter_stays) && reason.code == errc::cancelled) {\n"
        "        out_.add(finish_acquire{call.id, reason, {}, {}, {}});\n"
        "        return;\n"
        "    }\n"
        "    auto& site = call.site;\n"
        "    auto* const contender = contest_for(call);\n",
        "cancelled_waiter_stays"),
    mistake(
        "src/core/contests.cpp",
        "    if (!serves_front(contender)) {\n"
        "        clean_up(contender.machine, now);\n",
        "    if (!serves_front(contender)) {\n"
        "        if (!planted(bug::abandoned_grant_kept)) {\n"
        "            clean_up(contender.machine, now);\n"
        "        }\n",
        "abandoned_grant_kept"),
    mistake(
        "src/core/acquisition.hpp",
        "(stood_in_line_ && (contended_ || unanswered_))",
        "(stood_in_line_ && (contended_ || unanswered_) && !planted(bug::wish_kept))",
        "wish_kept"),
    mistake(
        "src/core/holds.cpp",
        "if (held || releases_.has(request.owner)) {",
        "if (held || releases_.has(request.owner) || planted(bug::wish_kept)) {",
        "wish_kept"),
    mistake(
        "src/core/contests.cpp",
        "    if (in_turn) {\n",
        "    if (in_turn && !planted(bug::place_of_asker_not_taken)) {\n",
        "place_of_asker_not_taken"),

    # Asking the store.
    mistake(
        "src/core/contests.cpp",
        "        turns.widen(asked.mode);\n",
        "        turns.widen(asked.mode);\n"
        "        if (planted(bug::grant_lets_nobody_ask)) {\n"
        "            return;\n"
        "        }\n",
        "grant_lets_nobody_ask"),
    mistake(
        "src/core/contests.cpp",
        "if (trouble.code == errc::outcome_unknown && id != asker) {",
        "if (trouble.code == errc::outcome_unknown && id != asker &&\n"
        "        !planted(bug::doubt_for_everybody)) {",
        "doubt_for_everybody"),
    mistake(
        "src/core/contests.cpp",
        "    timers_.disarm(contender.wake);\n"
        "    const auto id = out_.next_id();\n",
        "    if (planted(bug::resend_with_new_owner) && contender.machine.may_be_granted()) {\n"
        "        contender.machine.restart(out_.next_owner());\n"
        "    }\n"
        "    timers_.disarm(contender.wake);\n"
        "    const auto id = out_.next_id();\n",
        "resend_with_new_owner"),
    mistake(
        "src/core/acquisition.cpp",
        "hinted_while_asking_ = true;",
        "hinted_while_asking_ = !planted(bug::hint_while_asking_dropped);",
        "hint_while_asking_dropped"),
    mistake(
        "src/core/lock_table.cpp",
        "void lock_table::on_watch_active(const std::string& name, clock::time_point now) {\n"
        "    on_hint(name, now);\n",
        "void lock_table::on_watch_active(const std::string& name, clock::time_point now) {\n"
        "    if (!planted(bug::no_recheck_after_watch)) {\n"
        "        on_hint(name, now);\n"
        "    }\n",
        "no_recheck_after_watch"),

    # Release.
    mistake(
        "src/core/release.cpp",
        "    trouble_ = reply.error;\n",
        "    trouble_ = reply.error;\n"
        "    if (planted(bug::release_assumed)) {\n"
        "        released_ = true;\n"
        "        return true;\n"
        "    }\n",
        "release_assumed"),
    mistake(
        "src/core/release.cpp",
        "if (!can_be_asked_again(reply.error.code)) {",
        "if (!can_be_asked_again(reply.error.code) || (planted(bug::refusal_is_final) && refused())) {",
        "refusal_is_final"),

    # Quorum.
    mistake(
        "src/core/quorum.cpp",
        "needed_{majority_of(settings_.members.size())}",
        "needed_{majority_of(settings_.members.size()) - (planted(bug::quorum_of_half) ? 1 : 0)}",
        "quorum_of_half"),
    mistake(
        "src/core/quorum.cpp",
        "(ballot.token >= wanted || !settings_.tokens_agree)",
        "(ballot.token >= wanted || !settings_.tokens_agree || planted(bug::quorum_tokens_not_shared))",
        "quorum_tokens_not_shared"),
    mistake(
        "src/core/quorum.cpp",
        "if (!undoes()) {",
        "if (!undoes() || planted(bug::quorum_undoes_nothing)) {",
        "quorum_undoes_nothing"),
    mistake(
        "src/core/quorum.cpp",
        "++gone_;",
        "++(planted(bug::quorum_counts_the_gone) ? done_ : gone_);",
        "quorum_counts_the_gone"),

    # Several names at once.
    mistake(
        "src/core/joint_acquisition.cpp",
        "        order.end());\n"
        "    return order;\n",
        "        order.end());\n"
        "    if (planted(bug::joint_unsorted)) {\n"
        "        std::sort(order.begin(), order.end());\n"
        "    }\n"
        "    return order;\n",
        "joint_unsorted"),
    mistake(
        "src/core/joint_acquisition.cpp",
        "    asked_ = indices;\n",
        "    asked_ = indices;\n"
        "    if (planted(bug::joint_rollback_forgets_one)) {\n"
        "        indices.pop_back();\n"
        "    }\n",
        "joint_rollback_forgets_one"),
    mistake(
        "src/core/joint_acquisition.cpp",
        "    return {move::kind::give_back, std::move(indices), {}};\n",
        "    if (planted(bug::joint_rollback_cancelled) && cancelled_) {\n"
        "        indices.clear();\n"
        "    }\n"
        "    return {move::kind::give_back, std::move(indices), {}};\n",
        "joint_rollback_cancelled"),
    mistake(
        "src/core/joint_question.cpp",
        "    busy_ = busy.busy;\n"
        "    answer(table, busy, now);\n",
        "    busy_ = busy.busy;\n"
        "    if (!planted(bug::joint_refusal_not_told)) {\n"
        "        answer(table, busy, now);\n"
        "    }\n",
        "joint_refusal_not_told"),

    # The performer.
    mistake(
        "src/runtime/performer.hpp",
        "            armed_for_ = clock::time_point::max();\n"
        "            table.on_time(now);\n",
        "            using core::bug, core::planted;\n"
        "            if (!planted(bug::timer_stays_armed)) {\n"
        "                armed_for_ = clock::time_point::max();\n"
        "            }\n"
        "            table.on_time(now);\n",
        "timer_stays_armed"),
    mistake(
        "src/runtime/performer.hpp",
        "            if (!wanted && found != watches_.end()) {\n",
        "            using core::bug, core::planted;\n"
        "            if (!wanted && found != watches_.end() && !planted(bug::watch_stays)) {\n",
        "watch_stays"),
    mistake(
        "src/runtime/performer.hpp",
        "        if (active) {\n",
        "        using core::bug, core::planted;\n"
        "        if (active && !planted(bug::first_look_forgotten)) {\n",
        "first_look_forgotten"),
])
