#include <quorum/release_vote.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using std::chrono::milliseconds;
using verdict = core::quorum_tally::verdict;
using vote = core::quorum_tally::vote;
using release_result = release_reply::outcome;

/// One release on its way through the members.
///
/// Thread safety: the guard of the holds guards everything in it.
class release_vote {
public:
    release_vote(quorum_parts& parts, const release_request& request, completion<release_reply> done)
        : parts_{parts},
          claim_{0, {request.name, request.owner}, {}, request.mode, request.kind},
          votes_{parts.members.size()},
          failures_(parts.members.size()),
          done_{std::move(done)} {}

    /// From now on nothing makes the claim anew. The request gets the owner that members know.
    void begin(release_request& request) {
        std::vector<member_claim> leftovers;
        {
            const std::lock_guard lock{parts_.holds.guard};
            request.owner = claim_.owner = parts_.holds.owner_at_members(claim_.key);
            if (auto* const hold = parts_.holds.find(claim_.key)) {
                hold->current = hold::state::releasing;
                generation_ = ++hold->generation;
                hold->remember_for(std::max(hold->ttl, request.linger), parts_.members.now());
                attempt_ = hold->attempt;
                ttl_ = hold->ttl;
                leaves_leftovers_ = request.linger.count() == 0;
                if (hold->vote) {
                    hold->vote->stop_raising();
                }
            }
            leftovers = parts_.leftovers.take(&claim_.key);
        }
        parts_.leftovers.release_all(leftovers);
    }

    [[nodiscard]] clock::duration member_timeout() const {
        return parts_.members.timeout(ttl_.count() > 0 ? ttl_ : std::chrono::hours{1});
    }

    void answered(std::size_t member, release_reply reply) {
        {
            const std::lock_guard lock{parts_.holds.guard};
            votes_.add(reply.result == release_result::released ? vote::done
                       : reply.result == release_result::gone   ? vote::gone
                                                                : vote::failed);
            others_waiting_ = std::max(others_waiting_, reply.others_waiting);
            any_released_ = any_released_ || reply.result == release_result::released;
            if (reply.result == release_result::gone) {
                keep_reason(why_gone_, reply.error);
            } else {
                failures_[member] = std::move(reply.error);
            }
            if (reply.result == release_result::failed) {
                missed_.push_back(member);
                keep_leftovers();
            }
        }
        conclude();
    }

    void all_asked() {
        {
            const std::lock_guard lock{parts_.holds.guard};
            asking_ = false;
        }
        conclude();
    }

    [[nodiscard]] bool decided() const {
        const std::lock_guard lock{parts_.holds.guard};
        return !done_;
    }

private:
    /// Tells the caller the result once it is decided.
    void conclude() {
        completion<release_reply> done;
        release_reply answer;
        {
            const std::lock_guard lock{parts_.holds.guard};
            const auto result = votes_.result();
            if (result == verdict::open || asking_ || !done_) {
                return;
            }
            if (result == verdict::failed) {
                answer.error = core::combined_failure(parts_.members.names(), failures_);
                if (any_released_) {
                    answer.error.code = errc::outcome_unknown;
                }
            } else {
                forget_hold();
                answer = result == verdict::done
                             ? release_reply{release_result::released, others_waiting_, {}}
                             : release_reply{release_result::gone, others_waiting_, why_gone_};
            }
            done = std::exchange(done_, {});
            keep_leftovers();
        }
        done(std::move(answer));
    }

    /// A majority is free of it. Under the guard.
    void forget_hold() {
        auto* const hold = parts_.holds.find(claim_.key);
        if (hold == nullptr || hold->current != hold::state::releasing ||
            hold->generation != generation_) {
            return;
        }
        if (hold->unanswered == 0 && !hold->vote) {
            parts_.holds.erase(claim_.key);
            return;
        }
        // What may still arrive at a member must not meet the same owner again.
        ++hold->attempt;
        hold->current = hold::state::idle;
        hold->remember_for({}, parts_.members.now());
    }

    /// A majority is free of it; the others are told again when they answer. Under the guard.
    void keep_leftovers() {
        const auto result = votes_.result();
        if (done_ || missed_.empty() || !leaves_leftovers_ || ttl_.count() == 0 ||
            (result != verdict::done && result != verdict::gone) || parts_.leftovers.full()) {
            return;
        }
        const auto until = parts_.members.now() + ttl_;
        auto* hold = parts_.holds.find(claim_.key);
        if (hold == nullptr) {
            hold = &parts_.holds.entry(claim_.key);
            hold->attempt = attempt_;
            hold->forget_at = until;
        } else if (hold->forget_at != clock::time_point::max()) {
            hold->forget_at = std::max(hold->forget_at, until);
        }
        for (const auto member : std::exchange(missed_, {})) {
            claim_.member = member;
            parts_.leftovers.keep(claim_, until, *hold);
        }
    }

    quorum_parts& parts_;
    /// `owner`: as members know it. `member`: any.
    member_claim claim_;
    core::quorum_tally votes_;
    std::vector<failure> failures_;
    completion<release_reply> done_;
    std::uint64_t generation_{};
    std::uint32_t attempt_{};
    /// Zero if the owner is not known.
    milliseconds ttl_{};
    bool leaves_leftovers_{};
    /// Members that have not confirmed it.
    std::vector<std::size_t> missed_{};
    std::uint32_t others_waiting_{};
    failure why_gone_{};
    bool any_released_{};
    /// Not every member has been asked yet. The caller must not learn of the end before, or this
    /// release would reach a member late and take what the same owner asks for next.
    bool asking_{true};
};

}  // namespace

void release_by_vote(quorum_parts& parts, release_request request, const call& limits,
                     completion<release_reply> done) {
    auto& members = parts.members;
    const auto vote = std::make_shared<release_vote>(parts, request, std::move(done));
    vote->begin(request);
    const auto order = members.asking_order();
    const auto deadline = std::min(limits.deadline, members.now() + vote->member_timeout());
    member_set::own_reading reading{members, limits};
    for (const auto member : order) {
        members.ask(member, &engine::release, request, {deadline, caller::must_not_block},
                    [vote, member](release_reply reply) { vote->answered(member, std::move(reply)); });
    }
    vote->all_asked();
    const auto decided = [&] { return vote->decided(); };
    reading.await(deadline, decided, decided);
}

}  // namespace holdfast::engines::quorums
