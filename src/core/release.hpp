#pragma once

#include <cstdint>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/lease.hpp>

namespace holdfast::core {

/// Gives one claim back to the store, and does not stop before that is certain or pointless.
///
///     sending ── released, gone, refused for good ─▶ done
///        ▲ │
///        │ └── no answer, refused ──▶ backing off ── the store's ttl has ended ─▶ done
///        └─────pause over───────┘
///
/// The caller is told at its own deadline, or when the store refuses; the cleaning up goes on behind
/// its back. A store that refuses now (it cannot save, the user lacks a permission) may accept the
/// release before the ttl ends. The same machine cleans up after an acquisition whose outcome nobody
/// knows.
class release {
public:
    /// `expires_by`: when the store's ttl ends by itself, so that nothing is left to do.
    release(engines::release_request request, clock::time_point expires_by);

    /// The request to send now.
    [[nodiscard]] const engines::release_request& ask(clock::time_point now);
    /// True when it is over.
    [[nodiscard]] bool on_reply(const engines::release_reply& reply, clock::time_point now,
                                double jitter);
    /// True when asking again is pointless: the ttl has ended.
    [[nodiscard]] bool over(clock::time_point now) const noexcept { return now >= expires_by_; }

    [[nodiscard]] bool asking() const noexcept { return asking_; }
    /// The store has answered that it does not do it, for now.
    [[nodiscard]] bool refused() const noexcept;
    /// What the answers so far amount to. `held` says whether the lease was valid when its holder let
    /// go: then "gone" after an unanswered request means that the request had worked.
    [[nodiscard]] release_outcome outcome(bool held) const noexcept;
    [[nodiscard]] clock::time_point wake_at() const noexcept { return wake_at_; }
    [[nodiscard]] const failure& trouble() const noexcept { return trouble_; }
    [[nodiscard]] std::uint32_t others_waiting() const noexcept { return others_waiting_; }

private:
    engines::release_request request_;
    clock::time_point expires_by_;
    clock::time_point wake_at_{clock::time_point::max()};
    failure trouble_;
    std::uint32_t unanswered_{};
    std::uint32_t failures_in_a_row_{};
    std::uint32_t others_waiting_{};
    bool asking_{};
    bool released_{};
    bool gone_{};
};

}  // namespace holdfast::core
