#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <holdfast/lease.hpp>
#include <runtime/hold.hpp>

namespace holdfast::detail {

/// Several holds that count only together.
class joint_hold {
public:
    /// `release_timeout` is how long a release of all of them may take.
    joint_hold(std::vector<std::shared_ptr<hold>> members, clock::duration release_timeout);
    joint_hold(const joint_hold&) = delete;
    joint_hold& operator=(const joint_hold&) = delete;
    /// Nobody released it: all of its members are over.
    ~joint_hold();

    [[nodiscard]] const std::vector<std::shared_ptr<hold>>& members() const noexcept {
        return members_;
    }
    [[nodiscard]] clock::duration release_timeout() const noexcept { return release_timeout_; }
    /// The first that is lost; null while all are held.
    [[nodiscard]] const hold* lost_member() const noexcept;
    [[nodiscard]] std::stop_token lost() const noexcept;

private:
    /// Passes a member's loss on. It may be the last to use the source: whoever is told may let go of
    /// everything.
    struct pass_on {
        std::stop_source to;
        void operator()() const noexcept {
            const auto kept = to;
            kept.request_stop();
        }
    };

    std::vector<std::shared_ptr<hold>> members_;
    clock::duration release_timeout_;
    std::stop_source stop_;
    std::vector<std::unique_ptr<std::stop_callback<pass_on>>> forwarded_;
};

/// Where the answers to several releases arrive. Shared with those who bring them, so that a caller
/// need not wait for all.
class release_tally {
public:
    explicit release_tally(std::size_t count) : outcomes_(count), missing_{count} {}

    void put(std::size_t index, release_outcome outcome);
    /// What is known by `deadline`; the others are `unknown`.
    [[nodiscard]] std::vector<release_outcome> wait(clock::time_point deadline);

private:
    std::mutex guard_;
    std::condition_variable changed_;
    std::vector<std::optional<release_outcome>> outcomes_;
    std::size_t missing_;
};

/// Gives all of them back at once, over as many sessions as they belong to, and waits for the answers
/// until `deadline`. What is not answered by then goes on in the background.
std::vector<release_outcome> release_together(const std::vector<std::shared_ptr<hold>>& which,
                                              clock::time_point deadline) noexcept;

}  // namespace holdfast::detail
