"""Mistakes in the recipe over ordered nodes, which the simulator finds (tests/sim/nodes_test.cpp)."""

from mistake import mistake, table

RECIPE = "engines/nodes/recipe.cpp"

TABLE = table("planted.hpp", "core::planted(core::bug::NAME)", [
    # Sessions.
    mistake(
        RECIPE,
        "std::max(session.valid_until, session.sent_at + reply.ttl);",
        "std::max(session.valid_until,\n"
        "        (core::planted(core::bug::nodes_validity_from_receipt) ? now : "
        "session.sent_at) + reply.ttl);",
        "nodes_validity_from_receipt"),
    mistake(
        RECIPE,
        "    return left < ttl ? left : milliseconds::zero();\n",
        "    return left < ttl && !core::planted(core::bug::nodes_granted_ttl_ignored) ? left\n"
        "                                                                  : milliseconds::zero();\n",
        "nodes_granted_ttl_ignored"),
    mistake(
        RECIPE,
        "            fail_renewals(key, trouble);\n",
        "            fail_renewals(key, trouble);\n"
        "            if (core::planted(core::bug::nodes_unanswered_keep_alive_counts)) {\n"
        "                session.valid_until = now + session.granted;\n"
        "                session.confirmed_at = now;\n"
        "            }\n",
        "nodes_unanswered_keep_alive_counts"),

    # The queue.
    mistake(
        RECIPE,
        "const auto* const found = find_node(queue, own.claim.label);",
        "const auto* const there = find_node(queue, own.claim.label);\n"
        "    const bool trusts = core::planted(core::bug::nodes_own_node_not_read) && "
        "!own.id.empty();\n"
        "    const auto* const found = there == nullptr && trusts ? &own : there;",
        "nodes_own_node_not_read"),
    mistake(
        RECIPE,
        "            if (!ahead.empty()) {\n",
        "            if (!ahead.empty() && (!core::planted(core::bug::nodes_writer_passes_readers) ||\n"
        "                                   is_writer(*ahead.back()))) {\n",
        "nodes_writer_passes_readers"),
    mistake(
        RECIPE,
        "            if (writer != ahead.rend()) {\n",
        "            if (writer != ahead.rend() &&\n"
        "                (!core::planted(core::bug::nodes_reader_asks_its_neighbour) || "
        "writer == ahead.rbegin())) {\n",
        "nodes_reader_asks_its_neighbour"),
    mistake(
        RECIPE,
        "std::uint64_t taken = node.claim.permits;",
        "std::uint64_t taken = core::planted(core::bug::nodes_permits_overdrawn) ? 0 : "
        "node.claim.permits;",
        "nodes_permits_overdrawn"),
    mistake(
        RECIPE,
        "    if (who.nodes.size() > 1 || now < who.doubt_until) {\n",
        "    if (who.nodes.size() > 1 ||\n"
        "        (now < who.doubt_until && !core::planted(core::bug::nodes_lost_hold_not_swept))) {\n",
        "nodes_lost_hold_not_swept"),
    mistake(
        RECIPE,
        "        if (who.request != 0) {\n            who.changed = true;\n",
        "        if (who.request != 0) {\n"
        "            who.changed = !core::planted(core::bug::nodes_news_while_reading_dropped);\n",
        "nodes_news_while_reading_dropped"),
    mistake(
        RECIPE,
        "if (wanted && record.watch == 0) {",
        "if (wanted && record.watch == 0 && "
        "!(core::planted(core::bug::nodes_name_not_watched_again) && record.hears)) {",
        "nodes_name_not_watched_again"),
    mistake(
        RECIPE,
        "                          .asked_at = who.asked_at,\n",
        "                          .asked_at = "
        "core::planted(core::bug::nodes_turn_from_now) ? now : who.asked_at,\n",
        "nodes_turn_from_now"),

    # Leaving.
    mistake(
        RECIPE,
        "    const bool unknown = why.code == errc::outcome_unknown;\n",
        "    const bool unknown =\n"
        "        why.code == errc::outcome_unknown && "
        "!core::planted(core::bug::nodes_unanswered_creation_forgotten);\n",
        "nodes_unanswered_creation_forgotten"),
    mistake(
        RECIPE,
        "if (who.read_at < who.doubt_until) {",
        "if (who.read_at < who.doubt_until && !core::planted(core::bug::nodes_late_creation_kept)) {",
        "nodes_late_creation_kept"),
    mistake(
        RECIPE,
        "    } else if (reply.error) {\n        if (who->verdict) {\n",
        "    } else if (reply.error && !core::planted(core::bug::nodes_removal_assumed)) {\n"
        "        if (who->verdict) {\n",
        "nodes_removal_assumed"),
    mistake(
        RECIPE,
        "} else if (now >= who.expires) {",
        "} else if (now >= who.expires && core::planted(core::bug::nodes_lapsed_hold_stays)) {\n"
        "                who.expires = never;\n"
        "            } else if (now >= who.expires) {",
        "nodes_lapsed_hold_stays"),
    mistake(
        RECIPE,
        "void recipe::leave(claim& who, clock::time_point now) {\n",
        "void recipe::leave(claim& who, clock::time_point now) {\n"
        "    if (who.now_in == state::in_line && "
        "core::planted(core::bug::nodes_waiter_leaves_its_node)) {\n"
        "        who.nodes.clear();\n"
        "    }\n",
        "nodes_waiter_leaves_its_node"),

    # Conversions, lingering.
    mistake(
        RECIPE,
        "somebody_between(queue, who.labels, 0, new_node.place, anybody)",
        "!core::planted(core::bug::nodes_upgrade_passes_others) &&\n"
        "                      somebody_between(queue, who.labels, 0, new_node.place, anybody)",
        "nodes_upgrade_passes_others"),
    mistake(
        RECIPE,
        "            who.token = {new_node.token * settings_.tokens_per_node};\n",
        "            if (!core::planted(core::bug::nodes_upgrade_keeps_token)) {\n"
        "                who.token = {new_node.token * settings_.tokens_per_node};\n"
        "            }\n",
        "nodes_upgrade_keeps_token"),
    mistake(
        RECIPE,
        "new_node.place, is_writer);",
        "new_node.place, is_writer) &&\n"
        "                                         "
        "!core::planted(core::bug::nodes_downgrade_lets_a_writer_in);",
        "nodes_downgrade_lets_a_writer_in"),
    mistake(
        RECIPE,
        "place->place, anybody)) {",
        "place->place, anybody) &&\n"
        "        !core::planted(core::bug::nodes_linger_behind_others)) {",
        "nodes_linger_behind_others"),
])
