#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/info.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

#include "run_session.hpp"

namespace holdfast::cli {

/// The owners of the runs around this one, from the outermost on, separated by spaces.
[[nodiscard]] std::string_view outer_owners() noexcept;

/// The wait of one run for its lock. The wait covers everything from the start of the program: opening
/// the store, outages of the store, other holders, and the look for an earlier run.
///
/// Thread safety: one thread only.
class lock_wait {
public:
    explicit lock_wait(run_session& run);

    /// Opens the store and takes the lock. Afterwards `run_session::held` is empty if `stop` or the
    /// deadline came first. Throws `std::system_error` when waiting longer cannot help; the lock may be
    /// held then.
    void take(const std::stop_token& stop);

    /// Why the lock was not acquired: its holders, or that they are not known. Adds them to the report.
    [[nodiscard]] std::string describe_holders();

    /// The earlier run that keeps this one from running, if there is one.
    [[nodiscard]] const std::optional<holder_info>& earlier_run() const noexcept { return earlier_; }
    [[nodiscard]] clock::time_point began() const noexcept { return began_; }

private:
    void open(const std::stop_token& stop);
    [[noreturn]] void give_up_opening() const;
    void refuse_to_wait_for_ourselves() const;
    [[nodiscard]] std::optional<std::chrono::milliseconds> time_to_look() const;
    void tell_trouble(const std::system_error& error);

    run_session& run_;
    const clock::time_point began_{clock::now()};
    const clock::time_point deadline_;
    clock::time_point tell_again_at_{};
    /// The store was tried at least once.
    bool tried_{};
    /// The last error; empty without any.
    std::string last_trouble_;
    std::optional<holder_info> earlier_;
};

}  // namespace holdfast::cli
