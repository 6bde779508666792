#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <common/call_order.hpp>
#include <common/worker_pool.hpp>
#include <holdfast/engine.hpp>

namespace holdfast::engines {

template <class Reply>
void set_error(Reply& reply, const failure& error) {
    reply.error = error;
}

inline void set_error(std::vector<renew_reply>& replies, const failure& error) {
    for (renew_reply& reply : replies) {
        reply.error = error;
    }
}

[[nodiscard]] inline failure too_late() {
    return {errc::store_unavailable, "the deadline passed before the store was asked"};
}

/// The requests of one client to a store that can only be asked by blocking: on the caller's thread, or
/// on one of a pool's if the caller must not block. Requests on one name run one by one, in the order
/// in which they were made.
///
/// Thread safety: all functions may be called from any thread.
class ordered_calls {
public:
    explicit ordered_calls(std::size_t threads) : workers_{threads} {}

    /// Runs `work(deadline)` in its turn, and answers with what it returns. `blank` is an answer with
    /// room for the error of a call that comes too late.
    template <class Reply, class Lines, class Work>
    void dispatch(Lines lines, call how, Reply blank, completion<Reply> done, Work work) {
        if (how.from == caller::may_block) {
            const call_order::ticket place = order_.enter(std::move(lines));
            done(perform(place, how.deadline, std::move(blank), work));
            return;
        }
        std::unique_lock lock{submission_mutex_};
        const call_order::ticket place = order_.enter(std::move(lines));
        worker_pool::job job = [=, this](worker_pool::verdict verdict) mutable {
            const bool runs = verdict == worker_pool::verdict::run;
            done(runs ? perform(place, how.deadline, std::move(blank), work)
                      : refuse(place, verdict, std::move(blank)));
        };
        const worker_pool::verdict taken = workers_.submit(how.deadline, std::move(job));
        lock.unlock();
        if (taken == worker_pool::verdict::no_thread) {
            // A moment on the caller's thread rather than a lease that is not renewed.
            const auto until = std::min<clock::time_point>(how.deadline, clock::now() + moment);
            done(perform(place, until, std::move(blank), work));
        } else if (taken != worker_pool::verdict::run) {
            job(taken);  // NOLINT(bugprone-use-after-move): a job that was not taken is still ours
        }
    }

    /// For work of the engine's own. False: there is no thread for it now.
    [[nodiscard]] bool submit(clock::time_point deadline, worker_pool::job work) {
        return workers_.submit(deadline, std::move(work)) == worker_pool::verdict::run;
    }

    /// Refuses what is waiting, and returns when what is running in the pool has ended.
    void stop() { workers_.stop(); }

private:
    /// So long may a caller be blocked that must not be, where there is no thread to do its work.
    static constexpr std::chrono::milliseconds moment{50};

    template <class Reply, class Work>
    [[nodiscard]] Reply perform(const call_order::ticket& place, clock::time_point deadline,
                                Reply blank, Work& work) {
        const call_order::turn turn{order_, place};
        if (order_.wait(place, deadline) && clock::now() < deadline) {
            return work(deadline);
        }
        set_error(blank, too_late());
        return blank;
    }

    template <class Reply>
    [[nodiscard]] Reply refuse(const call_order::ticket& place, worker_pool::verdict verdict,
                               Reply blank) {
        order_.leave(place);
        set_error(blank,
                  verdict == worker_pool::verdict::shut_down
                      ? failure{errc::shut_down, "the client was shut down before the store was asked"}
                      : too_late());
        return blank;
    }

    call_order order_;
    /// Held while a request gets its place in the order and in the pool's queue.
    std::mutex submission_mutex_;
    worker_pool workers_;
};

}  // namespace holdfast::engines
