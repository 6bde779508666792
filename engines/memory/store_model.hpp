#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <common/hold_rules.hpp>
#include <holdfast/engine.hpp>

namespace holdfast::engines::memory {

/// The contract of a store as a value: what a store that never fails would answer.
///
/// Pure: no clock, thread or I/O. `now` is whatever the caller says; it may even step. Holds that have
/// expired at `now` are as good as gone, and are forgotten when their name is next looked at. Requests
/// are expected to have passed `check_request`; the model repeats only the checks that keep itself
/// sane.
///
/// Thread safety: none.
class store_model {
public:
    using wall_time = std::chrono::system_clock::time_point;

    /// Beyond these numbers the oldest is forgotten.
    static constexpr std::size_t remembered_revocations = 1024;
    static constexpr std::size_t remembered_latch_requests = 4096;
    /// So often are names that expired, and that nobody asked about since, forgotten.
    static constexpr std::uint32_t requests_between_sweeps = 1024;

    /// The first token is `token_floor + 1`.
    explicit store_model(std::uint64_t token_floor = 0);

    /// `wall` is what a later `inspect` reports as `since`.
    [[nodiscard]] acquire_reply acquire(const acquire_request& request, clock::time_point now,
                                        wall_time wall = {});
    /// All or none.
    [[nodiscard]] acquire_all_reply acquire_all(const std::vector<acquire_request>& all,
                                                clock::time_point now, wall_time wall);
    [[nodiscard]] renew_reply renew(const renew_request& request, clock::time_point now);
    /// Leaves `others_waiting` zero: who waits is not part of the model.
    [[nodiscard]] release_reply release(const release_request& request, clock::time_point now);
    [[nodiscard]] revoke_reply revoke(const revoke_request& request, clock::time_point now,
                                      wall_time wall = {});
    [[nodiscard]] lock_info inspect(std::string_view name, clock::time_point now);
    [[nodiscard]] list_reply list(const list_request& request, clock::time_point now);
    [[nodiscard]] latch_reply latch(const latch_request& request, clock::time_point now);

    /// The names that may have become free, or whose latch opened, since the last time this was asked;
    /// what expired is not among them.
    [[nodiscard]] std::vector<std::string> take_hints() { return std::exchange(hints_, {}); }

    /// How many holds there are, lingering ones included.
    [[nodiscard]] std::size_t hold_count(clock::time_point now) const;
    [[nodiscard]] bool has_holds_of(const owner_id& client, clock::time_point now) const;
    [[nodiscard]] std::uint64_t last_token() const noexcept { return last_token_; }

    /// Forgets everything, as a store that lost its data does. Tokens go on from `token_floor`.
    void reset(std::uint64_t token_floor);

private:
    struct latch_record {
        /// 0: it opened.
        std::uint32_t count{};
        clock::time_point expires{};
    };
    using latch_mark = std::pair<owner_id, std::string>;

    std::vector<hold_record>& live_holds(const std::string& name, clock::time_point now);
    void forget_if_free(const std::string& name);
    void forget_expired_now_and_then(clock::time_point now);
    [[nodiscard]] fencing_token take_tokens(std::uint32_t count, fencing_token floor);
    void remember_revocation(const revoke_request& request, wall_time wall);
    [[nodiscard]] const revocation_info* last_revocation(std::string_view name) const;
    [[nodiscard]] std::uint32_t latch_count(const std::string& name, clock::time_point now);
    [[nodiscard]] bool was_applied(const latch_request& request) const;
    void remember_latch_request(const latch_request& request);

    std::uint64_t last_token_;
    std::uint32_t requests_until_sweep_{requests_between_sweeps};
    std::map<std::string, std::vector<hold_record>, std::less<>> names_;
    std::map<std::string, revocation_info, std::less<>> revocations_;
    std::deque<std::string> revocation_order_;
    std::map<std::string, latch_record> latches_;
    std::set<latch_mark> latch_marks_;
    std::deque<latch_mark> latch_mark_order_;
    std::vector<std::string> hints_;
};

}  // namespace holdfast::engines::memory
