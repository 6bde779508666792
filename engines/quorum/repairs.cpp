#include <quorum/repairs.hpp>

#include <utility>

namespace holdfast::engines::quorums {

void repairs::restore(std::size_t member, const hold_key& key, std::uint64_t generation,
                      claim_mode mode) {
    acquire_request request;
    {
        const std::lock_guard lock{holds_.guard};
        auto* const hold = holds_.find(key);
        if (hold == nullptr || !hold->held() || hold->generation != generation || hold->vote ||
            hold->mode != mode) {
            return;
        }
        request.owner = hold->owner_at_members();
        request.name = key.first;
        request.mode = mode;
        request.ttl = hold->ttl;
        request.kind = hold->kind;
        announce(*hold, member, request);
    }
    ask(member, key, request);
}

void repairs::restore_share(std::size_t member, const hold_key& key, acquire_request upgrade) {
    upgrade.mode = claim_mode::shared;
    {
        const std::lock_guard lock{holds_.guard};
        auto* const hold = holds_.find(key);
        if (hold == nullptr || !hold->held()) {
            return;  // The share is released, too.
        }
        announce(*hold, member, upgrade);
    }
    ask(member, key, upgrade);
}

/// The request has the tokens of the hold. Under the guard.
void repairs::announce(hold& hold, std::size_t member, acquire_request& request) const {
    request.token_floor = members_.tokens_agree() ? hold.token : fencing_token{};
    request.token_count = hold.token_count;
    ++hold.unanswered;
    ++hold.being_repaired[member];
}

void repairs::ask(std::size_t member, const hold_key& key, const acquire_request& request) {
    const member_claim claim{member, key, request.owner, request.mode, request.kind};
    const call limits{members_.now() + quiet_timeout, caller::must_not_block};
    members_.ask(member, &engine::acquire, request, limits,
                 [this, claim](const acquire_reply& reply) { answered(claim, reply); });
    bool released_meanwhile = true;
    {
        const std::lock_guard lock{holds_.guard};
        if (auto* const hold = holds_.find(key)) {
            auto& being = hold->being_repaired[member];
            being -= being > 0 ? 1 : 0;
            released_meanwhile = !hold->held();
        }
        if (released_meanwhile) {
            leftovers_.announce_release(claim);
        }
    }
    if (released_meanwhile) {
        // The release may have overtaken this request.
        leftovers_.release_announced(claim);
    }
}

void repairs::answered(const member_claim& claim, const acquire_reply& reply) {
    {
        const std::lock_guard lock{holds_.guard};
        if (!holds_.on_reply(claim, reply)) {
            return;
        }
        leftovers_.announce_release(claim);
    }
    // The request reached the member after the release: nobody else would give it back.
    leftovers_.release_announced(claim);
}

}  // namespace holdfast::engines::quorums
