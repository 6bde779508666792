#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <core/lock_table.hpp>
#include <holdfast/client.hpp>
#include <runtime/attendance.hpp>
#include <runtime/callers.hpp>
#include <runtime/hold.hpp>
#include <runtime/notifier.hpp>
#include <runtime/performer.hpp>
#include <runtime/queries.hpp>
#include <runtime/recursion.hpp>
#include <runtime/store_access.hpp>
#include <runtime/timer.hpp>

namespace holdfast::detail {

class release_tally;

/// One client: its store, its calls and its holds.
///
///     store_access   the engine, and the threads inside it
///     performer      lets the core take steps, and does at the store what it says
///     callers        the calls that wait, and the holds, which the performer tells of it
///     attendance     lends waiting threads to the engine
///     queries        what needs nothing from the core: operators' questions, latches
///
/// Threads: callers' own, a timer, a notifier, and whatever the engine has. One mutex guards the core;
/// it is never held while the engine or foreign code runs. A caller that waits sends its own requests
/// to the store on its thread, so an uncontended lock costs no thread switch.
///
/// Out of memory: what a call allocates before its first step may throw `std::bad_alloc`. A step itself
/// ends the process then, because a lock that is half taken or half given back is worse. An engine
/// that throws is taken for a store that did not answer.
class session : public std::enable_shared_from_this<session> {
public:
    session(std::unique_ptr<engines::engine> engine, const engines::client_identity& identity,
            const client_options& options);
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session();
    /// Second half of construction: callbacks need a session that is shared.
    void start();

    /// A lease, or why not (`errc::busy`, `errc::cancelled` and worse).
    struct acquired {
        std::shared_ptr<hold> taken;
        failure error;
    };
    [[nodiscard]] acquired acquire(const core::claim& request, const std::stop_token& stop);
    release_outcome release(hold& held, std::chrono::milliseconds linger) noexcept;
    /// Nobody can release it any more: it is lost, and given back in the background.
    void abandon(const hold& held) noexcept;
    /// `errc::busy` when it cannot be had now.
    [[nodiscard]] failure convert(hold& held, claim_mode to);

    /// Whether the store can be asked for plain locks of these names in one request.
    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names);
    struct acquired_together {
        /// As many as there are claims; null: not granted. All were, unless there is an error.
        std::vector<std::shared_ptr<hold>> taken;
        /// `errc::busy`: which claim somebody is in the way of.
        std::size_t busy{};
        failure error;
    };
    /// Asks once, for all claims in one request. They must not wait; the request ends by `deadline`.
    [[nodiscard]] acquired_together acquire_together(const std::vector<core::claim>& all,
                                                     clock::time_point deadline,
                                                     const std::stop_token& stop);
    /// Starts the release of `which[from]` … `which[to − 1]`, which are this session's. The answers
    /// arrive in the tally, under the same indices.
    void release_together(const std::vector<std::shared_ptr<hold>>& held, std::size_t from,
                          std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept;

    [[nodiscard]] std::vector<unreleased> shut_down(std::chrono::milliseconds timeout);

    [[nodiscard]] detail::queries& queries() noexcept { return queries_; }
    [[nodiscard]] recursion_table& recursion() const noexcept { return *recursion_; }
    [[nodiscard]] const engines::guarantees& promises() const noexcept { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    [[nodiscard]] const std::string& store_identity() const noexcept { return store_identity_; }
    [[nodiscard]] const engines::client_identity& identity() const noexcept { return identity_; }
    [[nodiscard]] std::chrono::milliseconds outage_patience() const noexcept {
        return outage_patience_;
    }
    /// Not the process that made this session.
    [[nodiscard]] bool forked() const noexcept;
    /// How many events the observer was not told of.
    [[nodiscard]] std::uint64_t dropped_events() const noexcept {
        return dropped_events_.load(std::memory_order_relaxed);
    }
    /// How many requests were sent to the store, for tests and benchmarks.
    [[nodiscard]] std::uint64_t requests() const noexcept { return store_.requests(); }

private:
    void perform_own(call& caller, store_task& task) noexcept;
    void wait(call& caller);
    /// False when it has been done before.
    [[nodiscard]] bool begin_closing() noexcept;
    /// Returns by `deadline`. A thread that is still inside the engine then delays its end, not ours.
    void close(clock::time_point deadline);
    void close_engine() noexcept;

    engines::client_identity identity_;
    engines::guarantees promises_;
    std::string address_;
    std::string store_identity_;
    std::chrono::milliseconds request_timeout_;
    std::chrono::milliseconds outage_patience_;
    std::shared_ptr<observer> events_;
    std::uint32_t generation_;

    store_access store_;
    callers callers_{*this};
    performer<callers> core_;
    attendance attendance_{store_};
    detail::queries queries_;
    /// Shared with nobody; threads that end look whether it is still there.
    std::shared_ptr<recursion_table> recursion_{std::make_shared<recursion_table>()};
    std::atomic<std::uint64_t> dropped_events_{0};
    std::optional<notifier> notifier_;
    std::optional<timer_thread> timer_;
};

}  // namespace holdfast::detail
