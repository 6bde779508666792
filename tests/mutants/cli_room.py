from mutant import mutant

MUTANTS = [
    mutant(
        "cli/main.cpp",
        "        require_memory();\n",
        "",
        "A run does not wait for memory that nobody would give it.",
        "holdfast_cli_tests cold.too_little_memory_is_told_at_once_and_a_little_is_enough"),
    mutant(
        "cli/main.cpp",
        "    reserve_less_memory();\n",
        "",
        "A little memory is enough for a run.",
        "holdfast_cli_tests cold.too_little_memory_is_told_at_once_and_a_little_is_enough"),
    mutant(
        "cli/conclusion.cpp",
        "if (run_.once && succeeded && !command.lost && run_.once->counts(started_at_)) {",
        "if (run_.once && succeeded && run_.once->counts(started_at_)) {",
        "A run that lost its lock does not count for --once-per.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_that_max_hold_ended"),
    mutant(
        "cli/conclusion.cpp",
        "if (!last_seen.problem && !last_seen.held_by_us) {",
        "if (false) {",
        "A run whose loss is found out at its end does not count for --once-per.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_whose_loss_is_found_out_at_its_end"),
    mutant(
        "cli/conclusion.cpp",
        "rest > milliseconds{0} && !command.lost;",
        "rest > milliseconds{0};",
        "A lock that was lost is not kept by --min-hold.",
        "holdfast_cli_tests hold_time.min_hold_does_not_keep_a_lock_that_was_lost"),
    mutant(
        "cli/run.cpp",
        "        prctl(PR_SET_CHILD_SUBREAPER, 1);\n",
        "",
        "On loss what the command put into the background ends, too.",
        "holdfast_cli_tests loss.takes_grandchildren_that_left_the_group_with_it"),
    mutant(
        "cli/conclusion.cpp",
        "        command.lost = true;\n",
        "",
        "A loss that only the release finds out is a loss.",
        "holdfast_cli_tests "
        "hold_time.once_per_does_not_count_a_run_whose_loss_is_found_out_at_its_end"),
    mutant(
        "cli/conclusion.cpp",
        "if (problem && *problem && !run_.once->counts(started_at_)) {",
        "if (problem && *problem && false) {",
        "A period that is over needs no marker.",
        "holdfast_cli_tests "
        "marker_on_redis.of_a_period_that_ends_while_the_server_is_away_is_not_claimed"),
    mutant(
        "cli/conclusion.cpp",
        "    find_reasons();\n    warn_of_unreleased(rest_of_lease);\n",
        "",
        "A lock that cannot be released is told also when the command did not run.",
        "holdfast_cli_tests "
        "once_on_redis.a_lock_that_cannot_be_released_*"),
    mutant(
        "cli/supervisor.cpp",
        "if (!has_group || one.group != group_in_proc_) {",
        "if (one.group != group_in_proc_) {",
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
        "holdfast_cli_tests signals.kill_of_the_program_kills_the_command_without_*"),
    mutant(
        "cli/death_watch.cpp",
        "    ::kill(0, SIGKILL);\n",
        "",
        "When the program is killed its command ends, also after it changed its user.",
        "holdfast_cli_tests signals.kill_of_the_program_kills_*"),
    mutant(
        "cli/processes.cpp",
        "    std::vector<pid_t> open{self};\n",
        "    std::vector<pid_t> open{::getpid()};\n",
        "The numbers of an outer /proc are not taken for ours.",
        "holdfast_cli_tests strange_proc.of_an_outer_namespace_*"),
    mutant(
        "cli/supervisor.cpp",
        "    if (!all_reached) {\n",
        "    if (!all_reached && signal == SIGCONT) {\n",
        "Without /proc no descendant outlives the lock.",
        "holdfast_cli_tests strange_proc.that_is_not_there_hides_no_descendant"),
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
        "cli/once_per.cpp",
        "{ return holder.lingering; });",
        "{ return holder.permits > 0; });",
        "A lock that somebody holds is no earlier run, and --again leaves it alone.",
        "holdfast_cli_tests "
        "hold_time.a_lock_under_the_name_of_the_marker_is_no_earlier_run"),
    mutant(
        "cli/ending.cpp",
        "grace.value_or(default_grace(hold))",
        "grace.value_or(default_grace(ttl))",
        "The default grace fits --max-hold.",
        "holdfast_cli_tests ending.a_short_max_hold_gets_a_short_end"),
    mutant(
        "cli/text.cpp",
        "const bool shown = !is_invisible(c) && ",
        "const bool shown = c >= 0x20 && ",
        "Format characters do not reach the terminal.",
        "holdfast_cli_tests text.format_characters_and_broken_bytes_do_not_reach_the_terminal"),
    mutant(
        "cli/time_limit.cpp",
        "    report_(reason);\n"
        "    ::_exit(to_status(reason.code));\n",
        "    report_(reason);\n",
        "--timeout ends the program.",
        "holdfast_cli_tests time_limits.a_server_that_hangs_costs_no_more_than_the_timeout"),
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
        "holder.process == liveness::dead || holder.lingering) {",
        "holder.process != liveness::alive) {",
        "A holder whose process is not known to be dead is asked about.",
        "holdfast_cli_tests foreign_holder.*"),
    mutant(
        "cli/arguments.cpp",
        "if (is_once_per_marker(prefix + name)) {",
        "if (is_once_per_marker(name)) {",
        "No prefix makes a lock of the marker of another.",
        "holdfast_cli_tests "
        "once_on_redis.a_job_that_a_prefix_makes_the_marker_of_another_is_refused"),
]
