#include "claim.hpp"

#include <algorithm>
#include <exception>
#include <holdfast/error.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <system_error>

namespace holdfast::cli {

namespace {

/// How long to wait, in the words of the locks' functions.
class patience {
public:
    patience(const run_arguments& wanted, clock::time_point deadline, const std::stop_token& stop)
        : wanted_{wanted}, deadline_{deadline}, stop_{stop} {}

    template <class Lock>
    [[nodiscard]] std::optional<lease> take(Lock& lock) const {
        if (!wanted_.wait) {
            return lock.acquire_unless_stopped(stop_);
        }
        const auto left = time_left();
        return left == clock::duration::zero() ? lock.try_acquire() : lock.try_acquire_for(left, stop_);
    }
    [[nodiscard]] std::optional<lease> take_share(shared_mutex& lock) const {
        if (!wanted_.wait) {
            return lock.acquire_shared_unless_stopped(stop_);
        }
        const auto left = time_left();
        return left == clock::duration::zero() ? lock.try_acquire_shared()
                                               : lock.try_acquire_shared_for(left, stop_);
    }
    [[nodiscard]] std::optional<lease> take_permit(semaphore& lock) const {
        if (!wanted_.wait) {
            return lock.acquire_unless_stopped(stop_);
        }
        const auto left = time_left();
        return left == clock::duration::zero() ? lock.try_acquire() : lock.try_acquire_for(left, stop_);
    }

private:
    [[nodiscard]] clock::duration time_left() const {
        return std::max<clock::duration>(deadline_ - clock::now(), clock::duration::zero());
    }

    const run_arguments& wanted_;
    clock::time_point deadline_;
    const std::stop_token& stop_;
};

[[nodiscard]] std::optional<lease> take_exclusive(client& store, const run_arguments& wanted,
                                                  const patience& how_long) {
    std::exception_ptr refusal;
    try {
        mutex lock{store, wanted.name, terms_of(wanted)};
        return how_long.take(lock);
    } catch (const std::system_error& error) {
        if (error.code() != errc::wrong_kind) {
            throw;
        }
        refusal = std::current_exception();
    }
    try {
        // Readers have it, or a writer among them.
        shared_mutex lock{store, wanted.name, terms_of(wanted), other_kinds::wait};
        return how_long.take(lock);
    } catch (const std::system_error& error) {
        if (error.code() != errc::wrong_kind) {
            throw;
        }
    }
    std::rethrow_exception(refusal);  // no lock at all: the first answer says what it is
}

}  // namespace

lease_options terms_of(const run_arguments& wanted) {
    lease_options options;
    options.ttl = wanted.ttl;
    options.max_hold = wanted.max_hold;
    options.release_timeout = release_patience;
    return options;
}

std::optional<lease> claim(client& store, const run_arguments& wanted, clock::time_point deadline,
                           const std::stop_token& stop) {
    const patience how_long{wanted, deadline, stop};
    if (wanted.permits) {
        semaphore lock{store, wanted.name, *wanted.permits, terms_of(wanted)};
        return how_long.take_permit(lock);
    }
    if (wanted.shared) {
        shared_mutex lock{store, wanted.name, terms_of(wanted), other_kinds::wait};
        return how_long.take_share(lock);
    }
    return take_exclusive(store, wanted, how_long);
}

}  // namespace holdfast::cli
