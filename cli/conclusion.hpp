#pragma once

#include <cstdint>
#include <holdfast/client.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run_session.hpp"

namespace holdfast::cli {

/// The end of one run: leaves the marker of `--once-per`, releases the lock, and finds out what became
/// of both. A store that is silent holds up neither the end of the program nor a signal.
///
/// Thread safety: one thread only.
class conclusion {
public:
    explicit conclusion(run_session& run) noexcept : run_{run} {}
    conclusion(const conclusion&) = delete;
    conclusion& operator=(const conclusion&) = delete;
    ~conclusion() { leave_store(); }

    /// After a command that was started at `started_at`. The report has its result.
    void conclude(clock::time_point started_at);

    /// Whether the store has the usual time to confirm a release, or a moment only.
    enum class confirmation : std::uint8_t { awaited, not_awaited };
    /// Releases a lock under which no command has run. Does nothing without one, or after `conclude`.
    void give_back_unused(confirmation wanted);

private:
    /// What the store says of the lock when the command has ended.
    struct sighting {
        /// Why the store did not answer; no error if it did.
        failure problem;
        /// Our owner is among the holders.
        bool held_by_us{};
        /// Who took the lock from us; empty if nobody did.
        std::string revocation;

        [[nodiscard]] bool silent() const {
            return problem && is_passing(make_error_code(problem.code));
        }
    };

    [[nodiscard]] sighting look_at_lock() const;

    void remember_run(sighting& last_seen);
    void keep_trying_to_leave_marker(sighting& last_seen);
    [[nodiscard]] std::optional<failure> leave_marker(const sighting& last_seen) const;

    void give_back(const sighting& last_seen);
    [[nodiscard]] release_outcome leave_store_with_lock();
    void leave_store() noexcept;
    void find_reasons();
    [[nodiscard]] const unreleased* find_unreleased(const std::string& name) const;
    [[nodiscard]] failure reason_unreleased(const std::string& name) const;

    void describe_end(std::chrono::nanoseconds rest_of_lease);
    void warn_of_unreleased(std::chrono::nanoseconds rest_of_lease);
    [[nodiscard]] std::string describe_lost() const;

    run_session& run_;
    clock::time_point started_at_{};
    bool left_store_{};
    /// What the store had not confirmed when we left it.
    std::vector<unreleased> unreleased_;
};

}  // namespace holdfast::cli
