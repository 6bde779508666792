#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include <core/contest.hpp>
#include <core/deadline_heap.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <core/places.hpp>
#include <core/releases.hpp>
#include <core/renewal.hpp>
#include <core/shared.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

/// What a caller holds, or held and has not let go of yet.
struct hold_record {
    /// The store's grant: name, owner and terms are there.
    renewal::tenure tenure;
    fencing_token token{};
    clock::time_point since{};
    /// Ends it at its `max_hold`.
    timer longest;
    /// When the store forgets it by itself; known once it is lost.
    clock::time_point expires_by{};
    claim_mode mode{};
    bool lost{};
    /// Why, once it is lost.
    failure loss;
    /// Its holder was told of the loss.
    bool told{};
    /// Its holder let go of it, and the lock was offered to this waiter; zero: it has a holder. It goes
    /// by its last holder's number until somebody takes it.
    waiter_id offered_to{};
    /// A downgrade was sent and not refused for certain: the store may let readers in.
    bool downgraded{};
    /// A request to acquire or convert it was never answered: it may still reach the store.
    bool unanswered{};
    /// Somebody else had it when it was asked for.
    bool contended{};
    /// The place whose queue it can be handed over to.
    place* serves{};

    [[nodiscard]] hold_id id() const noexcept { return tenure.id(); }
    [[nodiscard]] bool vacant() const noexcept { return offered_to != 0; }
    [[nodiscard]] bool held() const noexcept { return !lost && !vacant(); }
    [[nodiscard]] const std::string& name() const noexcept { return *tenure.name; }
    [[nodiscard]] const terms& its_terms() const noexcept { return *tenure.terms; }
    [[nodiscard]] clock::time_point ends_at() const noexcept {
        const auto& longest_hold = its_terms().max_hold;
        return longest_hold ? since + *longest_hold : clock::time_point::max();
    }
    [[nodiscard]] clock::time_point valid_until() const noexcept {
        return std::min(tenure.valid_until(), ends_at());
    }
    /// Changes nothing: no renewal shortens a lease.
    [[nodiscard]] engines::renew_request question() const {
        return {name(), tenure.mode, tenure.owner, its_terms().shortest_ttl, tenure.kind};
    }
    [[nodiscard]] engines::release_request give_back(std::chrono::milliseconds linger = {}) const {
        return {name(), mode, tenure.owner, linger, tenure.kind, contended};
    }
};

/// The holds of a client. Renews them, tells their holders of losses, and gives back what nobody may
/// hold any more.
///
///     held ── release ─▶ given back            held ── deadline, gone, revoked ─▶ lost
///     held ── offer ─▶ vacant ── taken ─▶ held  held ── max_hold, abandoned ─▶ lost and given back
///                        └── nobody takes it ─▶ given back
///
/// A lost hold stays on record until its holder lets go.
class holds {
public:
    holds(outbox& out, places& its_places, releases& its_releases, clock::duration request_timeout)
        : out_{out}, places_{its_places}, releases_{its_releases}, request_timeout_{request_timeout} {}

    /// The store has granted the lock to a contest. It is renewed from now on.
    hold_record& add(hold_id id, const contest& granted, shared_terms its_terms, bool incomplete);
    /// The call of this number holds it from now on.
    void begin(hold_record& hold, fencing_token token, event_kind kind, clock::time_point waited_since,
               clock::time_point now);
    /// It goes by the next holder's number and terms from now on.
    void pass_on(hold_record& hold, hold_id next, const shared_terms& its_terms);
    [[nodiscard]] hold_record* find(hold_id id);

    /// Its holder lets go of it and waits for the store's answer.
    void release(hold_record& hold, std::chrono::milliseconds linger, clock::time_point now);
    /// Its holder lets go, and somebody here gets it: the store is not asked.
    void end_without_release(hold_record& hold, clock::time_point now);
    /// Nobody holds it or is to be told.
    void give_back(hold_record& hold, clock::time_point now);
    /// Gives back a grant to an owner that waits no more, or has released it: an old request may have
    /// arrived late. Does nothing if the owner holds the lock, or if its release is under way.
    void give_back_unused(engines::release_request request, clock::time_point expires_by,
                          clock::time_point now);
    void lose(hold_record& hold, const failure& reason, clock::time_point now);
    /// The store no longer has it. The lease is over at once; `tell` follows when it is known why.
    void end(hold_record& hold, const failure& reason, clock::time_point now);
    /// Tells its holder that it is lost.
    void tell(hold_record& hold, const failure& reason, clock::time_point now);
    /// Loses it if its deadline has passed.
    void check_deadline(hold_record& hold, clock::time_point now);
    /// Ends a hold whose lease the store still has.
    void lose_and_give_back(hold_record& hold, const failure& reason, clock::time_point now);
    /// Its holder has let go of a lost hold, or will never do so.
    void forget(const hold_record& hold) { holds_.erase(hold.id()); }
    /// Refused releases are reported from now on.
    void shut_down() noexcept { shut_down_ = true; }
    void lose_all(const failure& reason, clock::time_point now);

    void change_mode(hold_record& hold, claim_mode mode, clock::time_point now) {
        renewal_.change_mode(hold.tenure, mode, now);
    }
    void complete_soon(hold_record& hold, clock::time_point now) {
        renewal_.complete_soon(hold.tenure, now);
    }
    /// When the store will have forgotten a lease at the latest: a renewal that is under way may reach
    /// it at any moment until its request times out.
    [[nodiscard]] clock::time_point gone_by(const terms& its_terms, clock::time_point now) const {
        return now + request_timeout_ + its_terms.ttl;
    }

    void on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                          clock::time_point now);
    /// Any of them may have been taken away.
    void suspect_all(clock::time_point now);
    void run_renewals(clock::time_point now);
    void end_overlong(clock::time_point now);
    [[nodiscard]] clock::time_point wake_at() const noexcept {
        return std::min(renewal_.wake_at(), longest_.next());
    }

    [[nodiscard]] std::size_t size() const noexcept { return holds_.size(); }
    [[nodiscard]] std::size_t tenures() const noexcept { return renewal_.size(); }
    [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }

private:
    struct renew_request {
        clock::time_point sent_at;
        std::vector<tenure_id> tenures;
    };

    release_record& begin_release(hold_record& hold, std::chrono::milliseconds linger,
                                  clock::time_point now);
    void detach(hold_record& hold);
    void apply(const renewal::event& news, clock::time_point now);

    outbox& out_;
    places& places_;
    releases& releases_;
    clock::duration request_timeout_;
    bool shut_down_{};
    renewal renewal_;
    deadline_heap longest_;
    node_memory memory_;
    std::pmr::unordered_map<hold_id, hold_record> holds_{&memory_};
    std::pmr::unordered_map<request_id, renew_request> requests_{&memory_};
};

}  // namespace holdfast::core
