#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <context.hpp>
#include <memory/store_model.hpp>
#include <sim_line.hpp>

namespace holdfast::testing::sim {

/// The store: the model of the contract, with a clock of its own that may step, data that may be lost,
/// and an auditor who compares what is there before and after every request.
class sim_store {
public:
    explicit sim_store(context& run) noexcept : run_{run} {}

    /// `too_late`: the client has been told already that there was no answer.
    [[nodiscard]] engines::acquire_reply acquire(const engines::acquire_request& request,
                                                 clock::time_point sent_at, bool too_late);
    [[nodiscard]] engines::renew_reply renew(const engines::renew_request& request, bool too_late);
    [[nodiscard]] engines::release_reply release(const engines::release_request& request);
    /// Takes a hold of `lock` away, as an operator would. False: nobody holds it.
    bool revoke(std::size_t lock, std::uint32_t which);

    void step_clock(clock::duration by);
    /// Comes up empty. The tokens go on from above, as the contract demands.
    void lose_data();

    /// Names that may have become free.
    [[nodiscard]] std::vector<std::string> take_hints();
    /// Whom to tell that it is their turn.
    [[nodiscard]] std::vector<turn> take_turns() { return std::exchange(turns_, {}); }
    /// Changes when the lock becomes free or is granted.
    [[nodiscard]] std::uint64_t freedom(std::size_t lock) const noexcept { return freedom_[lock]; }
    [[nodiscard]] bool is_free(std::size_t lock);
    /// Changes when the lock is granted to somebody who keeps readers out.
    [[nodiscard]] std::uint64_t closings(std::size_t lock) const noexcept { return closings_[lock]; }
    [[nodiscard]] bool lets_readers_in(std::size_t lock);
    /// When it will forget this hold, rounded up to a millisecond.
    [[nodiscard]] std::optional<clock::time_point> expiry(const owner_id& owner, std::size_t lock);
    /// Whether it has what its client can know of.
    [[nodiscard]] bool has(const owner_id& owner, std::size_t lock);
    /// Complains if a client that has nothing to do any more left something here, other than by
    /// requests that came too late for anybody to know.
    void check_left_behind(const owner_id& client);

private:
    using holders = std::vector<holder_info>;

    [[nodiscard]] bool was_too_late(const owner_id& owner) const noexcept;
    [[nodiscard]] clock::time_point now() const noexcept { return run_.now() + offset_; }
    [[nodiscard]] holders look(const std::string& name) { return model_.inspect(name, now()).holders; }
    [[nodiscard]] std::chrono::milliseconds granted_ttl(std::chrono::milliseconds asked_for) const;
    [[nodiscard]] engines::acquire_reply decide(const engines::acquire_request& request,
                                                clock::time_point sent_at, bool too_late);
    void serve_line();
    void give(const std::string& name);
    [[nodiscard]] engines::turn_grant grant_unasked(const sim_line::place& to);
    void audit_others(std::string_view what, const owner_id& owner, const holders& before,
                      const holders& after);
    void audit_limits(const std::string& name, const holders& after);
    void audit_grant(const engines::acquire_request& request, const engines::acquire_reply& reply,
                     const holders& before);
    [[nodiscard]] engines::release_reply release_anybody(const engines::release_request& request);

    context& run_;
    engines::memory::store_model model_;
    sim_line line_;
    /// Who may be given a plain lock when it is released.
    std::array<sim_line, lock_count> wishes_;
    /// The lock that was given away instead of told to be free.
    std::string given_away_;
    std::vector<turn> turns_;
    clock::duration offset_{};
    bool went_back_{};
    std::uint64_t largest_token_{};
    std::uint64_t grants_{};
    std::array<std::uint64_t, lock_count> freedom_{};
    std::array<std::uint64_t, lock_count> closings_{};
    /// Granted or renewed by requests that came too late.
    std::vector<owner_id> beyond_knowledge_;
};

}  // namespace holdfast::testing::sim
