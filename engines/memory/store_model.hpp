#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>
#include <records/rules.hpp>

namespace holdfast::engines::memory {

/// The contract of a store as a value: what a store that never fails would answer. One record for each
/// name, and the rules of `records/rules.hpp`.
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
    using record_map = std::map<std::string, records::record, std::less<>>;

    /// The record of a name, without what has ended.
    [[nodiscard]] record_map::iterator live(const std::string& name, clock::time_point now);
    /// The answer; hints, if the name has become free; forgets a record that says nothing.
    template <class Reply>
    Reply finish(record_map::iterator place, records::outcome<Reply>&& result);
    void forget_expired_now_and_then(clock::time_point now);
    void remember_revocation(const std::string& name);
    void remember_latch_request(const std::string& name);
    void forget_if_empty(record_map::iterator place);

    std::uint64_t last_token_;
    std::uint32_t requests_until_sweep_{requests_between_sweeps};
    record_map records_;
    /// The names with a revocation, and those of the counted latch requests; oldest first.
    std::deque<std::string> revoked_;
    std::deque<std::string> counted_;
    std::vector<std::string> hints_;
};

}  // namespace holdfast::engines::memory
