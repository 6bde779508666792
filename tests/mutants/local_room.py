from mutant import mutant

MUTANTS = [
    mutant(
        "engines/local/store_connection.cpp",
        "!hold.lingering && std::any_of",
        "std::any_of",
        "What is kept on purpose stays when its process has ended.",
        "holdfast_engine_tests "
        "local_processes.what_a_dead_process_keeps_on_purpose_outlives_its_other_hold"
        "s"),
    mutant(
        "engines/local/store_connection.cpp",
        "    transaction change{database_};\n"
        "    // The clock is read with the write lock in hand: waiting for it must "
        "not eat into the lease, nor\n"
        "    // let an expired hold look alive.\n"
        "    const records::moment at{clock::now(), std::chrono::system_clock::now()};",
        "    const records::moment at{clock::now(), std::chrono::system_clock::now()};\n"
        "    transaction change{database_};",
        "Waiting for the write lock does not let an expired hold look alive.",
        "holdfast_engine_tests "
        "store_file.a_hold_that_expires_while_others_wait_for_the_file_is_not_in_thei"
        "r_way"),
    mutant(
        "engines/local/store_connection.cpp",
        ".bind(4, to_number(now))\n"
        "                .bind(5, static_cast<std::int64_t>(request.mode))",
        ".bind(4, to_number(clock::time_point{}))\n"
        "                .bind(5, static_cast<std::int64_t>(request.mode))",
        "A renewal does not bring back what has expired.",
        "HOLDFAST_TEST_STORE=local holdfast_contract_tests "
        "*a_renewal_after_expiry_does_not_bring_the_lease_back"),
    mutant(
        "engines/records/rules.cpp",
        "std::max(fencing_token{last_token + 1}, request.token_floor);",
        "fencing_token{last_token + 1};",
        "A grant's token is not below the floor that was asked for.",
        "HOLDFAST_TEST_STORE=local holdfast_contract_tests "
        "*a_grant_starts_no_lower_than_the_floor_asked_for"),
    mutant(
        "engines/records/rules.cpp",
        "            last_token = std::max(last_token, own.first_token.value + own.token_count - 1);\n",
        "",
        "A token that a floor has raised is not given out again.",
        "HOLDFAST_TEST_STORE=local holdfast_contract_tests "
        "*a_holder_that_asks_again_is_raised_to_the_floor"),
    mutant(
        "engines/local/engine.cpp",
        "    if (request.linger.count() == 0) {\n"
        "        wake_map_->announce(key);",
        "    if (request.linger.count() > 0) {\n"
        "        wake_map_->announce(key);",
        "A release wakes those who wait, in milliseconds.",
        "holdfast_engine_tests "
        "local_engine.a_release_hints_the_waiting_client_at_once"),
    mutant(
        "engines/local/engine.cpp",
        "    if (result.downgraded) {\n"
        "        wake_map_->announce(wake_map::key_of(request.name));\n"
        "    }\n",
        "",
        "A downgrade wakes the readers that wait.",
        "holdfast_engine_tests "
        "local_engine.a_downgrade_and_an_open_latch_hint_as_well"),
    mutant(
        "engines/local/engine.cpp",
        "    if (!found.dead.empty()) {\n"
        "        watcher_->fire(name);\n"
        "    }\n",
        "",
        "A holder that died before it was watched is noticed at once.",
        "holdfast_engine_tests "
        "local_processes.a_holder_that_died_before_it_was_watched_is_noticed_at_once"),
    mutant(
        "engines/local/engine.cpp",
        "renew_reply{renew_reply::outcome::failed, error.reason()}",
        "renew_reply{renew_reply::outcome::gone, error.reason()}",
        "A store that cannot be asked has not said that the lease is gone.",
        "holdfast_engine_tests store_file.a_renewal_that_could_not_be_made_is_no_loss"),
    mutant(
        "engines/local/process_watch.cpp",
        "if (liveness_of(process, self_) == liveness::dead) {",
        "if (descriptors_[process] >= 0 && liveness_of(process, self_) == "
        "liveness::dead) {",
        "A holder that died before its process could be opened is noticed at once.",
        survives="Equivalent but for a few microseconds: the list of holders is made of "
        "living processes."),
    mutant(
        "engines/local/wake_map.cpp",
        "entry.key.load() == key && entry.engine.load(std::memory_order_relaxed) != "
        "engine_;",
        "entry.key.load() == key;",
        "A client's own waiters are not others.",
        "holdfast_engine_tests "
        "wake_map.waiters_are_counted_by_name_and_by_whose_they_are"),
    mutant(
        "engines/local/wake_map.cpp",
        "    map_->overflow.fetch_add(1);\n"
        "    return no_place;",
        "    return no_place;",
        "Waiters beyond the table's size are woken, too.",
        "holdfast_engine_tests "
        "wake_map.more_waiters_than_there_is_room_for_are_still_woken"),
    mutant(
        "engines/local/store_records.cpp",
        "    raise_counter();\n",
        "",
        "Tokens rise also when the store has come to an older state.",
        "holdfast_engine_tests "
        "by/older_store.*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "lend_writer(deadline, true)",
        "lend_writer(deadline, false)",
        "A fork does not stop those whom it waits for.",
        "holdfast_engine_tests "
        "local_processes.a_fork_does_not_stop_those_whom_it_waits_for"),
    mutant(
        "engines/local/connection_pool.cpp",
        "    file_guard::lock(memory_guard_);\n",
        "",
        "A program that reads the files of its store keeps its shared memory.",
        "holdfast_engine_tests "
        "local_processes.a_program_that_reads_the_files_of_its_store*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "    file_guard::lock(database_guard_);\n",
        "",
        "Another program that looks at the database during a fork leaves the journal.",
        "holdfast_engine_tests "
        "foreign_program.that_looks_while_a_holder_forks_leaves_its_journal"),
    mutant(
        "engines/local/connection_pool.cpp",
        "            others_.forget_files();\n",
        "",
        "What others said of their files means nothing when they have left.",
        "holdfast_engine_tests "
        "foreign_program.that_deletes_the_journal_between_*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "    others_.close();\n",
        "",
        "A forked child does not count as one that has the store open.",
        "holdfast_engine_tests "
        "foreign_program.that_deletes_the_journal_after_a_holder_*"),
    mutant(
        "engines/local/file_guard.cpp",
        "            ::close(std::exchange(guard->file_, -1));\n",
        "",
        "The store of a forked child has guards of its own.",
        "holdfast_engine_tests "
        "foreign_program.that_looks_leaves_the_journal_of_a_child_*"),
    mutant(
        "engines/local/file_guard.cpp",
        "    if (guard.use_count() == 1) {\n",
        "    if (guard) {\n",
        "A client that is closed leaves the guards to others of its process.",
        "holdfast_engine_tests "
        "foreign_program.that_looks_leaves_the_journal_after_the_process_*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "            writes_.lock(deadline);\n"
        "            connect(place, deadline);\n",
        "            connect(place, deadline);\n",
        "A program that reads the files of its store lets no second writer in.",
        "holdfast_engine_tests "
        "local_processes.a_program_that_reads_the_files_of_its_store*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "            files_.check();\n",
        "",
        "A holder notices that a file of the store was deleted.",
        "holdfast_engine_tests "
        "*is_noticed_by_the_holder_and_by_newcomers*"),
    mutant(
        "engines/local/connection_pool.cpp",
        "theirs == 0 || theirs == files_.present_mark()",
        "theirs != 1 || theirs == files_.present_mark()",
        "Nobody puts new files in place of those that others have open.",
        "holdfast_engine_tests "
        "*has_no_second_holder_and_nobody_crashes*"),
    mutant(
        "engines/local/database.cpp",
        "    int keep = 1;\n",
        "    int keep = 0;\n",
        "SQLite's files stay when the last client has gone.",
        "holdfast_engine_tests store_damage.the_files_outlast_the_clients_*"),
    mutant(
        "engines/local/wake_map.cpp",
        "    return std::min<std::size_t>(map_->used.load(), places);",
        "    return map_->used.load();",
        "Nothing that another program writes to wake is taken for an index.",
        "holdfast_engine_tests "
        "wake_map.whatever_another_program_writes_to_the_file_nobody_crashes"),
    mutant(
        "engines/local/store_records.cpp",
        "(state == liveness::unknown && unseen > remembered_clients)",
        "unseen > remembered_clients || idle.number(0) < 900000",
        "A living client keeps its card however many come after it.",
        "holdfast_engine_tests "
        "store_file.the_card_of_a_living_client_is_kept_too_until_it_holds_something"),
    mutant(
        "engines/common/worker_pool.cpp",
        "    if (workers_.empty()) {\n"
        "        return verdict::no_thread;\n"
        "    }\n",
        "",
        "A job is taken only if there is a thread for it.",
        "holdfast_engine_tests "
        "shortage.a_job_for_which_there_is_no_thread_is_left_to_the_caller"),
]
