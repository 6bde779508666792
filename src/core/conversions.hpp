#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include <core/actions.hpp>
#include <core/holds.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

/// Changes holds from exclusive to shared and back, on behalf of their holders.
///
/// A request without an answer leaves doubt. Asking for a share again does no harm, so a downgrade is
/// repeated; its holder keeps a share in any case. An upgrade is not repeated, and a hold with an
/// unanswered request is never upgraded: the old request for a share, arriving late, would take the
/// exclusive lock away unnoticed.
///
/// A store that no longer has the lease says so, but not why. It remembers a revocation, and tells a
/// renewal.
class conversions {
public:
    conversions(outbox& out, places& its_places, holds& its_holds, clock::duration request_timeout)
        : out_{out}, places_{its_places}, holds_{its_holds}, request_timeout_{request_timeout} {}

    void start(hold_id id, claim_mode to, clock::time_point now);
    /// False: the request is no conversion.
    bool on_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now);
    /// False: the request does not ask why a lease is gone.
    bool on_reason(request_id id, const std::vector<engines::renew_reply>& replies,
                   clock::time_point now);
    [[nodiscard]] std::size_t requests() const noexcept { return requests_.size() + losses_.size(); }

private:
    struct conversion {
        hold_id hold{};
        claim_mode to{};
        std::uint32_t attempts{};
        /// When its caller is told at the latest.
        clock::time_point answer_by;
        /// Gives the lease back if it is gone when the answer comes.
        engines::release_request give_back;
        clock::time_point gone_by;
    };

    struct unexplained_loss {
        hold_id hold{};
        failure reason;
    };

    void send(const hold_record& hold, claim_mode to, std::uint32_t attempts,
              clock::time_point answer_by, clock::time_point now);
    void finish(hold_id id, failure reason) { out_.add(finish_convert{id, std::move(reason), {}}); }
    void after_the_end(const conversion& request, const engines::acquire_reply& reply,
                       clock::time_point now);
    [[nodiscard]] bool settle_refusal(hold_record& hold, const conversion& request,
                                      const engines::acquire_reply& reply, clock::time_point now);
    void ask_for_reason(hold_record& hold, failure reason, clock::time_point answer_by,
                        clock::time_point now);
    void settle(hold_record& hold, claim_mode to, const engines::acquire_reply& reply,
                clock::time_point now);

    outbox& out_;
    places& places_;
    holds& holds_;
    clock::duration request_timeout_;
    node_memory memory_;
    std::pmr::unordered_map<request_id, conversion> requests_{&memory_};
    std::unordered_map<request_id, unexplained_loss> losses_;
};

}  // namespace holdfast::core
