"""Mistakes in the recipe over ordered nodes, which the simulator finds (tests/sim/nodes_test.cpp)."""

from mistake import mistake, table

CLAIMS = "engines/nodes/claims.cpp"
NEWS = "engines/nodes/name_news.cpp"
QUEUE = "engines/nodes/queue.cpp"
SESSIONS = "engines/nodes/sessions.cpp"

TABLE = table("planted.hpp", "core::planted(core::bug::NAME)", [
    # Sessions.
    mistake(
        SESSIONS,
        "std::max(session.valid_until, session.sent_at + reply.ttl);",
        "std::max(session.valid_until,\n"
        "        (core::planted(core::bug::nodes_validity_from_receipt) ? now : "
        "session.sent_at) + reply.ttl);",
        "nodes_validity_from_receipt"),
    mistake(
        SESSIONS,
        "    return left < asked ? left : milliseconds::zero();\n",
        "    return left < asked && !core::planted(core::bug::nodes_granted_ttl_ignored) ? left\n"
        "                                                                  : milliseconds::zero();\n",
        "nodes_granted_ttl_ignored"),
    mistake(
        SESSIONS,
        "    session->next_keep_alive = now + pause;\n",
        "    session->next_keep_alive = now + pause;\n"
        "    if (core::planted(core::bug::nodes_unanswered_keep_alive_counts)) {\n"
        "        session->valid_until = now + session->granted;\n"
        "        session->confirmed_at = now;\n"
        "    }\n",
        "nodes_unanswered_keep_alive_counts"),

    # The queue.
    mistake(
        CLAIMS,
        "const auto* const found = find_node(queue, own.claim.label);",
        "const auto* const there = find_node(queue, own.claim.label);\n"
        "    const bool trusts = core::planted(core::bug::nodes_own_node_not_read) && "
        "!own.id.empty();\n"
        "    const auto* const found = there == nullptr && trusts ? &own : there;",
        "nodes_own_node_not_read"),
    mistake(
        QUEUE,
        "            if (!ahead.empty()) {\n",
        "            if (!ahead.empty() && (!core::planted(core::bug::nodes_writer_passes_readers) ||\n"
        "                                   is_writer(*ahead.back()))) {\n",
        "nodes_writer_passes_readers"),
    mistake(
        QUEUE,
        "            if (writer != ahead.rend()) {\n",
        "            if (writer != ahead.rend() &&\n"
        "                (!core::planted(core::bug::nodes_reader_asks_its_neighbour) || "
        "writer == ahead.rbegin())) {\n",
        "nodes_reader_asks_its_neighbour"),
    mistake(
        QUEUE,
        "std::uint64_t taken = node.claim.permits;",
        "std::uint64_t taken = core::planted(core::bug::nodes_permits_overdrawn) ? 0 : "
        "node.claim.permits;",
        "nodes_permits_overdrawn"),
    mistake(
        CLAIMS,
        "    if (claim.nodes.size() > 1 || now < claim.doubt_until) {\n",
        "    if (claim.nodes.size() > 1 ||\n"
        "        (now < claim.doubt_until && "
        "!core::planted(core::bug::nodes_lost_hold_not_swept))) {\n",
        "nodes_lost_hold_not_swept"),
    mistake(
        CLAIMS,
        "    if (claim.request != 0) {\n        claim.changed = true;\n",
        "    if (claim.request != 0) {\n"
        "        claim.changed = !core::planted(core::bug::nodes_news_while_reading_dropped);\n",
        "nodes_news_while_reading_dropped"),
    mistake(
        NEWS,
        "if (wanted && entry.watch == 0) {",
        "if (wanted && entry.watch == 0 && "
        "!(core::planted(core::bug::nodes_name_not_watched_again) && entry.hears)) {",
        "nodes_name_not_watched_again"),
    mistake(
        CLAIMS,
        "                          .asked_at = claim.asked_at,\n",
        "                          .asked_at = "
        "core::planted(core::bug::nodes_turn_from_now) ? now : claim.asked_at,\n",
        "nodes_turn_from_now"),

    # Leaving.
    mistake(
        CLAIMS,
        "    const bool unknown = reason.code == errc::outcome_unknown;\n",
        "    const bool unknown =\n"
        "        reason.code == errc::outcome_unknown && "
        "!core::planted(core::bug::nodes_unanswered_creation_forgotten);\n",
        "nodes_unanswered_creation_forgotten"),
    mistake(
        CLAIMS,
        "if (claim.read_at < claim.doubt_until) {",
        "if (claim.read_at < claim.doubt_until && "
        "!core::planted(core::bug::nodes_late_creation_kept)) {",
        "nodes_late_creation_kept"),
    mistake(
        CLAIMS,
        "    } else if (reply.error) {\n        go_on_later(",
        "    } else if (reply.error && !core::planted(core::bug::nodes_removal_assumed)) {\n"
        "        go_on_later(",
        "nodes_removal_assumed"),
    mistake(
        CLAIMS,
        "} else if (now >= claim.expires) {",
        "} else if (now >= claim.expires && core::planted(core::bug::nodes_lapsed_hold_stays)) {\n"
        "                claim.expires = never;\n"
        "            } else if (now >= claim.expires) {",
        "nodes_lapsed_hold_stays"),
    mistake(
        CLAIMS,
        "void claim_table::leave(claim& claim, clock::time_point now) {\n",
        "void claim_table::leave(claim& claim, clock::time_point now) {\n"
        "    if (claim.current == state::in_line && "
        "core::planted(core::bug::nodes_waiter_leaves_its_node)) {\n"
        "        claim.nodes.clear();\n"
        "    }\n",
        "nodes_waiter_leaves_its_node"),

    # Conversions, lingering.
    mistake(
        CLAIMS,
        "somebody_between(queue, claim.labels, 0, new_node.place)",
        "!core::planted(core::bug::nodes_upgrade_passes_others) &&\n"
        "                      somebody_between(queue, claim.labels, 0, new_node.place)",
        "nodes_upgrade_passes_others"),
    mistake(
        CLAIMS,
        "            set_token(claim, new_node);\n",
        "            if (!core::planted(core::bug::nodes_upgrade_keeps_token)) {\n"
        "                set_token(claim, new_node);\n"
        "            }\n",
        "nodes_upgrade_keeps_token"),
    mistake(
        CLAIMS,
        "claim.nodes.front().place, new_node.place);",
        "claim.nodes.front().place, new_node.place) &&\n"
        "                                         "
        "!core::planted(core::bug::nodes_downgrade_lets_a_writer_in);",
        "nodes_downgrade_lets_a_writer_in"),
    mistake(
        CLAIMS,
        "place->place)) {",
        "place->place) &&\n"
        "        !core::planted(core::bug::nodes_linger_behind_others)) {",
        "nodes_linger_behind_others"),
])
