#include <holdfast/multi_lock.hpp>

#include <api/joint_request.hpp>
#include <core/joint_acquisition.hpp>
#include <holdfast/detail/access.hpp>

#include <utility>

namespace holdfast {

using detail::patience;

namespace {

using detail::joint_target;

/// In the order in which they are taken, doubles dropped.
[[nodiscard]] std::vector<joint_target> in_order(const std::vector<joint_target>& targets) {
    std::vector<core::joint_place> places;
    places.reserve(targets.size());
    for (const auto& one : targets) {
        places.push_back({one.where->store_identity(), one.name});
    }
    std::vector<joint_target> result;
    for (const auto index : core::joint_order(places)) {
        result.push_back(targets[index]);
    }
    return result;
}

[[nodiscard]] std::vector<joint_target> checked(const std::vector<joint_target>& targets,
                                                const lease_options& options) {
    if (targets.empty()) {
        failure{errc::invalid_argument, "it needs at least one name"}.raise("multi_lock");
    }
    for (const auto& one : targets) {
        detail::check(*one.where, one.name, options);
    }
    return in_order(targets);
}

[[nodiscard]] std::vector<joint_target> targets_on(client& store, std::vector<std::string> names) {
    std::vector<joint_target> targets;
    targets.reserve(names.size());
    for (auto& name : names) {
        targets.push_back({detail::access::session_of(store), std::move(name)});
    }
    return targets;
}

[[nodiscard]] std::vector<joint_target> targets_of(const std::vector<multi_lock::member>& members) {
    std::vector<joint_target> targets;
    targets.reserve(members.size());
    for (const auto& one : members) {
        targets.push_back({detail::access::session_of(one.store), one.name});
    }
    return targets;
}

[[nodiscard]] std::optional<multi_lease> to_lease(std::shared_ptr<detail::joint_hold> taken) {
    return taken ? std::optional<multi_lease>{std::in_place, std::move(taken)} : std::nullopt;
}

}  // namespace

multi_lock::multi_lock(client& store, std::vector<std::string> names, lease_options options)
    : targets_{checked(targets_on(store, std::move(names)), options)}, options_{options} {}

multi_lock::multi_lock(const std::vector<member>& members, lease_options options)
    : targets_{checked(targets_of(members), options)}, options_{options} {}

multi_lock::~multi_lock() = default;

bool multi_lock::locked(std::shared_ptr<detail::joint_hold> taken) {
    if (!taken) {
        return false;
    }
    holds_.add(std::move(taken));
    return true;
}

void multi_lock::lock() {
    locked(detail::take_all(targets_, options_, patience::unlimited()));
}

bool multi_lock::lock_unless_stopped(std::stop_token stop) {
    return locked(detail::take_all(targets_, options_, patience::unlimited(), stop));
}

bool multi_lock::try_lock() {
    return locked(detail::take_all(targets_, options_, patience::none()));
}

bool multi_lock::lock_until(clock::time_point deadline) {
    return locked(detail::take_all(targets_, options_, patience::until(deadline)));
}

void multi_lock::unlock() noexcept {
    auto taken = holds_.take();
    if (!taken) {
        detail::programming_error("multi_lock::unlock without a hold");
    }
    multi_lease{std::move(taken)}.release();
}

multi_lease multi_lock::acquire() {
    return multi_lease{detail::take_all(targets_, options_, patience::unlimited())};
}

std::optional<multi_lease> multi_lock::acquire_unless_stopped(std::stop_token stop) {
    return to_lease(detail::take_all(targets_, options_, patience::unlimited(), stop));
}

std::optional<multi_lease> multi_lock::try_acquire() {
    return to_lease(detail::take_all(targets_, options_, patience::none()));
}

std::optional<multi_lease> multi_lock::acquire_until(clock::time_point deadline, std::stop_token stop) {
    return to_lease(detail::take_all(targets_, options_, patience::until(deadline), stop));
}

std::size_t multi_lock::size() const noexcept {
    return targets_.size();
}

std::vector<std::string> multi_lock::names() const {
    std::vector<std::string> result;
    for (const auto& one : targets_) {
        result.push_back(one.name);
    }
    return result;
}

std::stop_token multi_lock::lost() const noexcept {
    const auto taken = holds_.peek();
    return taken ? taken->lost() : std::stop_token{};
}

}  // namespace holdfast
