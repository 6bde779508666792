#include "run_report.hpp"

#include <sys/wait.h>

#include <boost/json.hpp>
#include <holdfast/error.hpp>

#include "exit_code.hpp"
#include "json.hpp"

namespace holdfast::cli {

namespace json = boost::json;

namespace {

[[nodiscard]] std::string_view to_word(run_outcome outcome) noexcept {
    switch (outcome) {
        case run_outcome::completed:
            return "completed";
        case run_outcome::skipped:
            return "skipped";
        case run_outcome::not_acquired:
            return "not_acquired";
        case run_outcome::cancelled:
            return "cancelled";
        case run_outcome::not_started:
            return "not_started";
        case run_outcome::lost:
            return "lost";
        case run_outcome::failed:
            break;
    }
    return "failed";
}

[[nodiscard]] std::string_view loss_word(const std::error_code& reason) noexcept {
    if (reason == errc::revoked) {
        return "revoked";
    }
    return reason == errc::max_hold_exceeded ? "max_hold" : "lost";
}

[[nodiscard]] std::string_view to_word(release_outcome outcome) noexcept {
    switch (outcome) {
        case release_outcome::released:
            return "released";
        case release_outcome::already_lost:
            return "already_lost";
        case release_outcome::unknown:
            break;
    }
    return "unknown";
}

/// The kind of failure; empty when it was none.
[[nodiscard]] std::string_view error_word(const run_report& report) noexcept {
    switch (report.outcome) {
        case run_outcome::not_acquired:
            return cli::to_word(exit_code::not_acquired);
        case run_outcome::lost:
            return cli::to_word(exit_code::lost);
        case run_outcome::not_started:
        case run_outcome::failed:
            return cli::to_word(static_cast<exit_code>(report.status));
        case run_outcome::completed:
        case run_outcome::skipped:
        case run_outcome::cancelled:
            break;
    }
    return {};
}

/// Where the store gave no reason, it did not answer.
[[nodiscard]] std::string_view error_word(const failure& problem) noexcept {
    return cli::to_word(problem ? exit_code_for(make_error_code(problem.code))
                                : exit_code::unavailable);
}

[[nodiscard]] std::string_view marker_word(const failure& problem) noexcept {
    if (!problem) {
        return "left";
    }
    return problem.code == errc::outcome_unknown ? "unknown" : "missing";
}

/// All that was said at the end.
[[nodiscard]] std::string all_messages(const run_report& report) {
    auto text = report.message;
    for (const auto& warning : report.warnings) {
        text += (text.empty() ? "" : "; ") + warning;
    }
    return text;
}

/// A reading of our clock as wall-clock time, for comparing with other hosts' logs.
[[nodiscard]] std::int64_t to_epoch(clock::time_point when) {
    const auto from_now =
        std::chrono::duration_cast<std::chrono::system_clock::duration>(when - clock::now());
    return epoch_milliseconds(std::chrono::system_clock::now() + from_now);
}

[[nodiscard]] json::object describe_command(const supervision_result& command) {
    json::object result{{"ended_ms", to_epoch(command.child_ended_at)},
                        {"lease_end_ms", to_epoch(command.lease_end)},
                        {"left_behind", command.left_behind}};
    if (WIFSIGNALED(command.wait_status)) {
        result["signal"] = WTERMSIG(command.wait_status);
    } else {
        result["exit_code"] = WEXITSTATUS(command.wait_status);
    }
    return result;
}

[[nodiscard]] json::object to_json(const run_arguments& arguments, const run_report& report) {
    json::object result{{"outcome", to_word(report.outcome)},   {"status", report.status},
                        {"name", to_json_text(arguments.name)}, {"store", to_json_text(report.store)},
                        {"waited_ms", report.waited.count()},   {"held_ms", report.held.count()}};
    if (const auto error = error_word(report); !error.empty()) {
        result["error"] = error;
    }
    if (const auto text = all_messages(report); !text.empty()) {
        result["message"] = to_json_text(text);
    }
    if (report.token) {
        result["token"] = report.token->value;
    }
    if (report.owner) {
        result["owner"] = report.owner->text();
    }
    if (report.busy) {
        result["held_by"] = cli::to_json(*report.busy)["holders"];
    }
    if (report.command) {
        result["command"] = describe_command(*report.command);
        if (report.command->lost) {
            result["loss_reason"] = loss_word(report.command->loss_reason);
        }
    }
    if (report.released) {
        result["released"] = to_word(*report.released);
        if (*report.released == release_outcome::unknown) {
            result["release_error"] = error_word(report.release_problem);
        }
    }
    if (report.marker_problem) {
        result["marker"] = marker_word(*report.marker_problem);
        if (*report.marker_problem) {
            result["marker_error"] = error_word(*report.marker_problem);
        }
    }
    return result;
}

}  // namespace

void print_report(const run_arguments& arguments, const run_report& report, const messages& out) {
    if (arguments.json) {
        out.document(to_document(to_json(arguments, report)) + "\n");
        return;
    }
    for (const auto& warning : report.warnings) {
        out.error(warning);
    }
    if (report.message.empty()) {
        return;
    }
    switch (report.outcome) {
        case run_outcome::completed:
        case run_outcome::skipped:
        case run_outcome::not_acquired:
        case run_outcome::cancelled:
            out.say(report.message);
            break;
        case run_outcome::not_started:
        case run_outcome::lost:
        case run_outcome::failed:
            out.error(report.message);
            break;
    }
}

}  // namespace holdfast::cli
