#include "claim.hpp"

#include <algorithm>
#include <holdfast/error.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <system_error>

namespace holdfast::cli {

namespace {

/// Calls the function of a lock that waits as long as the request allows.
class waiting {
public:
    waiting(const run_arguments& request, clock::time_point deadline, const std::stop_token& stop)
        : request_{request}, deadline_{deadline}, stop_{stop} {}

    template <class Lock>
    [[nodiscard]] std::optional<lease> take(Lock& lock) const {
        if (!request_.wait) {
            return lock.acquire_unless_stopped(stop_);
        }
        const auto left = time_left();
        return left == clock::duration::zero() ? lock.try_acquire() : lock.try_acquire_for(left, stop_);
    }
    [[nodiscard]] std::optional<lease> take_share(shared_mutex& lock) const {
        if (!request_.wait) {
            return lock.acquire_shared_unless_stopped(stop_);
        }
        const auto left = time_left();
        return left == clock::duration::zero() ? lock.try_acquire_shared()
                                               : lock.try_acquire_shared_for(left, stop_);
    }

private:
    [[nodiscard]] clock::duration time_left() const {
        return std::max<clock::duration>(deadline_ - clock::now(), clock::duration::zero());
    }

    const run_arguments& request_;
    clock::time_point deadline_;
    const std::stop_token& stop_;
};

[[nodiscard]] std::optional<lease> take_exclusive(client& store, const run_arguments& request,
                                                  const waiting& wait) {
    try {
        mutex lock{store, request.name, terms_of(request)};
        return wait.take(lock);
    } catch (const std::system_error& error) {
        if (error.code() != errc::wrong_kind) {
            throw;
        }
    }
    // Readers have it, or a writer among them. If it is no lock at all, this answer says so: what has
    // the mode of a read/write lock is not looked at more closely by a request for a plain one.
    shared_mutex lock{store, request.name, terms_of(request), other_kinds::wait};
    return wait.take(lock);
}

}  // namespace

lease_options terms_of(const run_arguments& request) {
    lease_options options;
    options.ttl = request.ttl;
    options.max_hold = request.max_hold;
    options.release_timeout = release_patience;
    return options;
}

std::optional<lease> claim(client& store, const run_arguments& request, clock::time_point deadline,
                           const std::stop_token& stop) {
    const waiting wait{request, deadline, stop};
    if (request.permits) {
        semaphore lock{store, request.name, *request.permits, terms_of(request)};
        return wait.take(lock);
    }
    if (request.shared) {
        shared_mutex lock{store, request.name, terms_of(request), other_kinds::wait};
        return wait.take_share(lock);
    }
    return take_exclusive(store, request, wait);
}

}  // namespace holdfast::cli
