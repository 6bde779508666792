#include <holdfast/testing/sim/campaign.hpp>

#include <planted.hpp>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

namespace holdfast::core {

namespace {

std::atomic<bug> planted_now{bug::none};

}  // namespace

bool planted(bug which) noexcept {
    return planted_now.load(std::memory_order_relaxed) == which;
}

}  // namespace holdfast::core

namespace holdfast::testing::sim {

const std::vector<std::string_view>& bug_names() {
    // In the order of `core::bug`, without `none`.
    static const std::vector<std::string_view> names{"deadline_from_receipt",
                                                     "turn_from_receipt",
                                                     "granted_ttl_ignored",
                                                     "deadline_ignored",
                                                     "gone_means_renewed",
                                                     "renewal_outlives_release",
                                                     "handover_keeps_token",
                                                     "handover_overruns_block",
                                                     "cancelled_waiter_stays",
                                                     "abandoned_grant_kept",
                                                     "wish_kept",
                                                     "offer_ends_with_the_front",
                                                     "vacancy_kept",
                                                     "grant_lets_nobody_ask",
                                                     "place_of_asker_not_taken",
                                                     "doubt_for_everybody",
                                                     "fixed_lease_extended",
                                                     "resend_with_new_owner",
                                                     "hint_while_asking_dropped",
                                                     "no_recheck_after_watch",
                                                     "release_assumed",
                                                     "refusal_is_final",
                                                     "max_hold_keeps_the_lock",
                                                     "timer_stays_armed",
                                                     "watch_stays",
                                                     "first_look_forgotten",
                                                     "store_release_ignores_owner",
                                                     "store_renewal_recreates",
                                                     "store_forgets_to_notify",
                                                     "store_token_repeats"};
    return names;
}

const std::vector<std::string_view>& quorum_bug_names() {
    // In the order of `core::bug`, after those above.
    static const std::vector<std::string_view> names{"quorum_of_half", "quorum_tokens_not_shared",
                                                     "quorum_undoes_nothing", "quorum_counts_the_gone"};
    return names;
}

const std::vector<std::string_view>& joint_bug_names() {
    // In the order of `core::bug`, after those above.
    static const std::vector<std::string_view> names{"joint_unsorted", "joint_rollback_forgets_one",
                                                     "joint_rollback_cancelled",
                                                     "joint_refusal_not_told"};
    return names;
}

const std::vector<std::string_view>& records_bug_names() {
    // In the order of `core::bug`, after those above.
    static const std::vector<std::string_view> names{
        "records_others_end_early",        "records_short_lease_not_told",
        "records_ended_hold_extended",     "records_late_hold_believed",
        "records_gone_from_memory",        "records_doubt_forgotten",
        "records_silence_means_done",      "records_edit_repeats",
        "records_conflict_overwritten",    "records_second_release_believed",
        "records_removed_while_held",      "records_tokens_start_over",
        "records_share_beside_exclusive",  "records_upgrade_among_others",
        "records_upgrade_keeps_token",     "records_permit_too_many",
        "records_release_takes_the_first", "records_latch_counts_twice"};
    return names;
}

const std::vector<std::string_view>& nodes_bug_names() {
    // In the order of `core::bug`, after those above.
    static const std::vector<std::string_view> names{"nodes_validity_from_receipt",
                                                     "nodes_granted_ttl_ignored",
                                                     "nodes_unanswered_keep_alive_counts",
                                                     "nodes_own_node_not_read",
                                                     "nodes_writer_passes_readers",
                                                     "nodes_reader_asks_its_neighbour",
                                                     "nodes_permits_overdrawn",
                                                     "nodes_lost_hold_not_swept",
                                                     "nodes_news_while_reading_dropped",
                                                     "nodes_name_not_watched_again",
                                                     "nodes_turn_from_now",
                                                     "nodes_unanswered_creation_forgotten",
                                                     "nodes_late_creation_kept",
                                                     "nodes_removal_assumed",
                                                     "nodes_lapsed_hold_stays",
                                                     "nodes_waiter_leaves_its_node",
                                                     "nodes_upgrade_passes_others",
                                                     "nodes_upgrade_keeps_token",
                                                     "nodes_downgrade_lets_a_writer_in",
                                                     "nodes_linger_behind_others"};
    return names;
}

planted_bug::planted_bug(std::string_view name) {
    if (name.empty()) {
        return;
    }
    auto names = bug_names();
    names.insert(names.end(), quorum_bug_names().begin(), quorum_bug_names().end());
    names.insert(names.end(), joint_bug_names().begin(), joint_bug_names().end());
    names.insert(names.end(), records_bug_names().begin(), records_bug_names().end());
    names.insert(names.end(), nodes_bug_names().begin(), nodes_bug_names().end());
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw std::invalid_argument{"no bug is called " + std::string{name}};
    }
    core::planted_now = static_cast<core::bug>(found - names.begin() + 1);
}

planted_bug::~planted_bug() {
    core::planted_now = core::bug::none;
}

}  // namespace holdfast::testing::sim
