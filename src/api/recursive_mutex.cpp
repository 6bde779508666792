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

/// True when this thread has it already and is one level deeper now.
bool recursive_mutex::enter_again() {
    using entering = detail::recursion_table::entering;
    const auto result = session_->recursion().enter_again(name_, this);
    if (result == entering::lost) {
        const auto over = session_->recursion().hold_of(name_);
        failure{over ? over->loss() : errc::lost, "this thread's hold is over; unlock it first"}.raise(
            detail::describe(*session_, name_));
    }
    return result == entering::again;
}

bool recursive_mutex::entered(std::shared_ptr<detail::hold> taken) {
    if (!taken) {
        return false;
    }
    session_->recursion().enter(this, std::move(taken));
    return true;
}

void recursive_mutex::lock() {
    if (!enter_again()) {
        entered(detail::take(session_, name_, options_, {}, patience::unlimited()));
    }
}

bool recursive_mutex::lock_unless_stopped(std::stop_token stop) {
    return enter_again() ||
           entered(detail::take(session_, name_, options_, {}, patience::unlimited(), stop));
}

bool recursive_mutex::try_lock() {
    return enter_again() || entered(detail::take(session_, name_, options_, {}, patience::none()));
}

bool recursive_mutex::lock_until(clock::time_point deadline) {
    return enter_again() ||
           entered(detail::take(session_, name_, options_, {}, patience::until(deadline)));
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
