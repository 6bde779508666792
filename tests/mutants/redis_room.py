from mutant import mutant

MUTANTS = [
    mutant(
        "src/core/handover.cpp",
        "           !hold.tenure.in_doubt() &&\n",
        "",
        "What may have been revoked is not handed over.",
        "holdfast_redis_tests "
        "redis_revocation.keeps_the_next_thread_of_the_process_from_being_handed_the_lock"),
    mutant(
        "engines/redis/net/subscriber.cpp",
        "const bool looks_late = looks_at_ > left_at_ + unread_for;",
        "const bool looks_late = looks_at_ == clock::time_point::max();",
        "What a server says is read within 5 ms of an attendant's leaving.",
        "holdfast_model_tests model_subscriber.what_is_said_after_it_left_is_heard_soon"),
    mutant(
        "src/core/acquisition.cpp",
        "state_ == state::waiting && grant.asked_at >= sent_at_ && "
        "now - grant.asked_at < oldest_turn_;",
        "state_ == state::waiting && now - grant.asked_at < oldest_turn_;",
        "A grant in line counts only as the answer to the last question.",
        "holdfast_redis_tests "
        "redis_fair_lock.a_grant_that_answers_an_older_question_is_not_believed"),
    mutant(
        "engines/redis/waiting_line.hpp",
        "clock::time_point{clock::duration{message.question}}};",
        "clock::now()};",
        "A lease that another's release granted counts from the question.",
        "holdfast_redis_tests "
        "redis_giving.a_lease_that_was_given_is_trusted_no_longer_than_the_server_kee"
        "ps_it"),
    mutant(
        "src/core/acquisition.cpp",
        "its_terms.renewal == renewal_mode::automatic && its_terms.replicas == replica_policy{};",
        "its_terms.renewal == renewal_mode::automatic;",
        "A lock that was given by another's release counts only when the replicas confirm it.",
        "holdfast_unit_tests "
        "lock_table_giving.a_lease_that_replicas_confirm_is_asked_for_once_more"),
    mutant(
        "src/core/acquisition.cpp",
        "its_terms.renewal == renewal_mode::automatic && its_terms.replicas == replica_policy{};",
        "its_terms.replicas == replica_policy{};",
        "A lease that is not renewed begins its ttl when its owner asks once more.",
        "holdfast_unit_tests "
        "lock_table_giving.a_lease_that_is_not_renewed_is_asked_for_once_more"),
    mutant(
        "engines/redis/scripts/prelude/permits.lua",
        "redis.call('INCRBY', semaphore, '0')  --",
        "redis.pcall('INCRBY', semaphore, '0')  --",
        "A permit is not lost when its release is refused.",
        "holdfast_redis_tests "
        "redis_permissions.one_that_is_missing_is_named_and_leaves_nothing_for_ever"),
    mutant(
        "engines/redis/engine.cpp",
        "if (confirmed >= needed_now) {",
        "if (confirmed >= needed_now || confirmed > 0) {",
        "A lock counts only when as many replicas have it as were asked for.",
        "holdfast_redis_tests redis_replica_policy.*"),
    mutant(
        "engines/redis/engine.cpp",
        "            card_->keep();\n"
        "        } else {\n"
        "            unsettled_",
        "        } else {\n"
        "            unsettled_",
        "The card of a client stays while a lock of its may stay.",
        "holdfast_redis_tests redis_half_open.the_card_stays_when_a_release_had_no_answer"),
    mutant(
        "engines/redis/card.cpp",
        "                due_.store(clock::time_point{});",
        "                due_.store(clock::time_point::max());",
        "A card that could not be written is written again.",
        "holdfast_redis_tests "
        "redis_refusals.a_card_that_could_not_be_given_an_end_is_written_again"),
    mutant(
        "engines/redis/watches.cpp",
        "if (again || one.awaits_beginning) {",
        "if (one.awaits_beginning || (again && false)) {",
        "Whoever waits asks again when its channel flows again after a loss.",
        "holdfast_redis_topology_tests redis_watches.*"),
    mutant(
        "engines/redis/watches.cpp",
        "        found->second.listeners.at(number).awaits_beginning = true;\n",
        "        static_cast<void>(number);\n",
        "Whoever saw that a channel did not flow yet is told when it does.",
        "holdfast_redis_topology_tests "
        "redis_watches.who_looked_in_vain_is_told_when_notifications_flow"),
    mutant(
        "engines/redis/net/connection.cpp",
        "const auto code = sent ? errc::outcome_unknown : errc::store_unavailable;",
        "const auto code = sent && false ? errc::outcome_unknown : errc::store_unavailable;",
        "What was sent on a connection that broke has an unknown outcome.",
        "holdfast_redis_net_tests "
        "connection.a_killed_server_ends_requests_at_once_and_a_new_one_is_found"),
    mutant(
        "engines/redis/net/link.cpp",
        "    if (reached == pipeline::reach::sent) {\n"
        "        return {errc::outcome_unknown,",
        "    if (reached == pipeline::reach::unsent) {\n"
        "        return {errc::outcome_unknown,",
        "A request that was sent and not answered in time has an unknown outcome.",
        "holdfast_redis_net_tests connection.a_late_reply_is_dropped_in_order"),
    mutant(
        "engines/redis/net/connection.cpp",
        "    end_waiting(reason, after);\n"
        "    attempted_",
        "    static_cast<void>(after);\n"
        "    attempted_",
        "When a connection is refused, those who wait for it hear the reason at once.",
        "holdfast_redis_net_tests connection.*"),
    mutant(
        "engines/redis/net/pipeline.cpp",
        "pending_.front().hopeless_at <= now;",
        "pending_.front().hopeless_at > now + "
        "std::chrono::hours{9};",
        "A server that does not answer any more is given up.",
        "holdfast_redis_net_tests "
        "connection.a_server_that_hangs_for_good_is_given_up_and_found_again_when_it_"
        "wakes"),
    mutant(
        "engines/redis/net/pipeline.cpp",
        "oldest.replies_left <= oldest.replies_wanted) {",
        "oldest.replies_left > 0) {",
        "The answers to what goes ahead of a command are not its answer.",
        "holdfast_redis_net_tests connection.what_was_asked_ahead_is_ignored"),
    mutant(
        "engines/redis/net/subscriber.cpp",
        "    return !current.asked_at || now - *current.asked_at < believed_silence;",
        "    return !current.asked_at || now >= *current.asked_at;",
        "A silent subscription is given up and made anew.",
        "holdfast_redis_net_tests subscriber.a_server_that_hangs_is_noticed"),
    mutant(
        "engines/redis/net/subscriber.cpp",
        "all.swap(current.untold);",
        "current.untold.clear();",
        "What was read while somebody subscribed is told.",
        "holdfast_redis_net_tests "
        "attendance.nothing_is_lost_when_a_channel_is_added_while_nobody_reads"),
    mutant(
        "engines/redis/topology/sentinel.cpp",
        "return at->over.load() ? connection::expected{} : encoder(out, server);",
        "return at == nullptr ? connection::expected{} : encoder(out, server);",
        "Nothing is sent to a master that the sentinels have deposed.",
        "holdfast_redis_topology_tests "
        "redis_sentinel.a_hung_master_is_not_used_any_more_when_it_wakes_up"),
    mutant(
        "engines/redis/topology/sentinel.cpp",
        "            // Not we, only this server is done with.\n"
        "            result.error = {errc::outcome_unknown, deposed()};",
        "            result.error = {errc::store_unavailable, deposed()};",
        "What was sent to a master that was deposed meanwhile has an unknown outcome.",
        "holdfast_redis_topology_tests "
        "redis_sentinel.what_waited_for_the_old_master_is_told_though_not_of_a_shutdown"),
    mutant(
        "engines/redis/topology/sentinel.cpp",
        "        most_replicas_ = std::max(most_replicas_, "
        "deposed->server.replicas());\n",
        "",
        "A new master needs as many confirmations as the one before it had replicas.",
        "holdfast_redis_topology_tests "
        "redis_sentinel.work_resumes_when_the_master_is_killed"),
    mutant(
        "engines/redis/topology/sentinel.cpp",
        "        next->server.pubsub().subscribe(channel, channel_style::classic);\n",
        "        static_cast<void>(channel);\n",
        "Those who wait listen to the new master, too.",
        "holdfast_redis_topology_tests "
        "redis_sentinel.the_new_master_is_used_as_soon_as_the_sentinels_tell"),
    mutant(
        "engines/redis/topology/cluster.cpp",
        "result.error = {errc::outcome_unknown, from.where().text() + \" is a master "
        "no more\"};",
        "result.error = {errc::store_unavailable, from.where().text() + \" is a "
        "master no more\"};",
        "What was sent to a server that left the cluster has an unknown outcome.",
        "holdfast_redis_topology_tests redis_cluster_failover.*"),
    mutant(
        "engines/redis/topology/cluster.cpp",
        "        most_replicas_[to] = replicas_seen(*before);\n",
        "        most_replicas_[to] = 0;\n",
        "A slot's new master needs as many confirmations as the old one.",
        "holdfast_redis_topology_tests "
        "redis_cluster_new_master.a_majority_is_counted_from_what_the_old_one_had"),
    mutant(
        "engines/redis/topology/cluster_channels.cpp",
        "    if (channel.server && map_.is_master(*channel.server) && !deaf(*channel.server)) {",
        "    if (channel.server && map_.is_master(*channel.server)) {",
        "Channels leave a server that does not serve them.",
        "holdfast_redis_topology_tests "
        "redis_cluster_channels.a_classic_channel_leaves_a_server_that_does_not_answe"
        "r"),
    mutant(
        "engines/redis/topology/cluster_channels.cpp",
        "        found->second.server.reset();\n"
        "        owner_.want_refresh();\n"
        "    }\n"
        "}",
        "    }\n"
        "}",
        "A channel follows its slot to another server.",
        "holdfast_redis_topology_tests "
        "redis_cluster_channels.a_sharded_channel_follows_its_slot"),
    mutant(
        "engines/redis/scripts/prelude/others.lua",
        "    if tonumber(state) and left > turn_kept_for and over ~= state then",
        "    if tonumber(state) and left > turn_kept_for and over ~= state and false then",
        "What one of ours releases is Java's for a while, at read/write locks and semaphores too.",
        "holdfast_redis_script_tests read_write_turns.*:permit_turns.*"),
    mutant(
        "engines/redis/scripts/prelude/others.lua",
        "if over == state then",
        "if over == state or true then",
        "Java's waiters that do not come cost little.",
        "holdfast_redis_script_tests read_write_turns.*:permit_turns.*"),
    mutant(
        "engines/redis/scripts/prelude/turns.lua",
        "math.min(2 * lasts, longest_turn)",
        "lasts",
        "A Java program that is slow to come has longer turns.",
        "holdfast_redis_script_tests "
        "lock_turns.a_turn_that_was_missed_makes_the_next_one_longer_up_to_two_seconds"),
    mutant(
        "engines/redis/scripts/prelude/line.lua",
        "            listened = called <= now",
        "            listened = false",
        "A waiter that died before it listened does not keep a free fair lock.",
        "holdfast_redis_script_tests "
        "fair_grants.one_that_died_before_it_listened_is_not_waited_for_and_keeps_its_place"),
    mutant(
        "engines/redis/scripts/latch.lua",
        "    line = known == 1 and line or tonumber(new_line)",
        "    line = tonumber(new_line)",
        "A wait for a latch ends with its opening, although it is set again at once.",
        "holdfast_redis_script_tests "
        "latch_scripts.one_that_opened_and_is_set_again_goes_on_in_its_line"),
    mutant(
        "engines/redis/scripts/fair_acquire.lua",
        "    if owner == head or finish <= now + wait then",
        "    if finish <= now + wait then",
        "The first in the line of a fair lock costs Java no more than its own time when it dies.",
        "holdfast_redis_script_tests "
        "fair_scripts.the_first_in_line_counts_its_time_anew_when_those_before_it_have_gone"),
    mutant(
        "engines/redis/scripts/fair_acquire.lua",
        "    if owner == head or finish <= now + wait then",
        "    if owner == head or finish <= now then",
        "Java does not take a living waiter of ours for dead.",
        "holdfast_redis_script_tests "
        "fair_scripts.a_waiter_behind_others_whose_time_is_short_has_more_and_so_have_those_behind"),
    mutant(
        "engines/redis/scripts/lock_acquire.lua",
        "                and now_ms() < tonumber(alive_until) and hears(publish, told_at) then",
        "                and now_ms() < tonumber(alive_until) then",
        "One that finds a lock free gives it to nobody whose process is dead.",
        "holdfast_redis_script_tests "
        "lock_gifts.one_that_finds_it_free_has_it_if_nobody_who_listens_came_before"),
    mutant(
        "engines/redis/scripts/prelude/line.lua",
        "    return tonumber(score or now + wait) - now",
        "    return tonumber(wait)",
        "In a line that is never empty Java does not take waiters of ours for dead.",
        "holdfast_redis_script_tests fair_scripts."
        "whoever_gets_the_lock_late_moves_the_others_up_by_what_was_left_of_its_time"),
    mutant(
        "engines/redis/examination.cpp",
        "const bool keeps_log = loading ? appendonly == \"yes\" : ",
        "const bool keeps_log = ",
        "A server that loads its data is not taken for one that keeps none.",
        "holdfast_redis_topology_tests redis_server_judgement."
        "a_server_that_loads_its_data_is_not_taken_for_forgetful_or_alone"),
    mutant(
        "engines/redis/examination.cpp",
        "if (code == \"NOQUORUM\") {",
        "if (code == \"NOQUORUM\" && !user.empty()) {",
        "Sentinels that cannot agree on a new master are warned of.",
        "holdfast_redis_topology_tests redis_sentinel_judgement."
        "a_group_that_cannot_replace_its_master_is_warned_of_in_its_own_words"),
    mutant(
        "engines/redis/address_text.cpp",
        "text += (first ? \"?prefix=\" : \"&prefix=\") + encoded(store.prefix);",
        "text += first ? \"\" : encoded({});",
        "Two stores of one server do not look alike.",
        "holdfast_redis_net_tests "
        "address_parsing.stores_that_differ_in_their_prefix_are_shown_with_it"),
    mutant(
        "engines/redis/scripts/prelude/readers.lua",
        "    return count > 1 and (",
        "    return count > 0 and (",
        "A mode without an owner is no lock, and is left alone.",
        "holdfast_redis_tests "
        "redis_neighbours.what_somebody_else_keeps_under_a_locks_name_is_not_touched"),
    mutant(
        "engines/redis/scripts/prelude/telling.lua",
        "    local told = redis.pcall(publish, channel, message)",
        "    local told = redis.call(publish, channel, message)",
        "What nobody may be told of is given back, and told as given back.",
        "holdfast_redis_tests redis_permissions.what_nobody_can_be_told_of_is_given_back_all_the_same"),
    mutant(
        "engines/redis/scripts/prelude/tokens.lua",
        "    if not reason and after > 9007199254740991 then",
        "    if not reason and after > 9223372036854775807 then",
        "A counter that scripts cannot count on grants no tokens.",
        "holdfast_redis_tests "
        "redis_refusals.a_token_counter_that_counts_nothing_is_named_and_left_alone"),
    mutant(
        "engines/redis/catalogue.cpp",
        "slots > 0) {",
        "slots > 16384) {",
        "A list of a cluster with slots of nobody is not told as complete.",
        "holdfast_redis_tests "
        "redis_listing_of_a_cluster.says_that_slots_of_nobody_were_not_looked_at"),
]
