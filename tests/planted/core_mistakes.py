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
        "const auto counted_from = planted(bug::deadline_from_receipt) ? now : sent_at_;\n"
        "    valid_until_ = counted_from + granted_ttl_ - margin_;\n"
        "    return now < valid_until_",
        "deadline_from_receipt"),
    mistake(
        "src/core/lock_table_contending.cpp",
        "renewal_.add(hold.tenure, first, who.way.sent_at(), who.way.ttl(), reply.incomplete);",
        "renewal_.add(hold.tenure, first,\n"
        "                 planted(bug::deadline_from_receipt) ? now : who.way.sent_at(),\n"
        "                 who.way.ttl(), reply.incomplete);",
        "deadline_from_receipt"),
    mistake(
        "src/core/renewal.cpp",
        "            extend(what, sent_at, trusted_ttl(what.how->ttl, reply.ttl));\n"
        "            if (suspected) {\n",
        "            extend(what, planted(bug::deadline_from_receipt) ? now : sent_at,\n"
        "                   trusted_ttl(what.how->ttl, reply.ttl));\n"
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
        "if (reply.result == outcome::renewed && now >= what.valid_until()) {",
        "if (reply.result == outcome::renewed && now >= what.valid_until() &&\n"
        "        !planted(bug::deadline_ignored)) {",
        "deadline_ignored"),
    mistake(
        "src/core/lock_table_holding.cpp",
        "if (!hold.lost && now >= validity(hold)) {",
        "if (!hold.lost && now >= validity(hold) && !planted(bug::deadline_ignored)) {",
        "deadline_ignored"),
    mistake(
        "src/core/lock_table_holding.cpp",
        'lose_and_give_back(hold, {errc::max_hold_exceeded, "it was held for its max_hold"}, now);',
        'const failure why{errc::max_hold_exceeded, "it was held for its max_hold"};\n'
        "    if (planted(bug::max_hold_keeps_the_lock)) {\n"
        "        lose(hold, why, now);\n"
        "    } else {\n"
        "        lose_and_give_back(hold, why, now);\n"
        "    }",
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
        "src/core/lock_table_holding.cpp",
        "    detach(hold);\n"
        "    holds_.erase(found);\n",
        "    if (planted(bug::renewal_outlives_release)) {\n"
        "        hold.lost = true;\n"
        "        timers_.disarm(hold.longest);\n"
        "    } else {\n"
        "        detach(hold);\n"
        "        holds_.erase(found);\n"
        "    }\n",
        "renewal_outlives_release"),
    mistake(
        "src/core/renewal.cpp",
        "if (is_fixed(one)) {",
        "if (is_fixed(one) && !planted(bug::fixed_lease_extended)) {",
        "fixed_lease_extended"),
    mistake(
        "src/core/renewal.cpp",
        "            if (!is_fixed(what)) {\n"
        "                result = {event::kind::extended,",
        "            if (!is_fixed(what) || planted(bug::fixed_lease_extended)) {\n"
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
        "src/core/lock_table_handover.cpp",
        "    if (!queue.empty()) {\n"
        "        actions_.emplace_back(offer_turn{queue.front()});\n",
        "    if (!queue.empty()) {\n"
        "        if (!planted(bug::offer_ends_with_the_front)) {\n"
        "            actions_.emplace_back(offer_turn{queue.front()});\n"
        "        }\n",
        "offer_ends_with_the_front"),
    mistake(
        "src/core/lock_table_handover.cpp",
        "    } else {\n"
        "        give_up_vacancy(*hold, now);\n",
        "    } else if (!planted(bug::vacancy_kept)) {\n"
        "        give_up_vacancy(*hold, now);\n",
        "vacancy_kept"),

    # Waiters that leave.
    mistake(
        "src/core/lock_table_contending.cpp",
        "    auto node = waiters_.extract(who);\n"
        "    const auto& left = node.mapped();\n",
        "    if (planted(bug::cancelled_waiter_stays) && why.code == errc::cancelled) {\n"
        "        actions_.emplace_back(finish_acquire{who, why, {}, {}, {}});\n"
        "        return;\n"
        "    }\n"
        "    auto node = waiters_.extract(who);\n"
        "    const auto& left = node.mapped();\n",
        "cancelled_waiter_stays"),
    mistake(
        "src/core/lock_table_contending.cpp",
        "        clean_up(who.way, now);\n"
        "        const auto name = who.name;\n",
        "        if (!planted(bug::abandoned_grant_kept)) {\n"
        "            clean_up(who.way, now);\n"
        "        }\n"
        "        const auto name = who.name;\n",
        "abandoned_grant_kept"),
    mistake(
        "src/core/acquisition.hpp",
        "(stood_in_line_ && (contended_ || unanswered_))",
        "(stood_in_line_ && (contended_ || unanswered_) && !planted(bug::wish_kept))",
        "wish_kept"),
    mistake(
        "src/core/lock_table.cpp",
        "if (held || leaving) {",
        "if (held || leaving || planted(bug::wish_kept)) {",
        "wish_kept"),
    mistake(
        "src/core/lock_table_contending.cpp",
        "if (left.what.asks_in_turn()) {",
        "if (left.what.asks_in_turn() && !planted(bug::place_of_asker_not_taken)) {",
        "place_of_asker_not_taken"),

    # Asking the store.
    mistake(
        "src/core/lock_table_in_turn.cpp",
        "        let_more_ask(here, now);\n"
        "    } else if (",
        "        if (planted(bug::grant_lets_nobody_ask)) {\n"
        "            return;\n"
        "        }\n"
        "        let_more_ask(here, now);\n"
        "    } else if (",
        "grant_lets_nobody_ask"),
    mistake(
        "src/core/lock_table_contending.cpp",
        "if (trouble.code == errc::outcome_unknown && who != asker) {",
        "if (trouble.code == errc::outcome_unknown && who != asker &&\n"
        "        !planted(bug::doubt_for_everybody)) {",
        "doubt_for_everybody"),
    mistake(
        "src/core/lock_table_contending.cpp",
        "    timers_.disarm(who.wake);\n"
        "    const auto id = next_id();\n",
        "    if (planted(bug::resend_with_new_owner) && who.way.may_be_granted()) {\n"
        "        who.way.restart(next_owner());\n"
        "    }\n"
        "    timers_.disarm(who.wake);\n"
        "    const auto id = next_id();\n",
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
        "needed_{majority_of(how_.members.size())}",
        "needed_{majority_of(how_.members.size()) - (planted(bug::quorum_of_half) ? 1 : 0)}",
        "quorum_of_half"),
    mistake(
        "src/core/quorum.cpp",
        "(who.token >= wanted || !how_.tokens_agree)",
        "(who.token >= wanted || !how_.tokens_agree || planted(bug::quorum_tokens_not_shared))",
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
        "    asked_ = which;\n",
        "    asked_ = which;\n"
        "    if (planted(bug::joint_rollback_forgets_one)) {\n"
        "        which.pop_back();\n"
        "    }\n",
        "joint_rollback_forgets_one"),
    mistake(
        "src/core/joint_acquisition.cpp",
        "    return {move::kind::give_back, std::move(which), {}};\n",
        "    if (planted(bug::joint_rollback_cancelled) && cancelled_) {\n"
        "        which.clear();\n"
        "    }\n"
        "    return {move::kind::give_back, std::move(which), {}};\n",
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
