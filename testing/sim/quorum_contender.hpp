#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/testing/sim/quorum_simulation.hpp>
#include <quorum_member.hpp>
#include <quorum_stage.hpp>

namespace holdfast::testing::sim {

[[nodiscard]] const std::string& lock_under_test();

/// Knows the true time, and who believes to hold the lock. Keeps the resource that the lock protects.
class quorum_referee {
public:
    quorum_referee(quorum_stage& stage, const quorum_plan& plan) noexcept
        : stage_{stage}, plan_{plan} {}

    void granted(std::uint32_t client, fencing_token token, clock::time_point believes_until);
    void extended(std::uint32_t client, clock::time_point believes_until);
    void ended(std::uint32_t client) { beliefs_.erase(client); }
    /// A write that carries its holder's token, looked at by the resource.
    void written(fencing_token token);
    void complain(const std::string& what);
    [[nodiscard]] const quorum_result& result() const noexcept { return result_; }

private:
    [[nodiscard]] bool nothing_forgotten() const noexcept {
        return plan_.members == quorum_plan::restarts::keep;
    }
    void check_token(fencing_token token);

    quorum_stage& stage_;
    const quorum_plan& plan_;
    /// Until when each client believes, in true time.
    std::map<std::uint32_t, clock::time_point> beliefs_;
    /// The number of the grant.
    std::map<std::uint64_t, std::uint64_t> holds_by_token_;
    fencing_token largest_granted_{};
    fencing_token largest_written_{};
    std::uint64_t last_grant_written_{};
    quorum_result result_;
};

struct contention_terms {
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds restart_grace{};
    int rounds{};
    /// No faults: everybody must get the lock, and leave nothing behind.
    bool calm{};
};

/// A client that takes the lock a few times, works, writes, and lets go. It counts its lease as the
/// library does: from before the request was sent, less the drift.
class quorum_contender {
public:
    quorum_contender(quorum_stage& stage, quorum_referee& referee, std::uint32_t number, double rate,
                     const std::vector<std::unique_ptr<quorum_member>>& members,
                     network_quality quality, const contention_terms& terms);

    void start();
    void pause(clock::duration how_long);

private:
    void next_round();
    void attempt();
    void answered(const engines::acquire_reply& reply);
    void wait_and_retry(clock::duration how_long);
    void hold(const engines::acquire_reply& reply);
    void plan_write(clock::duration after);
    void renew();
    void let_go();
    void give_up();
    void release();

    /// Runs `what` later, unless the step it belongs to is over by then.
    void later(clock::duration delay, std::function<void()> what);
    [[nodiscard]] clock::time_point local() const noexcept { return process_.time.shows(stage_.now()); }
    [[nodiscard]] bool believes() const noexcept { return holding_ && local() < valid_until_; }
    [[nodiscard]] clock::duration lasting() const noexcept;
    [[nodiscard]] engines::call by_now() const noexcept;

    quorum_stage& stage_;
    quorum_referee& referee_;
    const std::uint32_t number_;
    const contention_terms terms_;
    client_process process_;
    std::unique_ptr<engines::engine> engine_;
    std::unique_ptr<engines::subscription> watch_;
    owner_id owner_;
    int rounds_left_;
    std::uint64_t step_{};
    bool waiting_{};
    bool holding_{};
    clock::time_point round_began_{};
    clock::time_point sent_{};
    clock::time_point valid_until_{};
    fencing_token token_{};
};

}  // namespace holdfast::testing::sim
