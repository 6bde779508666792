#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <holdfast/lease.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include "arguments.hpp"
#include "child.hpp"
#include "descriptor.hpp"
#include "ending.hpp"
#include "messages.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

struct supervision_terms {
    loss_policy on_lost{};
    ending_terms ending;
    /// When `--max-hold` is reached.
    clock::time_point hold_end{clock::time_point::max()};
    std::chrono::milliseconds max_hold{};
    /// Why the lease was not renewed, as part of a sentence.
    std::function<std::string()> renewal_trouble;
};

struct supervision_result {
    /// As from waitpid.
    int wait_status{};
    bool lost{};
    std::error_code loss_reason;
    /// The same in words; may be empty.
    std::string loss_detail;
    /// The end of the lease, as known when the command ended.
    clock::time_point lease_end;
    /// When we saw the end of the command.
    clock::time_point child_ended_at;
    /// The lease was over when we looked, and the command had ended by itself. Nobody knows which came
    /// first.
    bool ended_by_itself{};
    /// How many processes of the command are still there. After a loss: those that could not be killed.
    /// Otherwise: those that the command left in the background.
    std::size_t left_behind{};
    bool had_terminal{};
};

/// What is said of such a command.
inline constexpr std::string_view command_had_ended = "the command had ended by itself";

/// Watches over a command that runs under a lease.
///
///     running ──(the command ends)──────────────────────────────────────▶ over
///        └─(lost, or TERM is due)─▶ ending ──(grace over)─▶ killing ─(all reaped)─▶ over
///
/// Every time this process gets to run, it looks at the deadline first. If this process was stopped
/// past the end of the lease, it kills the command before it does anything else.
///
/// Thread safety: one thread only, the one that started the command.
class supervisor {
public:
    /// Construct it before the command is started: it may throw, and must do so while nothing runs yet.
    supervisor(lease& held, supervision_terms terms, const signal_source& signals, const terminal& tty,
               const messages& out);
    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;

    /// Returns when the command has ended and been reaped.
    [[nodiscard]] supervision_result run(spawned_child child);

private:
    enum class stage : std::uint8_t { running, ending, killing };

    void decide();
    void decide_while_running(clock::time_point now);
    void begin_ending(clock::time_point now);
    void begin_killing(clock::time_point now);
    [[nodiscard]] bool ended_before_kill() const;
    void note_loss();
    [[nodiscard]] std::string describe_ending(std::string_view verb, clock::time_point now) const;
    void signal_everyone(int signal) const;

    void wait();
    void handle_signals();
    void forward(int signal);
    void reap();
    void on_child_stopped(int signal);
    void on_child_continued();
    void resume_child();
    [[nodiscard]] bool over() const;
    [[nodiscard]] supervision_result conclude();

    lease& held_;
    pid_t child_{};
    /// The number of the command's group in /proc.
    pid_t group_in_proc_{};
    death_watch watch_;
    supervision_terms terms_;
    const signal_source& signals_;
    const terminal& tty_;
    const messages& out_;

    descriptor loss_event_;
    descriptor timer_;
    std::stop_token loss_;
    stage stage_{stage::running};
    clock::time_point valid_until_;
    /// When `decide` has to be called next even if nothing happens.
    clock::time_point wake_at_{clock::time_point::max()};
    clock::time_point kill_at_;
    clock::time_point give_up_at_;
    bool child_reaped_{};
    bool child_stopped_{};
    bool none_left_{};
    bool lent_{};
    bool asked_for_terminal_{};
    bool loss_told_{};
    supervision_result result_;
};

}  // namespace holdfast::cli
