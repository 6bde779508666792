from mutant import mutant

MUTANTS = [
    mutant(
        "src/runtime/recursion.cpp",
        "std::erase_if(one.levels, [](lock_object level) { return level != of_a_lease; });",
        "one.levels.clear();",
        "A lease of a recursive_mutex outlives its thread.",
        "holdfast_integration_tests "
        "recursive_mutex_test.a_lease_outlives_the_thread_that_acquired_it"),
    mutant(
        "src/api/lease.cpp",
        "left_ = hold_->loss() != errc{};",
        "left_ = false;",
        "A level of a lost recursive_mutex says why when it was released.",
        "holdfast_integration_tests recursive_mutex_test.a_loss_reaches_all_levels"),
    mutant(
        "src/api/lease.cpp",
        "source->stop_requested() || loss() == errc{}) {",
        "source->stop_requested() || source != nullptr) {",
        "A token taken from lost() after the deadline is triggered already.",
        "holdfast_integration_tests "
        "loss_test.lost_is_triggered_at_the_deadline_even_while_another_callback_bloc"
        "ks_the_notifier"),
    mutant(
        "src/api/lease.cpp",
        "return now >= longest_ ? errc::max_hold_exceeded : errc::lost;",
        "return errc::lost;",
        "Why a lease ended is told by the clock, too.",
        "holdfast_integration_tests "
        "loss_test.a_hold_that_ends_at_its_max_hold_never_gives_another_reason"),
    mutant(
        "src/api/lease.cpp",
        "        release();\n"
        "        hold_ = std::move(other.hold_);",
        "        hold_ = std::move(other.hold_);",
        "Assigning to a lease releases what it held.",
        "holdfast_integration_tests lease_test.assigning_an_empty_lease_releases"),
    mutant(
        "src/api/lease.cpp",
        "return *this && hold_->remaining() < hold_->jeopardy();",
        "return hold_ && hold_->remaining() < hold_->jeopardy();",
        "A lost lease is not at risk any more.",
        "holdfast_integration_tests "
        "lease_test.one_that_is_lost_is_not_at_risk_any_more"),
    mutant(
        "src/api/lease.cpp",
        "    if (session_->forked()) {\n"
        "        return errc::forked;  // it belongs to the parent\n"
        "    }\n",
        "",
        "A lease is not valid in a forked child.",
        "holdfast_integration_tests "
        "fork_test.a_lease_of_the_parents_is_no_lease_in_the_child"),
    mutant(
        "src/api/multi_lease.cpp",
        "first = std::min(first, one->valid_until());",
        "first = one->valid_until();",
        "A multi_lease is valid until the first of its members ends.",
        "holdfast_joint_tests "
        "multi_lock_faults.a_multi_lease_is_valid_until_the_first_member_ends"),
    mutant(
        "src/api/multi_lease.cpp",
        "            return one.outcome;\n"
        "        }\n"
        "        if (one.outcome == release_outcome::unknown) {",
        "            result = one.outcome;\n"
        "        }\n"
        "        if (one.outcome == release_outcome::unknown) {",
        "A lost member is the worst that a release can find.",
        "holdfast_joint_tests "
        "multi_lock_faults.a_lost_member_is_the_worst_that_a_release_can_find"),
    mutant(
        "src/api/joint_request.cpp",
        "~partial_hold() { give_back(std::move(taken_)); }",
        "~partial_hold() = default;",
        "A multi_lock that gives up keeps nothing.",
        survives="Only exceptions get here: what is given up in other ways has been given "
        "back before."),
    mutant(
        "src/api/joint_request.cpp",
        "    if (gone == count) {\n"
        "        return true;\n"
        "    }",
        "    if (gone == count || count > 0) {\n"
        "        return true;\n"
        "    }",
        "A multi_lock whose first lock was lost before the last was there is not "
        "granted.",
        "holdfast_joint_tests "
        "multi_lock_faults.a_member_lost_while_others_were_waited_for_is_taken_anew"),
    mutant(
        "src/api/client.cpp",
        "std::max(options.require, required_by_environment())",
        "std::max(options.require, std::min(options.require, "
        "required_by_environment()))",
        "HOLDFAST_REQUIRE refuses a store that excludes less.",
        "holdfast_integration_tests "
        "failure_test.the_environment_may_ask_for_more_than_the_options"),
    mutant(
        "src/api/request.cpp",
        "return deadline <= clock::now() ? none() : patience{true, deadline};",
        "return patience{true, deadline};",
        "A deadline that has passed means one attempt, not none.",
        "holdfast_integration_tests "
        "std_conformance_test.negative_and_tiny_waits_end_at_once"),
    mutant(
        "src/api/latch.cpp",
        "if (count > latch::most) {",
        "if (count == latch::most + 1) {",
        "A negative count opens no latch.",
        "holdfast_integration_tests "
        "latch_test.a_negative_count_is_refused_and_opens_nothing"),
]
