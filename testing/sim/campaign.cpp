#include <holdfast/testing/sim/campaign.hpp>

#include <planted.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

namespace holdfast::core {

namespace {

std::atomic<bug> planted_now{bug::none};

}  // namespace

bool planted(bug which) noexcept {
    return planted_now.load(std::memory_order_relaxed) == which;
}

}  // namespace holdfast::core

namespace holdfast::testing::sim {

namespace {

struct progress {
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> failed{std::numeric_limits<std::uint64_t>::max()};
    std::atomic<std::uint64_t> schedules{0};
    std::atomic<std::uint64_t> events{0};
    std::atomic<std::uint64_t> grants{0};
};

/// Everything before the first failure is run, whoever runs it, so the answer does not depend on the
/// number of workers.
void work(const campaign& what, progress& all) {
    while (true) {
        const auto index = all.next.fetch_add(1);
        if (index >= what.schedules || index > all.failed.load()) {
            return;
        }
        const auto outcome = run(make_plan(what.first_seed + index));
        all.schedules.fetch_add(1);
        all.events.fetch_add(outcome.events);
        all.grants.fetch_add(outcome.grants);
        if (!outcome.ok()) {
            auto earliest = all.failed.load();
            while (index < earliest && !all.failed.compare_exchange_weak(earliest, index)) {
            }
        }
    }
}

}  // namespace

campaign_result run(const campaign& what) {
    progress all;
    {
        std::vector<std::jthread> workers;
        for (std::uint32_t i = 0; i < std::max<std::uint32_t>(what.workers, 1); ++i) {
            workers.emplace_back([&] { work(what, all); });
        }
    }
    campaign_result outcome{all.schedules, all.events, all.grants, std::nullopt};
    if (all.failed.load() < what.schedules) {
        outcome.failing_seed = what.first_seed + all.failed.load();
    }
    return outcome;
}

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
