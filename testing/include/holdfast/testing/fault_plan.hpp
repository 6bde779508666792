#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <holdfast/error.hpp>

namespace holdfast::testing {

enum class call_kind : std::uint8_t {
    acquire,
    renew,
    release,
    revoke,
    inspect,
    list,
    latch,
    examine,
};

/// The script of the faults between a client and its store: see `fault_engine`.
///
/// A call first meets the state of the connection (`cut_off`, `go_silent`), then the first fault that
/// was scripted for its kind and is not used up, and otherwise goes through. Faults scripted later for
/// the same kind wait behind the earlier ones.
///
/// Thread safety: all functions may be called from any thread at any time. `let_go` and `heal` run
/// completions and hints before they return.
class fault_plan {
public:
    fault_plan();
    fault_plan(const fault_plan&) = delete;
    fault_plan& operator=(const fault_plan&) = delete;
    ~fault_plan();

    /// The store never sees these calls; they end at once with `error`.
    void fail_next(call_kind kind, std::size_t count, failure error);
    /// The store performs these calls, but their answers are lost: `errc::outcome_unknown`, at once.
    void lose_replies_of_next(call_kind kind, std::size_t count = 1);
    /// The store performs these calls at once; their answers are kept until `let_go`.
    void delay_replies_of_next(call_kind kind, std::size_t count = 1);
    /// These calls are kept from the store until `let_go`, however late that is.
    void delay_next(call_kind kind, std::size_t count = 1);

    /// Delivers all that is kept, in its order. A call whose deadline has passed meanwhile has ended
    /// with `errc::outcome_unknown`, as over a real network. If its request was kept from the store,
    /// the store gets the request now all the same.
    void let_go();
    /// How many calls or answers are kept.
    [[nodiscard]] std::size_t held() const;
    /// False when fewer than `count` are kept by then.
    [[nodiscard]] bool wait_until_held(std::size_t count, std::chrono::milliseconds limit) const;

    /// Hints are lost, and nobody is told so, until `deliver_hints`.
    void drop_hints();
    void deliver_hints();

    /// Nothing gets through until `heal`: calls end at once with `errc::store_unavailable`, watches are
    /// not active and give no hints.
    void cut_off();
    /// Nothing gets through until `heal`: calls stay without an answer until their deadline and end
    /// with `errc::outcome_unknown`; the store never sees them. Watches are not active and give no
    /// hints.
    void go_silent();
    /// Ends `cut_off` and `go_silent`. Everybody who watches gets a hint, as after any interruption.
    void heal();

    /// From now on a call that may block keeps its thread inside the engine until it has ended, as with
    /// engines that use their callers' threads.
    void keep_callers();

    /// How many calls of this kind were made, whatever became of them.
    [[nodiscard]] std::size_t calls(call_kind kind) const;
    /// False when fewer than `count` were made by then.
    [[nodiscard]] bool wait_for_calls(call_kind kind, std::size_t count,
                                      std::chrono::milliseconds limit) const;

    /// For `fault_engine`.
    struct state;
    [[nodiscard]] const std::shared_ptr<state>& shared() const noexcept { return state_; }

private:
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::testing
