#include <quorum/renew_vote.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using verdict = core::quorum_tally::verdict;
using vote = core::quorum_tally::vote;
using renew_result = renew_reply::outcome;

/// The votes on one lease of the batch.
struct lease_vote {
    hold_key key;
    claim_mode mode{};
    lock_kind kind{};
    /// The hold's, when the renewal was sent.
    std::uint64_t generation{};
    core::quorum_tally votes;
    /// Members that have lost it and are to get it again.
    std::vector<std::size_t> missing{};
    /// Members where it was revoked. They remember that.
    std::vector<bool> revoked;
    failure why_gone{};
    std::vector<failure> failures{};

    [[nodiscard]] bool unchanged(const hold& hold) const { return hold.generation == generation; }

    void count(std::size_t member, const renew_reply& reply) {
        votes.add(reply.result == renew_result::renewed ? vote::done
                  : reply.result == renew_result::gone  ? vote::gone
                                                        : vote::failed);
        if (reply.result != renew_result::gone) {
            failures[member] = reply.error;
            return;
        }
        revoked[member] = reply.error.code == errc::revoked;
        keep_reason(why_gone, reply.error);
        if (!revoked[member]) {
            missing.push_back(member);
        }
    }

    [[nodiscard]] renew_reply reply(const std::vector<std::string>& names) const {
        switch (votes.result()) {
            case verdict::done:
                return {renew_result::renewed, {}};
            case verdict::gone:
                return {renew_result::gone, why_gone};
            case verdict::open:
            case verdict::failed:
                break;
        }
        return {renew_result::failed, core::combined_failure(names, failures)};
    }
};

/// One batch of renewals on its way through the members.
///
/// Thread safety: the guard of the holds guards everything in it.
class renew_vote : public std::enable_shared_from_this<renew_vote> {
public:
    /// The requests get the owners that members know. Under the guard.
    renew_vote(quorum_parts& parts, std::vector<renew_request>& batch,
               completion<std::vector<renew_reply>> done)
        : parts_{parts}, done_{std::move(done)} {
        const auto members = parts.members.size();
        for (auto& request : batch) {
            const hold_key key{request.name, request.owner};
            const auto* const hold = parts.holds.find(key);
            leases_.push_back({key,
                               request.mode,
                               request.kind,
                               hold != nullptr ? hold->generation : 0,
                               core::quorum_tally{members},
                               {},
                               std::vector<bool>(members),
                               {},
                               std::vector<failure>(members)});
            request.owner = hold != nullptr ? hold->last_owner_at_members() : key.second;
        }
    }

    void answered(std::size_t member, std::vector<renew_reply> replies) {
        std::vector<renew_reply> answer;
        std::vector<repair> repairs;
        std::vector<member_claim> given_up;
        completion<std::vector<renew_reply>> done;
        replies.resize(leases_.size(), {renew_result::failed, shut_down});
        {
            const std::lock_guard lock{parts_.holds.guard};
            for (std::size_t index = 0; index < replies.size(); ++index) {
                count(leases_[index], member, replies[index], repairs, given_up);
            }
            const bool decided = std::none_of(leases_.begin(), leases_.end(), [](const auto& lease) {
                return lease.votes.result() == verdict::open;
            });
            if (decided && done_) {
                answer = reply();
                done = std::exchange(done_, {});
            }
        }
        // A member that still has it would keep it for the ttl: also one that was told of it after
        // the others lost it by force.
        parts_.leftovers.release_all(given_up);
        // Not a vote in this renewal: a member that has just been told does not prove that nobody
        // else was let in before.
        for (const auto& [missing, lease] : repairs) {
            parts_.repairs.restore(missing, lease->key, lease->generation, lease->mode);
        }
        if (done) {
            done(std::move(answer));
        }
    }

private:
    struct repair {
        std::size_t member;
        const lease_vote* lease;
    };

    void count(lease_vote& lease, std::size_t member, const renew_reply& reply,
               std::vector<repair>& repairs, std::vector<member_claim>& given_up) {
        auto* const hold = parts_.holds.find(lease.key);
        lease.count(member, reply);
        if (hold != nullptr && lease.unchanged(*hold) && reply.result != renew_result::failed) {
            hold->known_to[member] = reply.result == renew_result::renewed;
        }
        const auto result = lease.votes.result();
        if (result == verdict::done) {
            if (hold != nullptr && hold->held()) {
                hold->remember_for(hold->ttl, parts_.members.now());
            }
            for (const auto missing : std::exchange(lease.missing, {})) {
                repairs.push_back({missing, &lease});
            }
        }
        if (result == verdict::gone && hold != nullptr) {
            give_up(*hold, lease, given_up);
        }
    }

    /// The lease is lost: no majority has it. Nothing to do if that is known, or if the hold has
    /// changed since.
    void give_up(hold& hold, const lease_vote& lease, std::vector<member_claim>& given_up) const {
        if (!hold.held() || !lease.unchanged(hold) || hold.mode != lease.mode || hold.vote) {
            return;
        }
        hold.current = hold::state::releasing;
        ++hold.generation;
        hold.remember_for(hold.ttl, parts_.members.now());
        for (std::size_t member = 0; member < parts_.members.size(); ++member) {
            if (!lease.revoked[member]) {  // a repair may have reached the others since
                given_up.push_back(
                    {member, lease.key, hold.owner_at_members(), lease.mode, lease.kind});
            }
        }
    }

    [[nodiscard]] std::vector<renew_reply> reply() const {
        std::vector<renew_reply> replies;
        for (const auto& lease : leases_) {
            auto reply = lease.reply(parts_.members.names());
            const auto* const hold = parts_.holds.find(lease.key);
            reply.incomplete = reply.result == renew_result::renewed && hold != nullptr &&
                               parts_.holds.incomplete(*hold);
            replies.push_back(std::move(reply));
        }
        return replies;
    }

    quorum_parts& parts_;
    std::vector<lease_vote> leases_;
    completion<std::vector<renew_reply>> done_;
};

}  // namespace

void renew_by_vote(quorum_parts& parts, std::vector<renew_request> batch, const call& limits,
                   completion<std::vector<renew_reply>> done) {
    std::shared_ptr<renew_vote> vote;
    {
        const std::lock_guard lock{parts.holds.guard};
        vote = std::make_shared<renew_vote>(parts, batch, std::move(done));
    }
    const auto order = parts.members.asking_order();
    for (const auto member : order) {
        const auto share = member_set::share_of(limits, limits.deadline, member == order.back());
        parts.members.ask(member, &engine::renew, batch, share,
                          [vote, member](std::vector<renew_reply> replies) {
                              vote->answered(member, std::move(replies));
                          });
    }
}

}  // namespace holdfast::engines::quorums
