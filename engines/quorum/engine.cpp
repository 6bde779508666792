#include <quorum/engine.hpp>

#include <common/validate.hpp>
#include <quorum/watch.hpp>

#include <algorithm>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::engines {

std::unique_ptr<engine> v0::make_quorum(std::vector<std::unique_ptr<engine>> members,
                                        const quorum_options& options) {
    std::vector<std::string> addresses;
    std::vector<std::string> identities;
    for (const auto& each : members) {
        addresses.push_back(each->address());
        identities.push_back(each->store_identity());
    }
    return std::make_unique<quorums::quorum_engine>(std::move(members), options,
                                                    quorums::text_of(options, addresses),
                                                    quorums::identity_of(std::move(identities)));
}

}  // namespace holdfast::engines

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

/// What all members promise, as far as it survives being put to the vote.
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
    // A member that gave the lock to somebody by itself would not know what the others do.
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

[[nodiscard]] std::string duration_text(milliseconds value) {
    return std::to_string(value.count()) + "ms";
}

}  // namespace

std::string text_of(const quorum_options& options, const std::vector<std::string>& stores) {
    std::string settings;
    const auto add = [&](const char* name, milliseconds value) {
        settings += (settings.empty() ? "?" : "&") + std::string{name} + "=" + duration_text(value);
    };
    if (options.member_timeout) {
        add("member_timeout", *options.member_timeout);
    }
    if (options.drift) {
        add("drift", *options.drift);
    }
    if (options.restart_grace.count() > 0) {
        add("restart_grace", options.restart_grace);
    }
    for (const auto& each : stores) {
        settings += (settings.empty() ? "" : " ") + each;
    }
    return "quorum:" + settings;
}

std::string identity_of(std::vector<std::string> members) {
    std::sort(members.begin(), members.end());
    std::string text = "quorum:";
    for (const auto& each : members) {
        text += std::to_string(each.size()) + ":" + each;
    }
    return text;
}

store_instance instance_of(engine& member, const std::string& name) {
    const auto* const votes = member.offers().votes;
    return votes != nullptr ? votes->instance(name) : store_instance{};
}

failure check_distinct(const std::vector<engine*>& known) {
    for (std::size_t second = 1; second < known.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            auto& one = *known[first];
            auto& other = *known[second];
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

quorum_engine::quorum_engine(std::vector<std::unique_ptr<engine>> members, quorum_options options,
                             std::string address, std::string identity)
    : options_{completed(std::move(options))},
      address_{std::move(address)},
      identity_{std::move(identity)},
      members_{std::move(members)},
      suspects_(members_.size()),
      requests_until_sweep_{requests_between_sweeps} {
    if (members_.empty()) {
        failure{errc::bad_configuration, "name at least one store"}.raise("quorum without members");
    }
    std::vector<engine*> known;
    for (const auto& each : members_) {
        known.push_back(each.get());
        names_.push_back(each->address());
    }
    if (const auto bad = check_distinct(known)) {
        bad.raise("cannot use the " + address_);
    }
    // A quorum has no latches, permits or lines, and takes locks one by one: see `common_promises`.
    offers_ = {.watching = this, .operators = this, .examination = this, .votes = this};
    for (auto* const each : known) {
        const auto offered = each->offers();
        offers_.watching = offered.watching != nullptr ? offers_.watching : nullptr;
        offers_.operators = offered.operators != nullptr ? offers_.operators : nullptr;
        offers_.votes = offered.votes != nullptr ? offers_.votes : nullptr;
    }
    promises_ = common_promises(members_, options_, offers_.votes != nullptr);
    tokens_agree_ = offers_.votes != nullptr && promises_.tokens != fencing::none;
}

quorum_engine::~quorum_engine() {
    std::vector<leftover> last;
    {
        const std::lock_guard lock{guard_};
        repeats_ = false;
        last.swap(leftovers_);
    }
    repeater_ = {};
    give_back(last);  // members that leave give what is under way a moment
    {
        std::unique_lock lock{closing_guard_};
        closing_ = true;
        unused_.wait(lock, [&] { return uses_ == 0; });
    }
    // Members complete what is pending, and these completions find everything in place but the members
    // themselves, which are no longer called. All at once: each may wait for its store a little.
    std::vector<std::thread> leaving;
    leaving.reserve(members_.size());
    for (auto& member : members_) {
        try {
            leaving.emplace_back([left = std::move(member)]() mutable { left.reset(); });
        } catch (const std::system_error&) {
            // no thread to be had: it has left in this one
        }
    }
    for (auto& each : leaving) {
        each.join();
    }
}

void quorum_engine::attach(client_callbacks callbacks) {
    for (std::size_t member = 0; member < members_.size(); ++member) {
        use(member, [&](engine& store) { store.attach(callbacks); });
    }
}

clock::duration quorum_engine::member_timeout(milliseconds ttl) const {
    return options_.member_timeout.value_or(
        std::clamp(ttl / 20, shortest_member_timeout, longest_member_timeout));
}

clock::time_point quorum_engine::query_deadline(const call& how) const {
    return std::min(how.deadline,
                    now() + clock::duration{options_.member_timeout.value_or(longest_member_timeout)});
}

failure quorum_engine::lateness(const call& how) const {
    if (now() < how.deadline) {
        return {};
    }
    return {errc::store_unavailable, "the deadline had passed before anything was sent"};
}

/// Under the mutex.
void quorum_engine::note_answer(std::size_t member, const failure& error) {
    suspects_[member] = error.code == errc::store_unavailable || error.code == errc::outcome_unknown;
}

call quorum_engine::share_of(const call& how, clock::time_point deadline, bool last) const {
    return {std::min(how.deadline, deadline), last ? how.from : caller::must_not_block};
}

/// Suspects first: the caller waits for the last of them, which should be one that answers.
std::vector<std::size_t> quorum_engine::asking_order() {
    std::vector<std::size_t> order;
    const std::lock_guard lock{guard_};
    for (const bool suspect : {true, false}) {
        for (std::size_t member = 0; member < members_.size(); ++member) {
            if (suspects_[member] == suspect) {
                order.push_back(member);
            }
        }
    }
    return order;
}

std::unique_ptr<subscription> quorum_engine::watch(std::string name, lock_kind kind,
                                                   std::function<void()> hint) {
    std::vector<engine*> stores;
    stores.reserve(members_.size());
    for (const auto& each : members_) {
        stores.push_back(each.get());
    }
    return watch_all(stores, name, kind, std::move(hint));
}

}  // namespace holdfast::engines::quorums
