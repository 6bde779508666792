#pragma once

#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <map>
#include <mutex>
#include <string>

#include "messages.hpp"

namespace holdfast::cli {

/// Follows the renewals of one lease, for the line that tells why the lease was lost. With `--verbose`
/// it tells every event at once.
///
/// Thread safety: all functions may be called from any thread.
class lease_news : public observer {
public:
    lease_news(std::string name, const messages& out) : name_{std::move(name)}, out_{out} {}

    void on_event(const event& news) noexcept override;

    /// Since when the lease was not renewed, and why, as part of a sentence.
    [[nodiscard]] std::string renewal_trouble() const;
    /// Why a release of this lock was not confirmed; no error if no event has told yet. All events have
    /// come after `client::shutdown`.
    [[nodiscard]] failure release_trouble(const std::string& name) const;
    /// The same, right after such a release: waits a moment for the event.
    [[nodiscard]] failure next_release_trouble(const std::string& name) const;

private:
    std::string name_;
    messages out_;
    mutable std::mutex guard_;
    clock::time_point renewed_at_{clock::now()};
    /// Of the last renewal; no error when it succeeded.
    failure trouble_;
    std::map<std::string, failure> unreleased_;
    mutable std::condition_variable told_;
};

}  // namespace holdfast::cli
