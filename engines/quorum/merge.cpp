#include <quorum/merge.hpp>

#include <core/quorum.hpp>
#include <quorum/holds.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using views = std::vector<const holder_info*>;

/// The value that most members name; of equals the larger.
template <class Get>
[[nodiscard]] auto most_named(const views& seen, const Get& get) {
    using value = std::decay_t<decltype(get(*seen.front()))>;
    std::map<value, int> votes;
    for (const auto* each : seen) {
        ++votes[get(*each)];
    }
    return std::max_element(
               votes.begin(), votes.end(),
               [](const auto& one, const auto& other) {
                   return std::pair{one.second, one.first} < std::pair{other.second, other.first};
               })
        ->first;
}

/// Whoever is seen alive is; a process is dead only if nobody sees it otherwise.
[[nodiscard]] liveness common_liveness(const views& seen) {
    bool dead = true;
    for (const auto* each : seen) {
        if (each->process == liveness::alive) {
            return liveness::alive;
        }
        dead = dead && each->process == liveness::dead;
    }
    return dead ? liveness::dead : liveness::unknown;
}

[[nodiscard]] holder_info merge_holder(const views& seen, std::size_t needed) {
    holder_info holder = *seen.front();
    holder.owner = outer_owner(holder.owner);
    holder.mode = most_named(seen, [](const holder_info& one) { return one.mode; });
    holder.token = most_named(seen, [](const holder_info& one) { return one.token; });
    holder.process = common_liveness(seen);
    std::vector<std::chrono::milliseconds> remaining;
    for (const auto* each : seen) {
        remaining.push_back(each->remaining);
        holder.since = std::min(holder.since, each->since);
        holder.token_count = std::max(holder.token_count, each->token_count);
        holder.lingering = holder.lingering || each->lingering;
        if (!holder.card) {
            holder.card = each->card;
        }
    }
    // It ends for all when it has ended on so many that the rest is no majority.
    std::sort(remaining.rbegin(), remaining.rend());
    holder.remaining = remaining[std::min(needed, remaining.size()) - 1];
    return holder;
}

}  // namespace

lock_info merge(const std::string& name, const std::vector<std::optional<lock_info>>& answers) {
    const auto needed = core::majority_of(answers.size());
    lock_info info;
    info.name = name;
    std::size_t silent = 0;
    std::map<owner_id, views> holders;
    for (const auto& each : answers) {
        if (!each) {
            ++silent;
            continue;
        }
        for (const auto& holder : each->holders) {
            holders[holder.owner].push_back(&holder);
        }
        if (each->waiters) {
            info.waiters = std::max(info.waiters.value_or(0), *each->waiters);
        }
        if (info.kind == name_kind::lock) {
            info.kind = each->kind;
            info.count = each->count;
        }
        const auto& last = each->last_revocation;
        if (last && (!info.last_revocation || last->at > info.last_revocation->at)) {
            info.last_revocation = last;
            info.last_revocation->owner = outer_owner(last->owner);
        }
    }
    for (const auto& [owner, seen] : holders) {
        if (seen.size() + silent >= needed) {
            info.holders.push_back(merge_holder(seen, needed));
        }
    }
    return info;
}

}  // namespace holdfast::engines::quorums
