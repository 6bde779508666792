#pragma once

#include "arguments.hpp"

namespace holdfast::cli {

/// Each returns the program's exit status, and throws `stop_program` or `std::system_error` otherwise.

/// Runs a command under a lock. Reports its own errors. Call it before any thread is started.
[[nodiscard]] int run(const run_arguments& arguments);
/// A table of what is held.
[[nodiscard]] int list(const list_arguments& arguments);
/// All that is known of one lock.
[[nodiscard]] int inspect(const inspect_arguments& arguments);
/// Takes a lock from its holder.
[[nodiscard]] int release(const release_arguments& arguments);
/// Whether a holder still holds.
[[nodiscard]] int check(const check_arguments& arguments);
/// What of the store's set-up endangers locks.
[[nodiscard]] int doctor(const doctor_arguments& arguments);

}  // namespace holdfast::cli
