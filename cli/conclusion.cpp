#include "conclusion.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <exception>
#include <holdfast/error.hpp>
#include <system_error>
#include <utility>

#include "claim.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// How long a store that has been silent gets to confirm a release when we leave it.
constexpr milliseconds last_moment{100};

/// Takes all signals that wait. Returns whether one of them ends the program; the others (the end of a
/// process that the command left behind, a window that was resized) are forgotten.
[[nodiscard]] bool told_to_end(const signal_source& signals) {
    bool ends = false;
    for (auto signal = signals.next(); signal; signal = signals.next()) {
        ends = ends || ends_waiting(*signal);
    }
    return ends;
}

[[nodiscard]] std::string describe_problem(const failure& problem) {
    if (problem.detail.empty()) {
        return "the store did not answer";
    }
    return (problem.code == errc::unauthorised ? "a permission is missing: " : "") + problem.detail;
}

}  // namespace

void conclusion::conclude(clock::time_point started_at) {
    started_at_ = started_at;
    auto& report = run_.report;
    const auto& command = *report.command;
    const int status = command.wait_status;
    const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const auto rest_of_lease = run_.held->remaining();
    auto last_seen = look_at_lock();
    if (run_.once && succeeded && !command.lost && run_.once->counts(started_at_)) {
        remember_run(last_seen);
    }
    give_back(last_seen);
    find_reasons();
    const bool ended_by_loss = command.lost && run_.arguments.on_lost != loss_policy::ignore;
    report.outcome = command.lost ? run_outcome::lost : run_outcome::completed;
    report.status = ended_by_loss         ? to_status(exit_code::lost)
                    : WIFSIGNALED(status) ? status_of_signal(WTERMSIG(status))
                                          : WEXITSTATUS(status);
    describe_end(rest_of_lease);
}

/// A store that cannot be reached says so at once, while a request to release would be tried again and
/// again. After a loss for lack of answers the store is not asked.
conclusion::sighting conclusion::look_at_lock() const {
    const auto& command = *run_.report.command;
    const auto& held = *run_.held;
    sighting seen;
    if (command.lost && command.loss_reason == errc::lost) {
        seen.problem = {errc::store_unavailable, command.loss_detail};
        return seen;
    }
    try {
        const auto lock = run_.store->inspect(run_.arguments.name, release_patience);
        seen.held_by_us =
            std::any_of(lock.holders.begin(), lock.holders.end(),
                        [&](const holder_info& holder) { return holder.owner == held.owner(); });
        if (const auto& last = lock.last_revocation; last && last->owner == held.owner()) {
            seen.revocation = fmt::format("revoked by {}", last->actor) +
                              (last->reason.empty() ? "" : ": " + last->reason);
        }
    } catch (const std::system_error& error) {
        seen.problem = failure_behind(error);
    }
    return seen;
}

/// Leaves the marker. If the store does not answer (a fail-over, a restart) or refuses for a while (a
/// slot that moves), we keep the lock and try again: nobody else runs the command while we hold the
/// lock, and after the release the marker must be there.
void conclusion::remember_run(sighting& last_seen) {
    keep_trying_to_leave_marker(last_seen);
    auto& problem = run_.report.marker_problem;
    if (problem && *problem && !run_.once->counts(started_at_)) {
        problem.reset();  // the period is over: others may run the command anyway
    }
}

void conclusion::keep_trying_to_leave_marker(sighting& last_seen) {
    constexpr std::chrono::seconds patience{10};
    constexpr int pause_ms = 200;
    auto& problem = run_.report.marker_problem;
    const auto until = clock::now() + patience;
    for (bool tried = false; run_.once->counts(started_at_); last_seen = look_at_lock()) {
        problem = leave_marker(last_seen);
        if (tried && !problem) {
            problem = failure{errc::lost, "the lock ended before the marker could be left"};
        }
        const bool passing = problem && *problem && is_passing(make_error_code(problem->code));
        if (!passing || !*run_.held || clock::now() >= until) {
            return;
        }
        if (!std::exchange(tried, true)) {
            run_.out.say(fmt::format(
                "the --once-per marker of \"{}\" cannot be left yet ({}); trying again "
                "for up to {}",
                run_.arguments.name, describe_problem(*problem), format_duration(patience)));
        }
        ::pollfd signals{run_.signals.readable(), POLLIN, 0};
        static_cast<void>(::poll(&signals, 1, pause_ms));
        if (told_to_end(run_.signals)) {
            return;
        }
    }
}

/// Empty: the lock is lost, so the run does not count and needs no marker. (We may not know of the loss
/// yet: the next renewal would have told us.) If we have no permission to look at the lock, the run
/// counts.
std::optional<failure> conclusion::leave_marker(const sighting& last_seen) const {
    if (last_seen.problem.code == errc::outcome_unknown) {
        return failure{errc::store_unavailable, last_seen.problem.detail};
    }
    if (!last_seen.problem && !last_seen.held_by_us) {
        return std::nullopt;
    }
    // The slot of the lock may be on the move; the marker has a slot of its own.
    auto problem = run_.once->remember(
        started_at_, last_seen.silent() ? once_per::patience::none : once_per::patience::some);
    if (problem && problem.detail.empty()) {
        // If the news has the store's refusal, the store is not asked again.
        const auto refusal = run_.news->next_release_trouble(run_.once->marker_name());
        problem = refusal ? refusal : problem;
    }
    return problem;
}

/// Also after a loss: the lease is over for the command, but perhaps not yet for the store. A store
/// that is silent is not waited for a second time.
void conclusion::give_back(const sighting& last_seen) {
    auto& report = run_.report;
    auto& command = *report.command;
    auto& held = *run_.held;
    const auto rest = run_.arguments.min_hold.value_or(milliseconds{0}) - since(run_.acquired_at);
    const bool lingers = rest > milliseconds{0} && !command.lost;
    if (last_seen.silent() && !lingers) {
        report.released = leave_store_with_lock();
        return;
    }
    report.released = lingers ? held.release_after(rest) : held.release();
    // The deadline may pass between the end of the command and the release, which does no harm. But if
    // the store no longer knew a lease that had time left, the lock was taken from the command.
    if (*report.released == release_outcome::already_lost && !command.lost &&
        clock::now() < command.lease_end) {
        const bool revoked = !last_seen.revocation.empty();
        command.lost = true;
        command.loss_reason = revoked ? errc::revoked : errc::lost;
        command.loss_detail = revoked ? last_seen.revocation : std::string{gone_from_store};
    }
}

void conclusion::give_back_unused(confirmation wanted) {
    auto& report = run_.report;
    if (!run_.held || report.command) {
        return;
    }
    auto& held = *run_.held;
    const auto rest_of_lease = held.remaining();
    report.token = held.token();
    report.owner = held.owner();
    report.released = wanted == confirmation::awaited ? held.release() : leave_store_with_lock();
    run_.held.reset();
    find_reasons();
    warn_of_unreleased(rest_of_lease);
}

release_outcome conclusion::leave_store_with_lock() {
    const auto& name = run_.arguments.name;
    const bool over = !*run_.held;
    leave_store();
    if (over) {
        return release_outcome::already_lost;
    }
    if (find_unreleased(name) != nullptr) {
        return release_outcome::unknown;
    }
    // The client's own event is that the lease ended with the client.
    run_.out.detail(fmt::format("\"{}\" {}", name, to_string(event_kind::released)));
    return release_outcome::released;
}

/// Ends the client, so that nothing waits for the store any more.
void conclusion::leave_store() noexcept {
    if (!run_.store || std::exchange(left_store_, true)) {
        return;
    }
    try {
        unreleased_ = run_.store->shutdown(last_moment);
    } catch (const std::exception&) {
        unreleased_.clear();  // no memory for the list
    }
}

/// The client knows why the store did not do what it was asked for.
void conclusion::find_reasons() {
    auto& report = run_.report;
    auto& marker = report.marker_problem;
    const bool marker_unexplained = marker && *marker && marker->detail.empty();
    if (*report.released != release_outcome::unknown && !marker_unexplained) {
        return;
    }
    leave_store();
    report.release_problem = reason_unreleased(run_.arguments.name);
    if (marker_unexplained) {
        const auto reason = reason_unreleased(run_.once->marker_name());
        *marker = reason ? reason : *marker;
    }
}

/// Why the release of this lock was not confirmed. No error: the store did not answer.
failure conclusion::reason_unreleased(const std::string& name) const {
    if (auto trouble = run_.news->release_trouble(name)) {
        return trouble;
    }
    const auto* const found = find_unreleased(name);
    return found == nullptr ? failure{} : found->error;
}

/// Null when the release was confirmed.
const unreleased* conclusion::find_unreleased(const std::string& name) const {
    const auto found = std::find_if(unreleased_.begin(), unreleased_.end(),
                                    [&](const unreleased& each) { return each.name == name; });
    return found == unreleased_.end() ? nullptr : &*found;
}

void conclusion::describe_end(std::chrono::nanoseconds rest_of_lease) {
    auto& report = run_.report;
    const auto& command = *report.command;
    if (command.lost) {
        report.message = describe_lost();
        if (command.left_behind > 0 && run_.arguments.on_lost != loss_policy::ignore) {
            report.message +=
                fmt::format("; {} of its processes could not be killed", command.left_behind);
        }
    } else if (command.left_behind > 0) {
        run_.out.detail(fmt::format("the command left {} processes in the background, without the lock",
                                    command.left_behind));
    }
    if (const auto& marker = report.marker_problem; marker && *marker) {
        report.warnings.push_back(
            fmt::format("the --once-per marker of \"{}\" {} ({}): the command may run again sooner",
                        run_.arguments.name,
                        marker->code == errc::outcome_unknown ? "was not confirmed" : "is missing",
                        describe_problem(*marker)));
    }
    if (!command.lost) {
        warn_of_unreleased(rest_of_lease);
    }
}

void conclusion::warn_of_unreleased(std::chrono::nanoseconds rest_of_lease) {
    auto& report = run_.report;
    if (*report.released == release_outcome::unknown) {
        const auto rest = std::chrono::ceil<std::chrono::seconds>(rest_of_lease);
        report.warnings.push_back(
            fmt::format("\"{}\" could not be released ({}); it ends by itself within {}",
                        run_.arguments.name, describe_problem(report.release_problem),
                        format_duration(std::min<milliseconds>(rest + std::chrono::seconds{1},
                                                               run_.arguments.ttl))));
    }
}

std::string conclusion::describe_lost() const {
    const auto& arguments = run_.arguments;
    const auto& command = *run_.report.command;
    if (command.loss_reason == errc::max_hold_exceeded && arguments.on_lost != loss_policy::ignore) {
        return describe_max_hold(arguments.name, *arguments.max_hold, run_.report.held) + ": " +
               std::string{command.ended_by_itself ? command_had_ended : "the command was ended"};
    }
    const auto reason = describe_loss(command.loss_reason, command.loss_detail);
    if (command.ended_by_itself) {
        return fmt::format("\"{}\" was lost ({}); {}, before or after that", arguments.name, reason,
                           command_had_ended);
    }
    return fmt::format("\"{}\" was lost while the command ran ({})", arguments.name, reason);
}

}  // namespace holdfast::cli
