#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>

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
class conversions {
public:
    conversions(outbox& out, places& its_places, holds& its_holds, clock::duration request_timeout)
        : out_{out}, places_{its_places}, holds_{its_holds}, request_timeout_{request_timeout} {}

    void start(hold_id id, claim_mode to, clock::time_point now);
    /// False: the request is no conversion.
    bool on_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now);
    [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }

private:
    struct conversion {
        hold_id hold{};
        claim_mode to{};
        std::uint32_t attempts{};
        /// Gives the lease back if it is gone when the answer comes.
        engines::release_request give_back;
        clock::time_point gone_by;
    };

    void send(const hold_record& hold, claim_mode to, std::uint32_t attempts, clock::time_point now);
    void finish(hold_id id, failure reason) { out_.add(finish_convert{id, std::move(reason), {}}); }
    void after_the_end(const conversion& request, const engines::acquire_reply& reply,
                       clock::time_point now);
    [[nodiscard]] bool settle_refusal(hold_record& hold, const conversion& request,
                                      const engines::acquire_reply& reply, clock::time_point now);
    void settle(hold_record& hold, claim_mode to, const engines::acquire_reply& reply,
                clock::time_point now);

    outbox& out_;
    places& places_;
    holds& holds_;
    clock::duration request_timeout_;
    node_memory memory_;
    std::pmr::unordered_map<request_id, conversion> requests_{&memory_};
};

}  // namespace holdfast::core
