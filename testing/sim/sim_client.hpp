#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <context.hpp>
#include <core/lock_table.hpp>
#include <network.hpp>
#include <referee.hpp>
#include <sim_store.hpp>
#include <user.hpp>

namespace holdfast::testing::sim {

/// A process: the shipped `lock_table`, its users, and everything that can happen to it. May crash and
/// start again as another; `life` tells them apart.
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
    [[nodiscard]] bool running() const noexcept { return table_ != nullptr; }
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
    struct owner_state {
        owner_id owner;
        /// The last request to acquire got no answer, and nothing has been done about it since.
        bool unknown{};
        bool release_sent{};
        /// After this nothing is left to find out.
        clock::time_point forgotten_by{};
    };

    void process(const happening& event);
    void on_reply(const message& what);
    /// Carries out what the core wants.
    void pump();
    void arm_timer();
    void check_quiet();
    [[nodiscard]] owner_state& state_of(const owner_id& owner);
    [[nodiscard]] user* user_of(core::waiter_id call) noexcept;
    void schedule_user(std::uint32_t index, clock::duration delay);
    void schedule_check(what_happens what, std::uint32_t index, clock::time_point when);

    // what the core wants
    void perform(const core::send_acquire& what);
    void perform(const core::send_renew& what);
    void perform(const core::send_release& what);
    void perform(const core::update_watch& what);
    void perform(const core::stand_by&) {}
    void perform(const core::offer_turn& what);
    void perform(const core::finish_acquire& what);
    void perform(const core::finish_release& what);
    void perform(const core::finish_convert& what);
    void perform(const core::set_validity& what);
    void perform(const core::tell_loss& what);
    void perform(const core::tell_observer&) {}
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
    std::unique_ptr<core::lock_table> table_;
    std::vector<user> users_;
    std::vector<owner_state> owners_;
    clock::time_point paused_until_{};
    clock::time_point last_resume_{};
    std::vector<happening> backlog_;
    clock::time_point timer_at_{clock::time_point::max()};
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
