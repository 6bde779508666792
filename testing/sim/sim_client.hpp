#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <context.hpp>
#include <core/lock_table.hpp>
#include <network.hpp>
#include <no_threads.hpp>
#include <referee.hpp>
#include <runtime/performer.hpp>
#include <sim_connection.hpp>
#include <sim_store.hpp>
#include <user.hpp>

namespace holdfast::testing::sim {

/// A process: the shipped performer and core, its users, and everything that can happen to it. May
/// crash and start again as another; `life` tells them apart.
class sim_client {
public:
    struct surroundings {
        context& run;
        network& net;
        sim_store& store;
        referee& judge;
    };

    sim_client(const surroundings& world, std::uint8_t number);
    sim_client(sim_client&&) = default;
    ~sim_client() = default;

    void start();
    /// Something of this client's happens, now or, if it is paused, when it goes on.
    void handle(const happening& event);
    void pause(clock::duration how_long);
    void resume();
    void crash(clock::duration how_long);
    void shut_down();
    [[nodiscard]] bool running() const noexcept { return process_ != nullptr; }
    [[nodiscard]] bool paused() const noexcept { return world_.run.now() < paused_until_; }
    /// All its users are done.
    [[nodiscard]] bool finished() const noexcept;

    // The referee's questions.
    void check_call(const happening& event);
    void check_release(const happening& event);
    void check_validity(const happening& event);
    /// Whether somebody waits here for `lock` since before `since`.
    [[nodiscard]] bool waited_since(std::size_t lock, clock::time_point since) const noexcept;
    /// Whether a reader waits here for `lock` since before `since`.
    [[nodiscard]] bool has_read_waiting(std::size_t lock, clock::time_point since) const noexcept;
    void check_at_end();

private:
    // For the performer: the users' calls and holds, their clock and their timer.
    friend class detail::performer<sim_client>;
    using mutex = no_mutex;
    static constexpr bool ends_on_exception = false;
    struct follow_up {
        std::vector<detail::store_task> tasks{};
    };
    [[nodiscard]] clock::time_point now() const noexcept { return world_.run.now(); }
    void arm(clock::time_point when);
    /// Users leave everything to the performer.
    bool take(core::waiter_id whose, const core::send_acquire& task, follow_up&);
    bool take(core::waiter_id, const core::send_release&, follow_up&) { return false; }
    void perform(const core::stand_by&, follow_up&) {}
    void perform(const core::offer_turn& what, follow_up&);
    void perform(const core::finish_acquire& what, follow_up&);
    void perform(const core::finish_release& what, follow_up&);
    void perform(const core::finish_convert& what, follow_up&);
    void perform(const core::set_validity& what, follow_up&);
    void perform(const core::tell_loss& what, follow_up&);
    void perform(const core::tell_observer&, follow_up&) {}
    void end_step(follow_up&) {}
    void wake(follow_up&) {}

    /// One life.
    struct process {
        process(sim_client& whose, std::unique_ptr<sim_connection> connection,
                const core::table_settings& settings)
            : store{std::move(connection)}, core{whose, store, settings, whose.identity_} {}
        detail::store_access store;
        detail::performer<sim_client> core;
    };

    void process_event(const happening& event);
    void on_reply(const message* what);
    void check_after_step();
    void check_quiet();
    [[nodiscard]] core::lock_table::census count() const {
        return process_->core.look([](const core::lock_table& table) { return table.count(); });
    }
    [[nodiscard]] user* user_of(core::waiter_id call) noexcept;
    void schedule_user(std::uint32_t index, clock::duration delay);
    void schedule_check(what_happens what, std::uint32_t index, clock::time_point when);

    void grant(user& who, const core::finish_acquire& what);
    void check_gone_is_told(const message& what);
    void check_told_in_time(const user& who);
    void check_reason(const user& who, errc why);
    void check_validity_is_covered(const user& who);

    // what the users do
    void user_acts(std::uint32_t index);
    void user_cancels(const happening& event);
    void begin_round(std::uint32_t index);
    void work(std::uint32_t index);
    void write_once(user& who);
    void convert(std::uint32_t index);
    void let_go(std::uint32_t index);
    void end_round(user& who);

    surroundings world_;
    std::uint8_t number_;
    std::uint16_t life_{};
    owner_id identity_;
    /// The engine of `process_`.
    sim_connection* connection_{};
    std::unique_ptr<process> process_;
    std::vector<user> users_;
    clock::time_point paused_until_{};
    clock::time_point last_resume_{};
    std::vector<happening> backlog_;
    std::uint64_t timer_number_{};
    bool shutting_down_{};
    /// Calls whose leases were let go of during their conversion.
    std::vector<core::waiter_id> left_conversions_;
    /// Reported as released without asking the store: the next user must have it.
    std::optional<owner_id> handed_over_;
    /// Reached their max_hold just now: they must be given back.
    std::vector<owner_id> overstayed_;
};

}  // namespace holdfast::testing::sim
