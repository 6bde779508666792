#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <core/actions.hpp>
#include <core/deadline_heap.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <core/places.hpp>
#include <core/release.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

using release_id = std::uint64_t;

struct unreleased_lock {
    std::string name;
    fencing_token token;
    failure error;
};

/// A lock on its way back to the store.
struct release_record {
    release_id id;
    engines::release_request request;
    release machine;
    fencing_token token;
    timer wake;
    /// The call that waits for it; zero: none, or told already.
    hold_id caller{};
    /// When this call is told at the latest.
    clock::time_point tell_by{clock::time_point::max()};
    clock::time_point held_since{};
    /// The lease was valid when its holder let go.
    bool held{};
    /// Of the renewal that asks why the store no longer has it.
    std::chrono::milliseconds shortest_ttl{};
    /// Why the store no longer has it.
    failure loss;
    /// The place whose queue waits for it before it contends again.
    place* awaited_at{};
    /// `unreleased` reports a refusal.
    bool at_shutdown{};

    release_record(release_id number, engines::release_request its_request, fencing_token its_token,
                   clock::time_point expires_by)
        : id{number},
          request{its_request},
          machine{std::move(its_request), expires_by},
          token{its_token},
          wake{number} {}
};

/// Everything that a client gives back to the store: holds that are released, and grants that nobody
/// wants. Each is sent until it is confirmed or pointless (see `release`). Its caller is told in time,
/// and its place is free then.
class releases {
public:
    releases(outbox& out, places& its_places, clock::duration request_timeout)
        : out_{out}, places_{its_places}, request_timeout_{request_timeout} {}

    /// To be sent. `expires_by` is when the store forgets the lock by itself.
    release_record& add(engines::release_request&& request, fencing_token token,
                        clock::time_point expires_by);
    void send(release_record& back, clock::time_point now);
    [[nodiscard]] bool has(const owner_id& owner) const;

    void on_reply(request_id id, const engines::release_reply& reply, clock::time_point now);
    /// False: the request does not ask why a lease is gone.
    bool on_reason(request_id id, const std::vector<engines::renew_reply>& replies,
                   clock::time_point now);
    void on_time(clock::time_point now);
    [[nodiscard]] clock::time_point wake_at() const noexcept { return timers_.next(); }

    /// Tells all callers how it went so far.
    void finish_calls(clock::time_point now);
    /// What was refused at shutdown, and what is not confirmed yet.
    [[nodiscard]] std::vector<unreleased_lock> unreleased() const;

    [[nodiscard]] std::size_t size() const noexcept { return releases_.size() + gone_.size(); }
    [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }

private:
    void on_timer(release_record& back, clock::time_point now);
    void finish_call(release_record& back, clock::time_point now);
    void ask_for_reason(release_record& back, clock::time_point now);
    void let_queue_go_on(release_record& back);
    void finish(release_record& back, clock::time_point now);

    outbox& out_;
    places& places_;
    clock::duration request_timeout_;
    deadline_heap timers_;
    std::vector<unreleased_lock> refused_at_shutdown_;
    node_memory memory_;
    std::pmr::unordered_map<release_id, release_record> releases_{&memory_};
    /// Their callers wait for the reason only.
    std::pmr::unordered_map<release_id, release_record> gone_{&memory_};
    std::pmr::unordered_map<request_id, release_id> requests_{&memory_};
};

}  // namespace holdfast::core
