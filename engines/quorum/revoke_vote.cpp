#include <quorum/revoke_vote.hpp>

#include <quorum/holds.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using vote = core::quorum_tally::vote;
using verdict = core::quorum_tally::verdict;
using revoke_result = revoke_reply::outcome;

/// One revocation on its way through the members.
///
/// Thread safety: all functions, from any thread.
class revoke_vote : public std::enable_shared_from_this<revoke_vote> {
public:
    revoke_vote(member_set& members, revoke_request request, const call& limits,
                completion<revoke_reply> done)
        : members_{members},
          request_{std::move(request)},
          limits_{limits.deadline, caller::must_not_block},
          done_{std::move(done)},
          votes_{members.size()},
          failures_(members.size()) {}

    /// Members may know the owner by different attempts: each is inspected first.
    void ask(std::size_t member) {
        members_.ask(member, &operators_view::inspect, request_.name, limits_,
                     [self = shared_from_this(), member](const inspect_reply& reply) {
                         self->inspected(member, reply);
                     });
    }

private:
    void inspected(std::size_t member, const inspect_reply& reply) {
        if (reply.error) {
            answered(member, {revoke_result::failed, reply.error});
            return;
        }
        const auto& holders = reply.info.holders;
        const auto holder = std::find_if(holders.begin(), holders.end(), [&](const auto& each) {
            return outer_owner(each.owner) == request_.owner && each.token == request_.token;
        });
        if (holder == holders.end()) {
            answered(member, {revoke_result::gone, {}});
            return;
        }
        auto request = request_;
        request.owner = holder->owner;
        members_.ask(member, &operators_view::revoke, request, limits_,
                     [self = shared_from_this(), member](revoke_reply revoked) {
                         self->answered(member, std::move(revoked));
                     });
    }

    void answered(std::size_t member, revoke_reply reply) {
        completion<revoke_reply> done;
        revoke_reply answer;
        {
            const std::lock_guard lock{guard_};
            votes_.add(reply.result == revoke_result::revoked ? vote::done
                       : reply.result == revoke_result::gone  ? vote::gone
                                                              : vote::failed);
            failures_[member] = std::move(reply.error);
            const auto result = votes_.result();
            if (result == verdict::open || !done_) {
                return;
            }
            answer.result = result == verdict::done   ? revoke_result::revoked
                            : result == verdict::gone ? revoke_result::gone
                                                      : revoke_result::failed;
            if (result == verdict::failed) {
                answer.error = core::combined_failure(members_.names(), failures_);
            }
            done = std::exchange(done_, {});
        }
        done(std::move(answer));
    }

    member_set& members_;
    const revoke_request request_;
    const call limits_;
    completion<revoke_reply> done_;
    std::mutex guard_;
    core::quorum_tally votes_;
    std::vector<failure> failures_;
};

}  // namespace

void revoke_by_vote(member_set& members, revoke_request request, const call& limits,
                    completion<revoke_reply> done) {
    const auto vote =
        std::make_shared<revoke_vote>(members, std::move(request), limits, std::move(done));
    for (std::size_t member = 0; member < members.size(); ++member) {
        vote->ask(member);
    }
}

}  // namespace holdfast::engines::quorums
