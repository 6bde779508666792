from mutant import mutant

MUTANTS = [
    mutant(
        "src/runtime/callers.cpp",
        "got.jeopardy, got.longest, caller->asked->kind,",
        "got.jeopardy, clock::time_point::max(), caller->asked->kind,",
        "A hold that ends by max_hold says so even before the notifier does.",
        "holdfast_integration_tests "
        "loss_test.a_hold_that_ends_at_its_max_hold_never_gives_another_reason"),
    mutant(
        "src/runtime/session.cpp",
        "held.set_token(caller->token);",
        "static_cast<void>(held);",
        "An upgrade has a token of its own.",
        "holdfast_integration_tests "
        "shared_mutex_test.the_only_reader_becomes_the_writer_with_a_larger_token"),
    mutant(
        "src/runtime/session.cpp",
        "pending() && clock::now() < deadline;",
        "pending() && deadline < clock::now();",
        "shutdown waits for releases that are under way.",
        "holdfast_integration_tests "
        "shutdown_test.a_silent_store_is_waited_for_no_longer_than_the_timeout"),
    mutant(
        "src/runtime/session.cpp",
        "    queries_.close();\n",
        "",
        "shutdown ends a wait for a latch.",
        "holdfast_integration_tests "
        "latch_test.shutting_the_client_down_ends_the_wait_at_once"),
    mutant(
        "src/api/lease.cpp",
        "after < std::chrono::milliseconds{0} || ",
        "",
        "release_after refuses a negative time.",
        "holdfast_integration_tests "
        "durations.that_make_no_sense_are_refused_and_nothing_is_left"),
    mutant(
        "src/runtime/known_holds.cpp",
        "found->second.itself->set_loss(why.code, why.detail);",
        "static_cast<void>(why);",
        "A revoked lease says that it was revoked.",
        "holdfast_integration_tests loss_test.*"),
    mutant(
        "src/runtime/session.cpp",
        "table.cancel(caller->number, errc::cancelled, now);",
        "table.on_time(now);",
        "A stop token ends the wait.",
        "holdfast_integration_tests "
        "failure_test.a_cancelled_acquisition_leaves_nothing_behind_once_its_answer_h"
        "as_come"),
    mutant(
        "src/runtime/queries.cpp",
        "            continue;  // what happened before the watch was not seen\n",
        "",
        "A latch that opens while the watch is being set up is not slept through.",
        "holdfast_integration_tests "
        "latch_test.one_that_opens_while_its_watch_is_set_up_is_not_slept_through"),
    mutant(
        "src/runtime/queries.cpp",
        "if (reply.error.code != errc::outcome_unknown || clock::now() >= limits.deadline) {",
        "if (reply.error.code != errc::outcome_unknown || clock::now() < limits.deadline) {",
        "A count_down without an answer is sent again.",
        "holdfast_integration_tests "
        "latch_test.counting_down_counts_once_when_the_answer_is_lost"),
    mutant(
        "src/runtime/queries.cpp",
        "            patience_ends = deadline_after(settings_.outage_patience);\n"
        "        } else",
        "        } else",
        "The patience with an outage starts anew with every answer.",
        "holdfast_integration_tests "
        "latch_test.the_patience_with_an_outage_starts_anew_with_every_answer"),
    mutant(
        "src/runtime/queries.cpp",
        "reply.known || !seen_counting ? failure{} : latch_is_gone();",
        "{};",
        "A latch whose lifetime ends does not look open to those who wait for it.",
        "holdfast_integration_tests "
        "latch_test.one_that_ends_with_its_lifetime_does_not_look_open_to_those_who_saw_it_count"),
    mutant(
        "src/runtime/joint_hold.cpp",
        "one.value_or(release_outcome::unknown)",
        "one.value_or(release_outcome::released)",
        "A release without an answer is not called released.",
        "holdfast_unit_tests release_tally.*"),
    mutant(
        "src/runtime/session.cpp",
        "std::min(deadline, deadline_after(request_timeout_))",
        "std::max(deadline, deadline_after(request_timeout_))",
        "A multi_lock's question to the store ends by the caller's deadline.",
        "holdfast_joint_tests "
        "multi_lock_faults.a_question_to_a_silent_store_ends_by_the_callers_deadline"),
    mutant(
        "src/runtime/session.cpp",
        "question->cancel(table, now);",
        "table.on_time(now);",
        "A stop token ends a multi_lock's question.",
        "holdfast_joint_tests "
        "multi_lock_faults.what_is_granted_after_the_caller_stopped_is_not_kept"),
    mutant(
        "src/runtime/keyed_lanes.cpp",
        "if (!its.running && its.waiting.size() == 1) {",
        "if (its.waiting.size() == 1) {",
        "A keyed_executor runs one operation of a key at a time.",
        "holdfast_unit_tests keyed_executor.*"),
    mutant(
        "src/runtime/keyed_lanes.cpp",
        "    room_.notify_all();\n"
        "    std::call_once",
        "    std::call_once",
        "Closing a keyed_executor wakes those who wait for room.",
        "holdfast_unit_tests "
        "keyed_executor.closing_refuses_those_who_wait_for_room_while_operations_go_o"
        "n"),
    mutant(
        "src/runtime/fork_guard.cpp",
        "pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, "
        "std::memory_order_relaxed); });",
        "pthread_atfork([] { generation.fetch_add(0, std::memory_order_relaxed); }, "
        "nullptr, nullptr);",
        "A forked child knows that its clients are the parent's.",
        "holdfast_integration_tests fork_test.asking_in_the_child_fails"),
]
