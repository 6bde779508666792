#include <holdfast/recursive_mutex.hpp>

#include <api/request.hpp>
#include <holdfast/detail/access.hpp>
#include <runtime/recursion.hpp>

#include <utility>

namespace holdfast {

using detail::patience;

recursive_mutex::recursive_mutex(client& owner, std::string name, lease_options options)
    : session_{detail::access::session_of(owner)}, name_{std::move(name)}, options_{options} {
    detail::check(*session_, name_, options_);
}

recursive_mutex::~recursive_mutex() {
    session_->recursion().forget_object(this);
}

/// One level deeper, or null if somebody else has the lock.
std::shared_ptr<detail::hold> recursive_mutex::enter(const void* level, const patience& how_long,
                                                     const std::stop_token& stop) {
    auto& table = session_->recursion();
    if (auto taken = table.enter_again(name_, level)) {
        return taken;
    }
    if (const auto lost = table.hold_of(name_)) {
        failure{lost->loss(), "this thread's hold is over; unlock or release it first"}.raise(
            detail::describe(*session_, name_));
    }
    auto taken = detail::take(session_, name_, options_, {}, how_long, stop);
    if (taken) {
        table.enter(level, taken);
    }
    return taken;
}

void recursive_mutex::lock() {
    enter(this, patience::unlimited());
}

bool recursive_mutex::lock_unless_stopped(std::stop_token stop) {
    return enter(this, patience::unlimited(), stop) != nullptr;
}

bool recursive_mutex::try_lock() {
    return enter(this, patience::none()) != nullptr;
}

bool recursive_mutex::lock_until(clock::time_point deadline) {
    return enter(this, patience::until(deadline)) != nullptr;
}

void recursive_mutex::unlock() noexcept {
    const auto left = session_->recursion().leave(name_, this);
    if (!left.was_inside) {
        detail::programming_error("recursive_mutex::unlock by a thread that has not locked it");
    }
    if (left.last) {
        session_->release(*left.last, {});
    }
}

lease recursive_mutex::acquire() {
    return detail::access::lease_of(enter(detail::recursion_table::of_a_lease, patience::unlimited()));
}

std::optional<lease> recursive_mutex::acquire_unless_stopped(std::stop_token stop) {
    return detail::to_lease(enter(detail::recursion_table::of_a_lease, patience::unlimited(), stop));
}

std::optional<lease> recursive_mutex::try_acquire() {
    return detail::to_lease(enter(detail::recursion_table::of_a_lease, patience::none()));
}

std::optional<lease> recursive_mutex::acquire_until(clock::time_point deadline, std::stop_token stop) {
    return detail::to_lease(
        enter(detail::recursion_table::of_a_lease, patience::until(deadline), stop));
}

std::uint32_t recursive_mutex::depth() const noexcept {
    return session_->recursion().depth(name_);
}

std::stop_token recursive_mutex::lost() const noexcept {
    const auto taken = session_->recursion().hold_of(name_);
    return taken ? taken->lost() : std::stop_token{};
}

fencing_token recursive_mutex::token() const noexcept {
    const auto taken = session_->recursion().hold_of(name_);
    return taken ? taken->token() : fencing_token{};
}

}  // namespace holdfast
