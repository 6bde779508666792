#include <quorum/engine.hpp>

#include <common/validate.hpp>
#include <quorum/acquire_vote.hpp>
#include <quorum/address.hpp>
#include <quorum/examination.hpp>
#include <quorum/inspection.hpp>
#include <quorum/listing.hpp>
#include <quorum/release_vote.hpp>
#include <quorum/renew_vote.hpp>
#include <quorum/revoke_vote.hpp>

namespace holdfast::engines {

std::unique_ptr<engine> v0::make_quorum(std::vector<std::unique_ptr<engine>> members,
                                        const quorum_options& options) {
    std::vector<std::string> addresses;
    std::vector<std::string> identities;
    for (const auto& each : members) {
        addresses.push_back(each->address());
        identities.push_back(each->store_identity());
    }
    return std::make_unique<quorums::quorum_engine>(std::move(members), options, addresses,
                                                    std::move(identities));
}

}  // namespace holdfast::engines

namespace holdfast::engines::quorums {

quorum_engine::quorum_engine(std::vector<std::unique_ptr<engine>> members, quorum_options options,
                             const std::vector<std::string>& addresses,
                             std::vector<std::string> identities)
    : address_{text_of(options, addresses)},
      identity_{identity_of(std::move(identities))},
      parts_{{std::move(members), std::move(options), address_}} {
    // A quorum has no latches, permits or lines, and takes locks one by one: see `member_set`.
    const auto& all = parts_.members;
    offers_.watching = all.all_have(&abilities::watching) ? this : nullptr;
    offers_.operators = all.all_have(&abilities::operators) ? this : nullptr;
    offers_.votes = all.all_have(&abilities::votes) ? this : nullptr;
    offers_.examination = this;
}

quorum_engine::~quorum_engine() {
    helper_ = {};
    parts_.leftovers.end();  // members that leave give what is under way a moment
    // Completions of what is pending find everything in place but the members.
    parts_.members.leave();
}

void quorum_engine::attach(client_callbacks callbacks) {
    parts_.members.attach(callbacks);
}

void quorum_engine::acquire(acquire_request request, call limits, completion<acquire_reply> done) {
    const auto& promises = parts_.members.promises();
    failure bad;
    if (request.mode == claim_mode::permit) {
        bad = {errc::guarantee_not_met, promises.why_no_permits};
    } else if (request.kind == lock_kind::fair_mutex) {
        bad = {errc::guarantee_not_met,
               "a quorum has no fair locks: its members' lines may differ in order"};
    } else if (request.mode == claim_mode::shared && !promises.shared) {
        bad = {errc::guarantee_not_met, "not all members of this quorum have shared locks"};
    } else if (request.owner.sequence < 0 || request.owner.sequence > largest_sequence) {
        bad = {errc::invalid_argument, "the owner's number is out of range for a quorum"};
    }
    auto malformed = check_request(request, promises);
    if (accepts(malformed ? std::move(malformed) : std::move(bad), limits, done)) {
        acquire_by_vote(parts_, std::move(request), limits, std::move(done));
    }
}

void quorum_engine::renew(std::vector<renew_request> batch, call limits,
                          completion<std::vector<renew_reply>> done) {
    if (auto late = parts_.members.lateness(limits); late || batch.empty()) {
        done(std::vector<renew_reply>(batch.size(), {renew_reply::outcome::failed, std::move(late)}));
        return;
    }
    renew_by_vote(parts_, std::move(batch), limits, std::move(done));
}

void quorum_engine::release(release_request request, call limits, completion<release_reply> done) {
    if (accepts(check_request(request, promises()), limits, done)) {
        release_by_vote(parts_, std::move(request), limits, std::move(done));
    }
}

void quorum_engine::revoke(revoke_request request, call limits, completion<revoke_reply> done) {
    if (accepts(check_request(request, promises()), limits, done)) {
        revoke_by_vote(parts_.members, std::move(request), limits, std::move(done));
    }
}

void quorum_engine::inspect(std::string name, call limits, completion<inspect_reply> done) {
    if (accepts(check_name(name), limits, done)) {
        inspect_all(parts_.members, std::move(name), limits, std::move(done));
    }
}

void quorum_engine::list(list_request request, call limits, completion<list_reply> done) {
    if (accepts(check_request(request, promises()), limits, done)) {
        list_all(parts_.members, std::move(request), limits, std::move(done));
    }
}

void quorum_engine::examine(call limits, completion<examine_reply> done) {
    examine_all(parts_.members, limits, std::move(done));
}

template <class Reply>
bool quorum_engine::accepts(failure bad, const call& limits, const completion<Reply>& done) const {
    if (!bad) {
        bad = parts_.members.lateness(limits);
    }
    if (bad) {
        Reply reply;
        reply.error = std::move(bad);
        done(std::move(reply));
        return false;
    }
    return true;
}

std::unique_ptr<subscription> quorum_engine::watch(std::string name, lock_kind kind,
                                                   std::function<void()> hint) {
    return parts_.members.watch(name, kind, std::move(hint));
}

}  // namespace holdfast::engines::quorums
