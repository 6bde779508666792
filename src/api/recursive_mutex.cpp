#include <holdfast/recursive_mutex.hpp>

#include <api/request.hpp>
#include <holdfast/client.hpp>
#include <holdfast/detail/facade.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

using detail::patience;
using detail::this_thread_number;

recursive_mutex::recursive_mutex(client& owner, std::string name, lease_options options)
    : session_{owner.shared()}, name_{std::move(name)}, options_{options} {
    detail::check(*session_, name_, options_);
}

recursive_mutex::~recursive_mutex() = default;

/// True when this thread has it already and may go one deeper.
bool recursive_mutex::enter_again() {
    const std::lock_guard lock{guard_};
    for (auto& one : entries_) {
        if (one.thread == this_thread_number()) {
            if (one.taken->loss() != errc{}) {
                failure{one.taken->loss(), "this thread's hold is over; unlock it first"}.raise(
                    detail::describe(*session_, name_));
            }
            ++one.depth;
            return true;
        }
    }
    return false;
}

void recursive_mutex::entered(std::shared_ptr<detail::hold> taken) {
    const std::lock_guard lock{guard_};
    entries_.push_back({this_thread_number(), 1, std::move(taken)});
}

void recursive_mutex::lock() {
    if (!enter_again()) {
        entered(detail::take(session_, name_, options_, {}, patience::unlimited()));
    }
}

bool recursive_mutex::lock(std::stop_token stop) {
    if (enter_again()) {
        return true;
    }
    auto taken = detail::take(session_, name_, options_, {}, patience::unlimited(), stop);
    return taken && (entered(std::move(taken)), true);
}

bool recursive_mutex::try_lock() {
    if (enter_again()) {
        return true;
    }
    auto taken = detail::take(session_, name_, options_, {}, patience::none());
    return taken && (entered(std::move(taken)), true);
}

bool recursive_mutex::lock_until(clock::time_point deadline) {
    if (enter_again()) {
        return true;
    }
    auto taken = detail::take(session_, name_, options_, {}, patience::until(deadline));
    return taken && (entered(std::move(taken)), true);
}

void recursive_mutex::unlock() noexcept {
    std::shared_ptr<detail::hold> last;
    {
        const std::lock_guard lock{guard_};
        const auto me = this_thread_number();
        const auto mine = std::find_if(entries_.begin(), entries_.end(),
                                       [me](const entry& one) { return one.thread == me; });
        if (mine == entries_.end()) {
            detail::programming_error("recursive_mutex::unlock by a thread that has not locked it");
        }
        if (--mine->depth > 0) {
            return;
        }
        last = std::move(mine->taken);
        entries_.erase(mine);
    }
    session_->release(*last, {});
}

std::shared_ptr<detail::hold> recursive_mutex::mine() const noexcept {
    const std::lock_guard lock{guard_};
    for (const auto& one : entries_) {
        if (one.thread == this_thread_number()) {
            return one.taken;
        }
    }
    return nullptr;
}

std::uint32_t recursive_mutex::depth() const noexcept {
    const std::lock_guard lock{guard_};
    for (const auto& one : entries_) {
        if (one.thread == this_thread_number()) {
            return one.depth;
        }
    }
    return 0;
}

std::stop_token recursive_mutex::lost() const noexcept {
    const auto taken = mine();
    return taken ? taken->lost() : std::stop_token{};
}

fencing_token recursive_mutex::token() const noexcept {
    const auto taken = mine();
    return taken ? taken->token() : fencing_token{};
}

}  // namespace holdfast
