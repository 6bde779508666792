#include <holdfast/mutex.hpp>

#include <holdfast/fair_mutex.hpp>

#include <api/request.hpp>
#include <holdfast/detail/access.hpp>

#include <utility>

namespace holdfast {

using detail::patience;

namespace {

[[nodiscard]] detail::claim_kind claim_of(lock_kind kind) {
    return {claim_mode::exclusive, 1, 0, kind};
}

}  // namespace

mutex::mutex(client& owner, std::string name, lease_options options)
    : mutex{owner, std::move(name), options, lock_kind::mutex} {}

mutex::mutex(client& owner, std::string name, lease_options options, lock_kind kind)
    : session_{detail::access::session_of(owner)},
      name_{std::move(name)},
      options_{options},
      kind_{kind} {
    detail::check(*session_, name_, options_);
}

mutex::~mutex() = default;

void mutex::lock() {
    holds_.add(detail::take(session_, name_, options_, claim_of(kind_), patience::unlimited()));
}

bool mutex::lock_unless_stopped(std::stop_token stop) {
    auto taken = detail::take(session_, name_, options_, claim_of(kind_), patience::unlimited(), stop);
    return taken && (holds_.add(std::move(taken)), true);
}

bool mutex::try_lock() {
    auto taken = detail::take(session_, name_, options_, claim_of(kind_), patience::none());
    return taken && (holds_.add(std::move(taken)), true);
}

bool mutex::lock_until(clock::time_point deadline) {
    auto taken = detail::take(session_, name_, options_, claim_of(kind_), patience::until(deadline));
    return taken && (holds_.add(std::move(taken)), true);
}

void mutex::unlock() noexcept {
    const auto taken = holds_.take();
    if (!taken) {
        detail::programming_error(kind_ == lock_kind::fair_mutex ? "fair_mutex::unlock without a lock"
                                                                 : "mutex::unlock without a lock");
    }
    session_->release(*taken, {});
}

lease mutex::acquire() {
    return detail::access::lease_of(
        detail::take(session_, name_, options_, claim_of(kind_), patience::unlimited()));
}

std::optional<lease> mutex::acquire_unless_stopped(std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, claim_of(kind_), patience::unlimited(), stop));
}

std::optional<lease> mutex::try_acquire() {
    return detail::to_lease(detail::take(session_, name_, options_, claim_of(kind_), patience::none()));
}

std::optional<lease> mutex::acquire_until(clock::time_point deadline, std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, claim_of(kind_), patience::until(deadline), stop));
}

std::optional<lease> mutex::ask_once(std::optional<clock::time_point> deadline, std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, claim_of(kind_), {false, deadline}, stop));
}

std::stop_token mutex::lost() const noexcept {
    const auto taken = holds_.peek();
    return taken ? taken->lost() : std::stop_token{};
}

fencing_token mutex::token() const noexcept {
    const auto taken = holds_.peek();
    return taken ? taken->token() : fencing_token{};
}

fair_mutex::fair_mutex(client& owner, std::string name, lease_options options)
    : mutex{owner, std::move(name), options, lock_kind::fair_mutex} {
    const auto& store = *detail::access::session_of(owner);
    if (!store.promises().fair) {
        failure{errc::guarantee_not_met,
                "this store keeps no line of waiters; only Redis does, and no quorum: use a mutex here"}
            .raise(detail::describe(store, this->name()));
    }
}

}  // namespace holdfast
