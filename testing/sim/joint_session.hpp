#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <core/joint_question.hpp>
#include <core/lock_table.hpp>
#include <no_threads.hpp>
#include <quorum_member.hpp>
#include <quorum_stage.hpp>
#include <runtime/performer.hpp>

namespace holdfast::testing::sim {

class joint_session;

/// Who is told what the core says about a call or a hold. Numbers are unique in a session only.
class joint_caller {
public:
    joint_caller() = default;
    joint_caller(const joint_caller&) = delete;
    joint_caller& operator=(const joint_caller&) = delete;
    virtual ~joint_caller() = default;

    virtual void on_finished(joint_session& from, const core::finish_acquire& what) = 0;
    virtual void on_released(joint_session& from, core::hold_id which) = 0;
    virtual void on_validity(joint_session& from, core::hold_id which, clock::time_point until) = 0;
    virtual void on_loss(joint_session& from, core::hold_id which) = 0;
};

/// One process: its clock, and what its threads are about to do.
class joint_process {
public:
    joint_process(quorum_stage& stage, double rate) noexcept
        : stage_{stage}, state_{uneven_clock{rate}} {}

    [[nodiscard]] quorum_stage& stage() noexcept { return stage_; }
    [[nodiscard]] const client_process& state() const noexcept { return state_; }
    [[nodiscard]] clock::time_point now() const noexcept { return state_.time.shows(stage_.now()); }
    [[nodiscard]] clock::time_point truth(clock::time_point shown) const noexcept {
        return state_.time.truth_at(shown);
    }
    void pause(clock::duration how_long) {
        state_.awake_at = std::max(state_.awake_at, stage_.now() + how_long);
    }
    /// It stood still until then, or will.
    [[nodiscard]] clock::time_point awake_at() const noexcept { return state_.awake_at; }
    /// Lets something happen in this process, once it is awake.
    void later(clock::duration delay, std::function<void()> what);

private:
    quorum_stage& stage_;
    client_process state_;
};

/// One client of one store: the shipped performer and core, without threads.
class joint_session {
public:
    joint_session(joint_process& process, quorum_member& store, network_quality quality,
                  const core::table_settings& settings, const owner_id& client);

    [[nodiscard]] const std::string& address() const noexcept { return store_.engine().address(); }

    core::waiter_id acquire(const core::claim& what, joint_caller& who);
    std::shared_ptr<core::joint_question> acquire_together(const std::vector<core::claim>& all,
                                                           clock::time_point deadline,
                                                           joint_caller& who);
    void cancel(core::waiter_id call);
    void cancel(const core::joint_question& what);
    void release(core::hold_id which);

    [[nodiscard]] core::lock_table::census left() {
        return core_.look([](const core::lock_table& table) { return table.count(); });
    }

private:
    // For the performer.
    friend class detail::performer<joint_session>;
    using mutex = no_mutex;
    static constexpr bool ends_on_exception = false;
    struct follow_up {
        std::vector<detail::store_task> tasks{};
    };
    [[nodiscard]] clock::time_point now() const noexcept { return process_.now(); }
    void arm(clock::time_point when);
    bool take(core::waiter_id whose, core::send_acquire& task, follow_up&);
    bool take(core::waiter_id, const core::send_release&, follow_up&) { return false; }
    void perform(const core::stand_by&, follow_up&) {}
    void perform(const core::offer_turn& what, follow_up&);
    void perform(const core::finish_acquire& what, follow_up&);
    void perform(const core::finish_release& what, follow_up&);
    void perform(const core::finish_convert&, follow_up&) {}
    void perform(const core::set_validity& what, follow_up&);
    void perform(const core::tell_loss& what, follow_up&);
    void perform(const core::tell_observer&, follow_up&) {}
    void end_step(follow_up&) {}
    void wake(follow_up&) {}

    joint_process& process_;
    detail::store_access store_;
    detail::performer<joint_session> core_;
    clock::duration request_timeout_;
    /// Whom a call belongs to, and then the hold.
    std::map<core::waiter_id, joint_caller*> callers_;
    std::map<core::waiter_id, std::shared_ptr<core::joint_question>> together_;
    std::uint64_t timer_{};
};

}  // namespace holdfast::testing::sim
