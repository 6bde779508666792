#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <common/gathering.hpp>
#include <core/quorum.hpp>
#include <holdfast/quorum.hpp>
#include <quorum/holds.hpp>
#include <threading/primitives.hpp>

namespace holdfast::engines::quorums {

/// One acquisition's way through the members: the machine, and what it is about.
struct round {
    core::quorum_round machine;
    hold_key key;
    /// As members get it.
    acquire_request request;
    core::round_purpose purpose{};
    call how;
    clock::duration member_timeout{};
    completion<acquire_reply> done;
    /// Who granted it, to notice two members that are one.
    std::vector<std::string> instances;
    /// Members whose vote cannot count for reasons that were there before the round.
    std::vector<bool> unsteady;
    std::deque<core::quorum_round::action> to_do{};
    bool performing{};
};

struct renewal;
struct renewal_item;
struct giving_back;
struct inspection;
struct revocation;
struct listing;

/// A store made of stores. Decisions are the core's (`core::quorum_round`, `core::quorum_tally`); this
/// asks the members and keeps what must be known about each owner between requests (`hold`).
///
/// Members are asked with `must_not_block`, so all of them are at work at the same time. A caller that
/// may block reads their answers itself where they leave that to it (`gathering`): no thread is woken,
/// then.
///
/// Thread safety: as every engine. One mutex guards all that changes; it is never held while a member
/// or a caller is called.
class quorum_engine final : public engine,
                            public watching,
                            public operators_view,
                            public examination,
                            public votes {
public:
    quorum_engine(std::vector<std::unique_ptr<engine>> members, quorum_options options,
                  std::string address, std::string identity);
    ~quorum_engine() override;

    /// From now on a thread tells members again what they did not confirm to be rid of. Otherwise they
    /// are told with the next request, or at the end. Called once, before anything is asked.
    void repeat_releases() { repeats_ = true; }

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] std::string store_identity() const override { return identity_; }
    /// What all members offer, as far as it survives being put to the vote.
    [[nodiscard]] abilities offers() noexcept override { return offers_; }
    void attach(client_callbacks callbacks) override;
    void acquire(acquire_request request, call how, completion<acquire_reply> done) override;
    void renew(std::vector<renew_request> batch, call how,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call how, completion<release_reply> done) override;
    void revoke(revoke_request request, call how, completion<revoke_reply> done) override;
    void inspect(std::string name, call how, completion<inspect_reply> done) override;
    void list(list_request request, call how, completion<list_reply> done) override;
    void examine(call how, completion<examine_reply> done) override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                      std::function<void()> hint) override;
    /// Which of its members answer says nothing about a quorum that is a member of another.
    [[nodiscard]] store_instance instance(const std::string&) const override { return {}; }

private:
    using action = core::quorum_round::action;
    using round_ptr = std::shared_ptr<round>;

    // engine.cpp
    [[nodiscard]] clock::time_point now() const { return options_.environment.now(); }
    [[nodiscard]] clock::duration member_timeout(std::chrono::milliseconds ttl) const;
    [[nodiscard]] clock::time_point query_deadline(const call& how) const;
    [[nodiscard]] failure lateness(const call& how) const;
    void note_answer(std::size_t member, const failure& error);
    /// Calls a member, unless the engine is being destroyed. False: it was not called.
    template <class Call>
    bool use(std::size_t member, const Call& what);
    /// As `how`, for one of the members: only the last that is trusted keeps its caller busy.
    [[nodiscard]] call share_of(const call& how, clock::time_point deadline, bool last) const;
    [[nodiscard]] std::vector<std::size_t> asking_order();
    class member_answers;

    // acquiring.cpp
    [[nodiscard]] failure refusal(const acquire_request& request, const call& how) const;
    [[nodiscard]] round_ptr prepare(acquire_request request, call how, completion<acquire_reply> done,
                                    hold& of);
    void classify(round& what, hold& of, core::quorum_round::settings& how);
    void enqueue(const round_ptr& what, core::quorum_round::actions actions);
    void perform(const round_ptr& what);
    void execute(const round_ptr& what, const action& next);
    void ask(const round_ptr& what, std::size_t member, fencing_token floor);
    void undo(const round_ptr& what, std::size_t member);
    void answered(const round_ptr& what, std::size_t member, const acquire_reply& reply);
    [[nodiscard]] failure uncounted(round& what, std::size_t member, const store_instance& from);
    [[nodiscard]] std::size_t same_instance(round& what, std::size_t member,
                                            const std::string& id) const;
    void settle(round& what);
    void settle_loss(round& what, hold& of);
    void finish(const round_ptr& what);
    void forget_now_and_then();
    /// Whether a member that answers may not have the claim. Under the mutex.
    [[nodiscard]] bool incomplete(const hold& of) const;

    // holding.cpp
    void renewals_answered(const std::shared_ptr<renewal>& what, std::size_t member,
                           std::vector<renew_reply> replies);
    [[nodiscard]] bool give_up(hold& of, const renewal_item& what);
    void repair(std::size_t member, const hold_key& key, std::uint64_t generation, claim_mode mode);
    void ask_aside(std::size_t member, const hold_key& key, acquire_request request);
    void answered_aside(std::size_t member, const hold_key& key, const owner_id& owner, claim_mode mode,
                        lock_kind kind, const acquire_reply& reply);
    void release_announced(std::size_t member, const hold_key& key, const owner_id& owner,
                           claim_mode mode, lock_kind kind);
    void release_quietly(std::size_t member, const hold_key& key, const owner_id& owner,
                         claim_mode mode, lock_kind kind);
    [[nodiscard]] std::vector<leftover> take_leftovers(const hold_key* asking);
    void give_back(const std::vector<leftover>& all);
    void keep_leftover(leftover one, hold& of);
    void start_repeating() noexcept;
    void tell_again(const std::stop_token& stop);
    void keep_leftovers_of(giving_back& what);
    [[nodiscard]] std::chrono::milliseconds begin_letting_go(giving_back& what,
                                                             release_request& request);
    void release_answered(giving_back& what, std::size_t member, release_reply reply);
    void conclude(giving_back& what);
    void let_go(const hold_key& key, std::uint64_t generation);
    void remember_until_over(hold& of) const;
    [[nodiscard]] owner_id owner_at_members(const hold_key& key) const;

    // queries.cpp
    void inspect_members(std::string name, call how, std::function<void(inspection&)> done);
    void inspected(inspection& what, std::size_t member, inspect_reply reply);
    void revoke_what_is_there(const std::shared_ptr<revocation>& what, std::size_t member,
                              const inspect_reply& seen);
    void revocation_answered(revocation& what, std::size_t member, revoke_reply reply);
    void list_page(const std::shared_ptr<listing>& what);
    void list_names(const std::shared_ptr<listing>& what, const list_reply& page);

    const quorum_options options_;
    const std::string address_;
    const std::string identity_;
    std::vector<std::unique_ptr<engine>> members_;
    std::vector<std::string> names_;
    guarantees promises_;
    abilities offers_;
    bool tokens_agree_{};

    mutable std::mutex guard_;
    std::vector<bool> suspects_;
    hold_table holds_;
    std::vector<leftover> leftovers_;
    bool repeats_{};
    /// There is a leftover.
    std::condition_variable_any missed_;
    threading::jthread repeater_;
    std::uint64_t last_token_{};
    std::uint32_t requests_until_sweep_;

    std::mutex closing_guard_;
    std::condition_variable unused_;
    std::size_t uses_{};
    bool closing_{};
};

/// While it exists, a caller that may block reads the members' answers itself, as far as they leave
/// that to it.
class quorum_engine::member_answers {
public:
    member_answers(quorum_engine& of, const call& how) : of_{of} {
        if (how.from == caller::may_block) {
            gathered_.emplace();
        }
    }

    /// Until `decided`. Afterwards the rest is in no hurry if it is `settled`: what is still to come
    /// changes nothing. Both are asked under the mutex.
    template <class Decided, class Settled>
    void await(clock::time_point deadline, const Decided& decided, const Settled& settled) {
        // Those who read for the other members do not wake this thread: it must be able to decide
        // alone.
        if (!gathered_ || gathered_->size() < core::majority_of(of_.members_.size())) {
            return;
        }
        const auto ask = [this](const auto& question) {
            const std::lock_guard lock{of_.guard_};
            return question();
        };
        gathered_->fetch_until([&] { return ask(decided); }, deadline);
        if (ask(settled)) {
            gathered_->put_off();
        }
    }

private:
    quorum_engine& of_;
    std::optional<gathering> gathered_;
};

template <class Call>
bool quorum_engine::use(std::size_t member, const Call& what) {
    {
        const std::lock_guard lock{closing_guard_};
        if (closing_) {
            return false;
        }
        ++uses_;
    }
    what(*members_[member]);
    const std::lock_guard lock{closing_guard_};
    if (--uses_ == 0 && closing_) {
        unused_.notify_all();
    }
    return true;
}

[[nodiscard]] std::string text_of(const quorum_options& options,
                                  const std::vector<std::string>& stores);

/// A quorum's, from its members': the same in whatever order they are named.
[[nodiscard]] std::string identity_of(std::vector<std::string> members);

/// Why these cannot be members of one quorum; `known` are the engines that are open.
[[nodiscard]] failure check_distinct(const std::vector<engine*>& known);

/// As the member's `votes` say. Nothing is known of one that has none.
[[nodiscard]] store_instance instance_of(engine& member, const std::string& name);

}  // namespace holdfast::engines::quorums
