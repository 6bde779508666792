#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <core/joint_acquisition.hpp>
#include <holdfast/testing/sim/joint_simulation.hpp>
#include <joint_session.hpp>

namespace holdfast::testing::sim {

/// A lock of a store's: the store's number, and the name.
using joint_lock = std::pair<std::size_t, std::string>;

/// Knows the true time, and who believes to hold which lock.
class joint_referee {
public:
    joint_referee(quorum_stage& stage, const std::vector<std::unique_ptr<quorum_member>>& stores)
        : stage_{stage}, stores_{stores} {}

    void granted(std::uint32_t user, const joint_lock& which, fencing_token token,
                 clock::time_point believes_until);
    void extended(std::uint32_t user, const joint_lock& which, clock::time_point believes_until);
    void ended(std::uint32_t user, const joint_lock& which);
    [[nodiscard]] bool store_has(const joint_lock& which, const owner_id& owner);
    void call_granted() { ++result_.calls_granted; }
    void call_ended() { ++result_.calls_ended; }

    void complain(const std::string& what);
    [[nodiscard]] joint_result& result() noexcept { return result_; }

private:
    struct belief {
        std::uint32_t user{};
        clock::time_point until{};
    };

    quorum_stage& stage_;
    const std::vector<std::unique_ptr<quorum_member>>& stores_;
    std::map<joint_lock, belief> beliefs_;
    std::map<joint_lock, fencing_token> largest_;
    joint_result result_;
};

struct joint_terms {
    std::chrono::milliseconds ttl{};
    std::uint32_t names{};
    std::uint32_t rounds{};
    /// By store: whether it takes several locks in one request.
    std::vector<bool> together;
};

/// One thread that takes several locks a few times, works, and lets go. It does what the core's
/// `joint_acquisition` says, as the runtime's `take_all` does; between any two of its steps anything
/// may happen.
class joint_user final : public joint_caller {
public:
    /// `sessions` are its client's, by store. The first user of a run is patient in its first call, so
    /// that it can be cancelled anywhere.
    joint_user(joint_process& process, std::vector<joint_session*> sessions, joint_referee& referee,
               const joint_terms& terms, std::uint32_t number);

    void start();
    /// Its stop token is triggered, if it is in a call.
    void cancel();
    [[nodiscard]] bool calls_for_the_first_time() const noexcept { return round_ == 1 && way_; }
    [[nodiscard]] bool finished() const noexcept { return finished_; }

    void on_finished(joint_session& from, const core::finish_acquire& what) override;
    void on_released(joint_session& from, core::hold_id which) override;
    void on_validity(joint_session& from, core::hold_id which, clock::time_point until) override;
    void on_loss(joint_session& from, core::hold_id which) override;

private:
    using hold_number = std::pair<joint_session*, core::hold_id>;
    struct hold {
        joint_lock lock;
        owner_id owner;
        clock::time_point valid_until;
        bool lost{};
    };

    void next_round();
    void draw_wishes();
    void draw_patience();
    void go_on();
    void ask_together(const std::vector<std::size_t>& which);
    void wait_for(std::size_t which);
    void look_at_answers();
    void conclude();
    void give_back(const std::vector<std::size_t>& which, clock::duration patience,
                   std::function<void()> then);
    void check();
    void end_call();
    void check_end_in_time();
    void work();
    [[nodiscard]] core::claim claim_for(std::size_t which) const;
    [[nodiscard]] std::size_t how_many_together(std::size_t first) const;
    [[nodiscard]] joint_session& session_of(std::size_t which) const {
        return *sessions_[targets_[which].first];
    }
    [[nodiscard]] hold* find(joint_session& from, core::hold_id which);
    /// Goes on a moment later, unless it went on otherwise by then.
    void later(clock::duration delay, std::function<void()> what);
    void soon(std::function<void()> what);

    joint_process& process_;
    std::vector<joint_session*> sessions_;
    joint_referee& referee_;
    const joint_terms& terms_;
    const std::uint32_t number_;
    std::uint32_t round_{};
    std::uint64_t step_{};
    bool finished_{};

    // The call.
    std::vector<joint_lock> targets_;
    core::joint_acquisition::patience patience_;
    core::terms how_;
    std::optional<core::joint_acquisition> way_;
    std::optional<clock::time_point> stopped_at_;
    std::vector<std::size_t> asked_;
    std::vector<core::waiter_id> calls_;
    std::shared_ptr<core::joint_question> question_;
    std::map<core::waiter_id, core::finish_acquire> answers_;
    /// By place in `targets_`.
    std::vector<std::optional<hold_number>> taken_;
    std::map<hold_number, hold> holds_;
    std::set<hold_number> releasing_;
    std::function<void()> when_released_;
};

}  // namespace holdfast::testing::sim
