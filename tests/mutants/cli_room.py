from mutant import mutant

MUTANTS = [
    mutant(
        "cli/run.cpp",
        "if (once_ && succeeded && !command.lost) {",
        "if (once_ && succeeded) {",
        "A run that lost its lock does not count for --once-per.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_that_max_hold_ended"),
    mutant(
        "cli/run.cpp",
        "if (!ours || once_->remember(started_at_)) {",
        "if ((ours || !ours) && once_->remember(started_at_)) {",
        "A run whose loss is found out at its end does not count for --once-per.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_whose_loss_is_found_out_at_its_end"),
    mutant(
        "cli/run.cpp",
        "rest > milliseconds{0} && !command.lost ?",
        "rest > milliseconds{0} ?",
        "A lock that was lost is not kept by --min-hold.",
        "holdfast_cli_tests hold_time.min_hold_does_not_keep_a_lock_that_was_lost"),
    mutant(
        "cli/run.cpp",
        "        prctl(PR_SET_CHILD_SUBREAPER, 1);\n",
        "",
        "On loss what the command put into the background ends, too.",
        "holdfast_cli_tests loss.takes_grandchildren_that_left_the_group_with_it"),
    mutant(
        "cli/run.cpp",
        "            command.lost = true;\n"
        "            command.loss_reason = errc::lost;\n",
        "            command.loss_reason = errc::lost;\n",
        "A loss that only the release finds out is a loss.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_whose_loss_is_found_out_at_its_end"),
    mutant(
        "cli/supervisor.cpp",
        "if (!has_group || one.group != child_) {",
        "if (one.group != child_) {",
        "On loss what stayed in the group of a command that has ended is killed.",
        "holdfast_cli_tests "
        "loss.takes_what_stayed_in_the_group_of_a_command_that_obeyed"),
    mutant(
        "cli/supervisor.cpp",
        "    signal_everyone(SIGCONT);  // a stopped process cannot obey\n",
        "",
        "A stopped command is woken to obey TERM.",
        "holdfast_cli_tests loss.wakes_a_stopped_command_so_that_it_can_obey"),
    mutant(
        "cli/supervisor.cpp",
        "        valid_until_ = std::min(held_.valid_until(), terms_.hold_end);\n",
        "        valid_until_ = held_.valid_until();\n",
        "--max-hold ends the command before it has held the lock that long.",
        survives="Equivalent: the lease itself ends with its max_hold."),
    mutant(
        "cli/supervisor.cpp",
        "            return child_reaped_ && none_left_;\n",
        "            return child_reaped_;\n",
        "Descendants that outlive the command after a loss are ended before the "
        "lease.",
        "holdfast_cli_tests loss.takes_grandchildren_that_left_the_group_with_it"),
    mutant(
        "cli/ending.hpp",
        "return polite < latest ? polite : latest;",
        "return polite < latest ? latest : polite;",
        "KILL comes before the lease ends.",
        "holdfast_cli_tests ending.kill_is_due_at_once_when_the_lease_is_over"),
    mutant(
        "cli/signals.cpp",
        "    set_handler(SIGCHLD, SIG_DFL);\n",
        "",
        "The exit status is the command's, even if SIGCHLD was ignored.",
        "holdfast_cli_tests "
        "signals.the_status_is_the_commands_when_the_death_of_children_was_ignored"),
    mutant(
        "cli/child.cpp",
        "    prctl(PR_SET_PDEATHSIG, SIGKILL);\n",
        "",
        "When the program is killed the kernel kills the command.",
        "holdfast_cli_tests signals.kill_of_the_program_kills_the_command"),
    mutant(
        "cli/check.cpp",
        "if (holder.lingering || (arguments.owner",
        "if ((arguments.owner",
        "A lock that is only kept on purpose is not held any more.",
        "holdfast_cli_tests "
        "hold_time.what_min_hold_keeps_is_not_held_by_the_command_any_more"),
    mutant(
        "cli/check.cpp",
        "arguments.token->value - first < holder.token_count;",
        "arguments.token->value - first <= holder.token_count;",
        "check takes only tokens that were granted.",
        "holdfast_cli_tests hold_time.check_takes_only_the_token_that_was_granted"),
    mutant(
        "cli/once_per.cpp",
        "std::chrono::ceil<milliseconds>(started + blocked_for_ - clock::now())",
        "std::chrono::ceil<milliseconds>(std::max(started, clock::now()) + "
        "blocked_for_ - clock::now())",
        "--once-per counts from the start of the run.",
        "holdfast_cli_tests hold_time.once_per_counts_from_the_start_of_a_long_run"),
    mutant(
        "cli/background_writer.cpp",
        "        thread_.detach();\n",
        "        thread_.join();\n",
        "The program ends although nobody reads what it writes.",
        "holdfast_cli_tests output.that_nobody_reads_does_not_delay_the_release"),
    mutant(
        "cli/messages.cpp",
        "            ::poll(&room, 1, -1);\n"
        "            continue;\n",
        "            static_cast<void>(room);\n"
        "            return;\n",
        "Nothing is lost when somebody has made the output non-blocking.",
        "holdfast_cli_tests write_all.*"),
    mutant(
        "cli/release.cpp",
        "holder.process == liveness::dead) {",
        "holder.process != liveness::alive) {",
        "A holder whose process is not known to be dead is asked about.",
        "holdfast_cli_tests foreign_holder.*"),
]
