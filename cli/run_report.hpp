#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "messages.hpp"
#include "supervisor.hpp"

namespace holdfast::cli {

enum class run_outcome : std::uint8_t {
    completed,     ///< the command ran under the lock from start to end
    skipped,       ///< `--once-per`: it ran not long ago
    not_acquired,  ///< somebody else holds the lock
    cancelled,     ///< a signal ended the wait
    not_started,   ///< the command could not be executed
    lost,          ///< the lock was lost while the command ran
    failed,        ///< anything else; the message says what
};

/// How a `holdfast run` ended, without the ambiguity of an exit status that the command may use, too.
struct run_report {
    run_outcome outcome{run_outcome::failed};
    int status{};
    /// For people; empty when there is nothing to say.
    std::string message;
    std::string store;
    std::optional<fencing_token> token;
    std::optional<owner_id> owner;
    std::optional<lock_info> busy;
    std::optional<supervision_result> command;
    /// Empty: the lock was not acquired.
    std::optional<release_outcome> released;
    /// Why it is unknown whether the lock was given back.
    failure release_problem;
    /// `--once-per`, after a success: no error when the marker was left. Empty: none was needed.
    std::optional<failure> marker_problem;
    /// One line each: what went wrong without changing the outcome.
    std::vector<std::string> warnings;
    std::chrono::milliseconds waited{};
    std::chrono::milliseconds held{};
    /// A thread still tries to open the store: the program must end with `_exit`.
    bool unfinished_opening{};
};

/// Tells people, or with `--json` writes one object as the last line on standard error.
void print_report(const run_arguments& arguments, const run_report& report, const messages& out);

}  // namespace holdfast::cli
