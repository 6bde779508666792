#include <holdfast/shared_mutex.hpp>

#include <api/request.hpp>
#include <holdfast/detail/access.hpp>

#include <utility>

namespace holdfast {

using detail::patience;

namespace {

[[nodiscard]] detail::claim_kind writing(lock_kind kind) {
    return {claim_mode::exclusive, 1, 0, kind};
}

[[nodiscard]] detail::claim_kind reading(lock_kind kind) {
    return {claim_mode::shared, 1, 0, kind};
}

bool keep(detail::facade_holds& where, std::shared_ptr<detail::hold> taken) {
    if (!taken) {
        return false;
    }
    where.add(std::move(taken));
    return true;
}

}  // namespace

shared_mutex::shared_mutex(client& owner, std::string name, lease_options options, other_kinds others)
    : session_{detail::access::session_of(owner)},
      name_{std::move(name)},
      options_{options},
      kind_{others == other_kinds::wait ? lock_kind::mixed_mutex : lock_kind::shared_mutex} {
    detail::check(*session_, name_, options_);
    if (!session_->promises().shared) {
        failure{errc::guarantee_not_met, "this store has no shared locks"}.raise(
            detail::describe(*session_, name_));
    }
}

shared_mutex::~shared_mutex() = default;

void shared_mutex::lock() {
    keep(writers_, detail::take(session_, name_, options_, writing(kind_), patience::unlimited()));
}

bool shared_mutex::lock_unless_stopped(std::stop_token stop) {
    return keep(writers_,
                detail::take(session_, name_, options_, writing(kind_), patience::unlimited(), stop));
}

bool shared_mutex::try_lock() {
    return keep(writers_, detail::take(session_, name_, options_, writing(kind_), patience::none()));
}

bool shared_mutex::lock_until(clock::time_point deadline) {
    return keep(writers_,
                detail::take(session_, name_, options_, writing(kind_), patience::until(deadline)));
}

void shared_mutex::unlock() noexcept {
    const auto taken = writers_.take();
    if (!taken) {
        detail::programming_error("shared_mutex::unlock without a lock");
    }
    session_->release(*taken, {});
}

void shared_mutex::lock_shared() {
    keep(readers_, detail::take(session_, name_, options_, reading(kind_), patience::unlimited()));
}

bool shared_mutex::lock_shared_unless_stopped(std::stop_token stop) {
    return keep(readers_,
                detail::take(session_, name_, options_, reading(kind_), patience::unlimited(), stop));
}

bool shared_mutex::try_lock_shared() {
    return keep(readers_, detail::take(session_, name_, options_, reading(kind_), patience::none()));
}

bool shared_mutex::lock_shared_until(clock::time_point deadline) {
    return keep(readers_,
                detail::take(session_, name_, options_, reading(kind_), patience::until(deadline)));
}

void shared_mutex::unlock_shared() noexcept {
    const auto taken = readers_.take();
    if (!taken) {
        detail::programming_error("shared_mutex::unlock_shared without a lock");
    }
    session_->release(*taken, {});
}

lease shared_mutex::acquire() {
    return detail::access::lease_of(
        detail::take(session_, name_, options_, writing(kind_), patience::unlimited()));
}

std::optional<lease> shared_mutex::acquire_unless_stopped(std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, writing(kind_), patience::unlimited(), stop));
}

std::optional<lease> shared_mutex::try_acquire() {
    return detail::to_lease(detail::take(session_, name_, options_, writing(kind_), patience::none()));
}

std::optional<lease> shared_mutex::acquire_until(clock::time_point deadline, std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, writing(kind_), patience::until(deadline), stop));
}

lease shared_mutex::acquire_shared() {
    return detail::access::lease_of(
        detail::take(session_, name_, options_, reading(kind_), patience::unlimited()));
}

std::optional<lease> shared_mutex::acquire_shared_unless_stopped(std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, reading(kind_), patience::unlimited(), stop));
}

std::optional<lease> shared_mutex::try_acquire_shared() {
    return detail::to_lease(detail::take(session_, name_, options_, reading(kind_), patience::none()));
}

std::optional<lease> shared_mutex::acquire_shared_until(clock::time_point deadline,
                                                        std::stop_token stop) {
    return detail::to_lease(
        detail::take(session_, name_, options_, reading(kind_), patience::until(deadline), stop));
}

std::stop_token shared_mutex::lost() const noexcept {
    const auto taken = writers_.peek();
    return taken ? taken->lost() : std::stop_token{};
}

fencing_token shared_mutex::token() const noexcept {
    const auto taken = writers_.peek();
    return taken ? taken->token() : fencing_token{};
}

std::stop_token shared_mutex::lost_shared() const noexcept {
    const auto taken = readers_.peek();
    return taken ? taken->lost() : std::stop_token{};
}

}  // namespace holdfast
