#include "supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <holdfast/error.hpp>
#include <utility>

#include "duration.hpp"
#include "processes.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

constexpr auto never = clock::time_point::max();
/// How often we look again for processes to kill: a process may fork while we look.
constexpr milliseconds kill_again_after{10};
/// How long to wait for processes that SIGKILL does not end (another user's process, a stuck device).
constexpr milliseconds patience_with_killed{5'000};

void drain(int number) noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto length = ::read(number, &count, sizeof count);
}

/// This timer also runs while the machine sleeps, like the lease. The timeout of `poll` does not.
void arm(int timer, clock::time_point wake_at) noexcept {
    itimerspec setting{};
    if (wake_at != never) {
        const auto wait =
            std::max<clock::duration>(wake_at - clock::now(), std::chrono::microseconds{1});
        const auto whole = std::chrono::floor<std::chrono::seconds>(wait);
        setting.it_value.tv_sec = whole.count();
        setting.it_value.tv_nsec = (wait - whole).count();
    }
    timerfd_settime(timer, 0, &setting, nullptr);
}

[[nodiscard]] milliseconds in_milliseconds(clock::duration value) {
    return std::chrono::ceil<milliseconds>(value);
}

}  // namespace

supervisor::supervisor(lease& held, supervision_terms terms, const signal_source& signals,
                       const terminal& tty, const messages& out)
    : held_{held},
      terms_{std::move(terms)},
      signals_{signals},
      tty_{tty},
      out_{out},
      loss_event_{checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")},
      timer_{checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")},
      loss_{held.lost()},
      valid_until_{std::min(held.valid_until(), terms_.hold_end)} {
    if (terms_.on_lost == loss_policy::kill) {
        terms_.ending.grace = milliseconds{0};
    }
}

supervision_result supervisor::run(spawned_child child) {
    child_ = child.id;
    watch_ = std::move(child.watch);
    group_in_proc_ = number_in_proc(child_);
    lent_ = tty_.belongs_to(child_);
    const std::stop_callback wake_on_loss{loss_, [event = loss_event_.get()] {
                                              const std::uint64_t one = 1;
                                              [[maybe_unused]] const auto n =
                                                  ::write(event, &one, sizeof one);
                                          }};
    reap();
    while (!over()) {
        decide();
        wait();
        decide();
        handle_signals();
        reap();
    }
    return conclude();
}

void supervisor::decide() {
    const auto now = clock::now();
    switch (stage_) {
        case stage::running:
            decide_while_running(now);
            break;
        case stage::ending:
            if (now >= kill_at_) {
                begin_killing(now);
            }
            break;
        case stage::killing:
            signal_everyone(SIGKILL);
            wake_at_ = now + kill_again_after;
            break;
    }
}

void supervisor::decide_while_running(clock::time_point now) {
    const bool lost = loss_.stop_requested() || held_.lost().stop_requested();
    if (terms_.on_lost == loss_policy::ignore) {
        wake_at_ = never;
        if (lost && !loss_told_) {
            note_loss();
            out_.error(
                fmt::format("lost \"{}\" ({}); the command goes on, as --on-lost ignore asks for",
                            held_.name(), describe_loss(result_.loss_reason, result_.loss_detail)));
        }
        return;
    }
    if (!lost) {
        valid_until_ = std::min(held_.valid_until(), terms_.hold_end);
        wake_at_ = terms_.ending.terminate_at(valid_until_);
        if (now < wake_at_) {
            return;
        }
    }
    note_loss();
    kill_at_ = terms_.ending.kill_at(valid_until_, now);
    if (now >= kill_at_) {
        begin_killing(now);
    } else {
        begin_ending(now);
    }
}

void supervisor::note_loss() {
    loss_told_ = true;
    result_.lost = true;
    result_.loss_reason = held_.loss_reason();
    result_.loss_detail = held_.loss_detail();
    if (!result_.loss_reason) {
        // The lease is not lost yet: we act before. Our reading of the hold's end may be a little late.
        const bool held_long_enough = terms_.hold_end - valid_until_ < terms_.ending.slack;
        result_.loss_reason = held_long_enough ? errc::max_hold_exceeded : errc::lost;
    }
    if (result_.loss_reason == errc::lost) {
        const bool told = held_.loss_reason() && clock::now() < held_.valid_until();
        result_.loss_detail = told ? std::string{gone_from_store} : terms_.renewal_trouble();
    }
}

/// `losing "job" (…)`. At `--max-hold` nothing is lost: the hold was to end then.
std::string supervisor::describe_ending(std::string_view verb, clock::time_point now) const {
    if (result_.loss_reason == errc::max_hold_exceeded) {
        const auto held_for = now - (terms_.hold_end - terms_.max_hold);
        return describe_max_hold(held_.name(), terms_.max_hold, in_milliseconds(held_for));
    }
    return fmt::format("{} \"{}\" ({})", verb, held_.name(),
                       describe_loss(result_.loss_reason, result_.loss_detail));
}

void supervisor::begin_ending(clock::time_point now) {
    stage_ = stage::ending;
    wake_at_ = kill_at_;
    signal_everyone(SIGTERM);
    signal_everyone(SIGCONT);  // a stopped process cannot obey
    out_.error(fmt::format("{}: told the command to end, kill it in {}", describe_ending("losing", now),
                           format_duration(in_milliseconds(kill_at_ - now))));
}

void supervisor::begin_killing(clock::time_point now) {
    const bool told_to_end = stage_ == stage::ending;
    stage_ = stage::killing;
    wake_at_ = now + kill_again_after;
    give_up_at_ = std::max(valid_until_, now + patience_with_killed);
    signal_everyone(SIGKILL);
    result_.ended_by_itself = !told_to_end && ended_before_kill();
    out_.error(fmt::format("{}: {}", describe_ending("lost", now),
                           result_.ended_by_itself ? command_had_ended : "killed the command"));
}

/// Whether the command had ended, unseen, when we sent SIGKILL: while this process was stopped, say.
bool supervisor::ended_before_kill() const {
    siginfo_t end{};
    if (child_reaped_ ||
        waitid(P_PID, static_cast<id_t>(child_), &end, WEXITED | WNOHANG | WNOWAIT) != 0) {
        return false;
    }
    return end.si_pid == child_ && !(end.si_code == CLD_KILLED && end.si_status == SIGKILL);
}

void supervisor::signal_everyone(int signal) const {
    const bool has_group = !child_reaped_;
    if (has_group) {
        kill(-child_, signal);
    }
    const auto tree = descendants();
    bool all_reached = tree.complete;
    for (const auto& one : tree.found) {
        if (!has_group || one.group != group_in_proc_) {
            all_reached = send_signal(one, signal) && all_reached;
        }
    }
    if (!all_reached) {
        signal_children(child_, has_group ? child_ : 0, signal);
    }
}

void supervisor::wait() {
    if (over()) {
        return;
    }
    arm(timer_.get(), wake_at_);
    std::array<pollfd, 3> sources{
        {{signals_.readable(), POLLIN, 0}, {loss_event_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}}};
    ::poll(sources.data(), sources.size(), -1);
    drain(loss_event_.get());
    drain(timer_.get());
}

void supervisor::handle_signals() {
    while (const auto signal = signals_.next()) {
        if (*signal == SIGCHLD || child_reaped_) {
            continue;  // `reap` asks for all of them anyway
        }
        if (*signal == SIGCONT) {
            resume_child();
        } else {
            forward(*signal);
        }
    }
}

void supervisor::forward(int signal) {
    // The terminal sends its signals to one group only: to the command's group while that has the
    // terminal, otherwise to ours. So a signal that arrives here has not reached the command yet.
    if (signal == SIGTSTP && child_stopped_ && tty_.present()) {
        stop_here();
        return;
    }
    out_.detail(fmt::format("passing signal {} on to the command", signal));
    kill(-child_, signal);
}

void supervisor::reap() {
    while (true) {
        int status = 0;
        const auto id = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (id < 0 && errno == EINTR) {
            continue;
        }
        if (id <= 0) {
            none_left_ = id < 0;
            return;
        }
        if (id != child_) {
            continue;
        }
        if (WIFSTOPPED(status)) {
            on_child_stopped(WSTOPSIG(status));
            continue;
        }
        if (WIFCONTINUED(status)) {
            on_child_continued();
            continue;
        }
        child_reaped_ = true;
        result_.wait_status = status;
        result_.child_ended_at = clock::now();
        result_.had_terminal = lent_;
        tty_.take_back_from(child_);
    }
}

void supervisor::on_child_stopped(int signal) {
    child_stopped_ = true;
    if (stage_ != stage::running || !tty_.present()) {
        return;  // its stopper will continue it; renewals go on
    }
    if ((signal == SIGTTIN || signal == SIGTTOU) && tty_.is_ours()) {
        asked_for_terminal_ = true;
        resume_child();
        return;
    }
    tty_.take_back_from(child_);
    lent_ = false;
    if (signal == SIGSTOP) {
        // The terminal did not send this signal. The sender may continue the command without us, so we
        // stay awake.
        out_.say(
            "the command was stopped and keeps its lock; type Ctrl-C to end it, Ctrl-Z to stop this, "
            "too");
        return;
    }
    if (stop_here()) {
        return;  // SIGCONT is waiting; the deadline is looked at before it
    }
    resume_child();
}

void supervisor::resume_child() {
    on_child_continued();
    kill(-child_, SIGCONT);
}

void supervisor::on_child_continued() {
    child_stopped_ = false;
    if (tty_.should_be_lent() || (asked_for_terminal_ && tty_.is_ours())) {
        tty_.lend_to(child_);
        lent_ = true;
    }
}

bool supervisor::over() const {
    switch (stage_) {
        case stage::running:
            return child_reaped_;
        case stage::ending:
            return child_reaped_ && none_left_;
        case stage::killing:
            return (child_reaped_ && none_left_) || clock::now() >= give_up_at_;
    }
    return true;
}

supervision_result supervisor::conclude() {
    if (!result_.lost && held_.lost().stop_requested()) {
        note_loss();
    }
    result_.lease_end = result_.lost ? valid_until_ : held_.valid_until();
    watch_.end();
    if (!none_left_) {
        const auto rest = descendants();
        const auto living = std::count_if(rest.found.begin(), rest.found.end(),
                                          [](const process& one) { return !one.zombie; });
        // At least one process was left a moment ago, whether /proc shows it or not.
        const std::ptrdiff_t at_least = rest.complete ? 0 : 1;
        result_.left_behind = static_cast<std::size_t>(std::max(living, at_least));
    }
    return result_;
}

}  // namespace holdfast::cli
