#include <quorum/holds.hpp>

namespace holdfast::engines::quorums {

hold& hold_table::entry(const hold_key& key) {
    constexpr std::uint32_t entries_between_sweeps = 1024;
    if (--entries_until_sweep_ == 0) {
        entries_until_sweep_ = entries_between_sweeps;
        std::erase_if(holds_, [now = members_.now()](const auto& entry) {
            return !entry.second.vote && entry.second.forget_at <= now;
        });
    }
    return holds_.try_emplace(key, key.second, members_.size()).first->second;
}

hold* hold_table::find(const hold_key& key) {
    const auto found = holds_.find(key);
    return found == holds_.end() ? nullptr : &found->second;
}

owner_id hold_table::owner_at_members(const hold_key& key) {
    const auto* const hold = find(key);
    return hold != nullptr ? hold->owner_at_members() : key.second;
}

bool hold_table::incomplete(const hold& hold) const {
    for (std::size_t member = 0; member < members_.size(); ++member) {
        if (!hold.known_to[member] && !members_.suspect(member)) {
            return true;
        }
    }
    return false;
}

void hold_table::on_request(const hold_key& key) {
    if (auto* const hold = find(key)) {
        ++hold->unanswered;
    }
}

void hold_table::on_release_sent(const hold_key& key) {
    if (auto* const hold = find(key)) {
        hold->request_answered();
    }
}

bool hold_table::on_reply(const member_claim& claim, const acquire_reply& reply) {
    const bool granted = reply.result == acquire_reply::outcome::granted;
    auto* const hold = find(claim.key);
    if (hold == nullptr) {
        return granted;
    }
    hold->request_answered();
    if (claim.mode == claim_mode::shared && reply.error.code == errc::outcome_unknown) {
        hold->unsteady[claim.member] = true;
    }
    const bool same_attempt = hold->owner_at_members() == claim.owner;
    if (same_attempt) {
        hold->known_to[claim.member] = granted;
    }
    return granted && !(same_attempt && hold->held());
}

}  // namespace holdfast::engines::quorums
