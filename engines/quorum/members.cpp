#include <quorum/members.hpp>

#include <quorum/watch.hpp>

#include <algorithm>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest_member_timeout{20};
constexpr milliseconds longest_member_timeout{500};

[[nodiscard]] double random_fraction() {
    thread_local std::minstd_rand source{std::random_device{}()};
    return std::uniform_real_distribution{0.0, 1.0}(source);
}

[[nodiscard]] std::uint64_t wall_clock() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
}

[[nodiscard]] quorum_options completed(quorum_options options) {
    auto& from = options.environment;
    if (!from.now) {
        from.now = [] { return clock::now(); };
    }
    if (!from.wall_clock) {
        from.wall_clock = wall_clock;
    }
    if (!from.random) {
        from.random = random_fraction;
    }
    return options;
}

[[nodiscard]] guarantees common_promises(const std::vector<std::unique_ptr<engine>>& members,
                                         const quorum_options& options, bool tokens_agree) {
    guarantees common = members.front()->promises();
    for (const auto& each : members) {
        const auto& one = each->promises();
        common.reach = std::min(common.reach, one.reach);
        common.tokens = std::min(common.tokens, one.tokens);
        common.shared = common.shared && one.shared;
        common.replicas = common.replicas && one.replicas;
        common.notices_dead_holders = common.notices_dead_holders && one.notices_dead_holders;
        common.minimum_ttl = std::max(common.minimum_ttl, one.minimum_ttl);
        common.maximum_ttl = std::min(common.maximum_ttl, one.maximum_ttl);
        common.ttl_granularity = std::max(common.ttl_granularity, one.ttl_granularity);
    }
    if (!tokens_agree) {
        common.tokens = std::min(common.tokens, fencing::best_effort);
    }
    // A member that granted a fair lock by itself would not know what the others do.
    common.permits = common.latches = common.fair = false;
    common.why_no_permits =
        "a quorum cannot count permits: of three stores, say, with two permits each, three clients "
        "can each have a majority";
    common.why_no_latches =
        "a quorum has no latches: members that missed a count would never agree again";
    common.drift = options.drift ? clock_drift{*options.drift, 0} : clock_drift{milliseconds{2}, 10};
    const auto reach = common.reach == scope::fleet  ? "every host that uses"
                       : common.reach == scope::host ? "this host only, in"
                                                     : "this process only, in";
    common.reach_text = std::string{reach} + " this quorum of " + std::to_string(members.size()) +
                        " stores (" + std::to_string(core::majority_of(members.size())) + " needed)";
    return common;
}

[[nodiscard]] std::vector<engine*> pointers_to(const std::vector<std::unique_ptr<engine>>& stores) {
    std::vector<engine*> all;
    all.reserve(stores.size());
    for (const auto& each : stores) {
        all.push_back(each.get());
    }
    return all;
}

}  // namespace

store_instance instance_of(engine& member, const std::string& name) {
    const auto* const votes = member.offers().votes;
    return votes != nullptr ? votes->instance(name) : store_instance{};
}

failure check_distinct(const std::vector<engine*>& members) {
    for (std::size_t second = 1; second < members.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            auto& one = *members[first];
            auto& other = *members[second];
            if (one.address() == other.address() || one.store_identity() == other.store_identity()) {
                return {errc::bad_configuration, one.address() + " is named twice; it has one vote"};
            }
            const auto id = instance_of(one, {}).id;
            if (!id.empty() && id == instance_of(other, {}).id) {
                return {errc::bad_configuration, one.address() + " and " + other.address() +
                                                     " are the same server; it has one vote"};
            }
        }
    }
    return {};
}

member_set::member_set(std::vector<std::unique_ptr<engine>> stores, quorum_options options,
                       const std::string& address)
    : options_{completed(std::move(options))}, stores_{std::move(stores)}, suspects_(stores_.size()) {
    if (stores_.empty()) {
        failure{errc::bad_configuration, "name at least one store"}.raise("quorum without members");
    }
    if (const auto twice = check_distinct(pointers_to(stores_))) {
        twice.raise("cannot use the " + address);
    }
    for (const auto& each : stores_) {
        names_.push_back(each->address());
    }
    const bool all_vote = all_have(&abilities::votes);
    promises_ = common_promises(stores_, options_, all_vote);
    tokens_agree_ = all_vote && promises_.tokens != fencing::none;
}

store_instance member_set::instance(std::size_t member, const std::string& name) {
    store_instance instance;
    use(member, [&](engine& store) { instance = instance_of(store, name); });
    return instance;
}

clock::duration member_set::timeout(milliseconds ttl) const {
    return options_.member_timeout.value_or(
        std::clamp(ttl / 20, shortest_member_timeout, longest_member_timeout));
}

clock::time_point member_set::query_deadline(const call& limits) const {
    return std::min(limits.deadline,
                    now() + clock::duration{options_.member_timeout.value_or(longest_member_timeout)});
}

failure member_set::lateness(const call& limits) const {
    if (now() < limits.deadline) {
        return {};
    }
    return {errc::store_unavailable, "the deadline had passed before anything was sent"};
}

std::vector<std::size_t> member_set::asking_order() const {
    std::vector<std::size_t> order;
    const auto suspects = this->suspects();
    for (const bool suspect : {true, false}) {
        for (std::size_t member = 0; member < size(); ++member) {
            if (suspects[member] == suspect) {
                order.push_back(member);
            }
        }
    }
    return order;
}

void member_set::attach(const client_callbacks& callbacks) {
    for (std::size_t member = 0; member < size(); ++member) {
        use(member, [&](engine& store) { store.attach(callbacks); });
    }
}

std::unique_ptr<subscription> member_set::watch(const std::string& name, lock_kind kind,
                                                std::function<void()> hint) {
    return watch_all(pointers_to(stores_), name, kind, std::move(hint));
}

void member_set::leave() {
    {
        std::unique_lock lock{leaving_guard_};
        leaving_ = true;
        unused_.wait(lock, [&] { return uses_ == 0; });
    }
    // All at once: each may wait for its store a little, and completes what is pending.
    std::vector<std::thread> leaving;
    leaving.reserve(size());
    for (auto& store : stores_) {
        try {
            leaving.emplace_back([left = std::move(store)]() mutable { left.reset(); });
        } catch (const std::system_error&) {
            // No thread to be had: the store has left in this one.
        }
    }
    for (auto& each : leaving) {
        each.join();
    }
}

}  // namespace holdfast::engines::quorums
