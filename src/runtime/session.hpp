#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include <core/lock_table.hpp>
#include <holdfast/client.hpp>
#include <runtime/hold.hpp>
#include <runtime/notifier.hpp>
#include <runtime/parking.hpp>
#include <runtime/recursion.hpp>
#include <runtime/spinning.hpp>
#include <runtime/timer.hpp>

namespace holdfast::detail {

class release_tally;

/// Drives the core for one client: gives it the time, the store's answers and the callers' wishes, and
/// does what it says.
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
    [[nodiscard]] acquired acquire(const core::claim& what, const std::stop_token& stop);
    release_outcome release(hold& which, std::chrono::milliseconds linger) noexcept;
    /// Nobody can release it any more: it is lost, and given back in the background.
    void abandon(const hold& which) noexcept;
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
    void release_together(const std::vector<std::shared_ptr<hold>>& which, std::size_t from,
                          std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept;
    /// `errc::busy` when it cannot be had now.
    [[nodiscard]] failure convert(hold& which, claim_mode to);

    [[nodiscard]] engines::examine_reply examine();
    [[nodiscard]] engines::inspect_reply inspect(const std::string& name,
                                                 std::optional<std::chrono::milliseconds> timeout = {});
    [[nodiscard]] engines::list_reply list(const engines::list_request& request,
                                           std::optional<std::chrono::milliseconds> timeout);
    [[nodiscard]] engines::revoke_reply revoke(const engines::revoke_request& request);
    [[nodiscard]] engines::latch_reply latch(engines::latch_request request);
    /// No error when it opened, or is not there; `errc::busy` at the deadline; `errc::lost` when it
    /// was seen counting, here or by the caller, and is gone without having opened.
    [[nodiscard]] failure wait_for_latch(const std::string& name, clock::time_point deadline,
                                         const std::stop_token& stop, bool seen_counting);

    [[nodiscard]] std::vector<unreleased> shut_down(std::chrono::milliseconds timeout);

    [[nodiscard]] const engines::guarantees& promises() const noexcept { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    [[nodiscard]] const std::string& store_identity() const noexcept { return store_identity_; }
    [[nodiscard]] const engines::client_identity& identity() const noexcept { return identity_; }
    [[nodiscard]] recursion_table& recursion() const noexcept { return *recursion_; }
    [[nodiscard]] std::chrono::milliseconds outage_patience() const noexcept {
        return options_.outage_patience;
    }
    /// Not the process that made this session.
    [[nodiscard]] bool forked() const noexcept;
    /// How many events the observer was not told of.
    [[nodiscard]] std::uint64_t dropped_events() const noexcept {
        return dropped_events_.load(std::memory_order_relaxed);
    }
    /// How many requests were sent to the store, for tests and benchmarks.
    [[nodiscard]] std::uint64_t requests() const noexcept {
        return requests_.load(std::memory_order_relaxed);
    }

private:
    struct call;
    class waiting_caller;

    /// Keeps the engine from being destroyed while a thread is inside it. False when it is gone.
    class engine_use {
    public:
        explicit engine_use(session& whose) noexcept : whose_{whose} {
            whose_.engine_users_.fetch_add(1);
            usable_ = !whose_.closed_.load();
        }
        engine_use(const engine_use&) = delete;
        engine_use& operator=(const engine_use&) = delete;
        ~engine_use() {
            if (whose_.engine_users_.fetch_sub(1) == 1 && whose_.closed_.load()) {
                whose_.engine_users_.notify_all();
            }
        }
        explicit operator bool() const noexcept { return usable_; }

    private:
        session& whose_;
        bool usable_{};
    };

    /// What is to be done at the store.
    using store_task =
        std::variant<core::send_acquire, core::send_renew, core::send_release, core::update_watch>;

    /// A hold that is not released yet. It says so before it is destroyed, so the mutex is enough to
    /// reach it. Nobody owns it here: the last owner to leave runs the holder's callbacks.
    struct known_hold {
        hold* itself{};
        std::weak_ptr<hold> owned;
    };

    struct tally_place {
        std::shared_ptr<release_tally> in;
        std::size_t index{};
    };

    /// What is left to do once the mutex is free again.
    struct follow_up {
        /// The call whose own step this is: awake, and not among `calls_` yet.
        std::shared_ptr<call> self;
        /// For nobody's thread in particular.
        std::vector<store_task> tasks{};
        /// Usually none or one is to be woken.
        std::shared_ptr<call> first_to_wake{};
        std::vector<std::shared_ptr<call>> others_to_wake{};

        [[nodiscard]] bool is_self(core::waiter_id who) const noexcept;
        void wake(const std::shared_ptr<call>& who);
        void wake_all() const;
    };
    struct joint_call;
    void send_together(const std::shared_ptr<joint_call>& what);
    void answer_together(joint_call& what, const engines::acquire_all_reply& reply);
    template <class Step>
    void drive(const Step& step, std::shared_ptr<call> self = nullptr) noexcept;
    void collect(follow_up& rest);
    void apply(core::action& what, follow_up& rest);
    [[nodiscard]] std::shared_ptr<call> find_call(core::waiter_id who, const follow_up& rest) const;
    using call_map = std::unordered_map<core::waiter_id, std::shared_ptr<call>>;
    [[nodiscard]] static std::shared_ptr<call> take_call(call_map& from, core::waiter_id who,
                                                         const follow_up& rest);
    void complete(core::finish_acquire& what, follow_up& rest);
    static void finish(const std::shared_ptr<call>& mine, follow_up& rest);
    void perform(store_task& task, engines::caller from) noexcept;
    void send(store_task& task, engines::caller from);
    void refuse(const store_task& task, const failure& why) noexcept;
    void wait(const std::shared_ptr<call>& mine);
    void perform_own(call& mine, store_task& task) noexcept;
    void attend(call& mine);
    void update_watch(const core::update_watch& what);
    void tick();
    struct query_limits;
    template <class Reply, class Ability, class Start>
    [[nodiscard]] Reply ask(Ability* ability, const failure& otherwise, const query_limits& limits,
                            const Start& start);
    [[nodiscard]] engines::latch_reply latch(engines::latch_request request,
                                             const query_limits& limits);
    /// False when it has been done before.
    [[nodiscard]] bool begin_closing() noexcept;
    /// Returns by `deadline`. A thread that is still inside the engine then delays its end, not ours.
    void close(clock::time_point deadline);
    void close_engine() noexcept;

    std::unique_ptr<engines::engine> engine_;
    /// Of the engine; used like it.
    engines::abilities abilities_;
    engines::client_identity identity_;
    engines::guarantees promises_;
    std::string address_;
    std::string store_identity_;
    client_options options_;
    std::uint32_t generation_;

    spinning_mutex guard_;
    core::lock_table table_;
    clock::time_point armed_for_{clock::time_point::max()};
    call_map calls_;
    /// Apart from the others: a lease that one thread converts may be released by another.
    call_map conversions_;
    std::unordered_map<core::hold_id, known_hold> holds_;
    /// Releases that somebody waits for together with others.
    std::unordered_map<core::hold_id, tally_place> tallies_;
    std::int64_t last_latch_request_{};
    /// Shared with nobody; threads that end look whether it is still there.
    std::shared_ptr<recursion_table> recursion_{std::make_shared<recursion_table>()};
    /// Only for `collect`, which would otherwise allocate it each time.
    std::vector<core::action> doing_;

    /// For threads that attend, when none of them uses it. Kept until the end, because a bell may be
    /// rung for somebody who is no longer there.
    std::vector<std::unique_ptr<doorbell>> bells_;
    std::vector<const doorbell*> free_bells_;

    threading::mutex watch_guard_;
    std::map<std::string, std::unique_ptr<engines::subscription>> watches_;

    /// Stopped when the client shuts down, for those who wait for a latch.
    std::stop_source closing_;
    std::atomic<std::uint64_t> requests_{0};
    std::atomic<std::uint64_t> dropped_events_{0};
    threading::atomic<bool> closed_{false};
    threading::atomic<std::uint32_t> engine_users_{0};
    std::optional<notifier> notifier_;
    std::optional<timer_thread> timer_;
};

}  // namespace holdfast::detail
