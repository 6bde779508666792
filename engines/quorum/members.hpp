#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <common/gathering.hpp>
#include <core/quorum.hpp>
#include <holdfast/quorum.hpp>

namespace holdfast::engines::quorums {

/// The answer of a quorum that has ended.
inline const failure shut_down{errc::shut_down, "shutdown was called, or the client was destroyed"};

/// The stores of one quorum: what all of them promise, which of them answer, and how long they may
/// take.
///
/// Members are asked with `must_not_block`, so all of them are at work at the same time. A caller that
/// may block reads their answers itself if the members leave that to it (`own_reading`): no thread is
/// woken, then.
///
/// Thread safety: all functions, from any thread, but `leave` only once. No mutex is held while a
/// member is called.
class member_set {
public:
    /// Throws `std::system_error` with `errc::bad_configuration` if two of them are the same store.
    member_set(std::vector<std::unique_ptr<engine>> stores, quorum_options options,
               const std::string& address);

    [[nodiscard]] std::size_t size() const noexcept { return stores_.size(); }
    [[nodiscard]] std::size_t majority() const noexcept { return core::majority_of(size()); }
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    [[nodiscard]] const quorum_options& options() const noexcept { return options_; }
    /// What all members promise, as far as it survives being put to the vote.
    [[nodiscard]] const guarantees& promises() const noexcept { return promises_; }
    /// All members have this ability.
    template <class Ability>
    [[nodiscard]] bool all_have(Ability* abilities::*ability) const {
        return std::all_of(stores_.begin(), stores_.end(),
                           [&](const auto& store) { return store->offers().*ability != nullptr; });
    }
    /// All members grant a token that another one has named.
    [[nodiscard]] bool tokens_agree() const noexcept { return tokens_agree_; }
    [[nodiscard]] store_instance instance(std::size_t member, const std::string& name);

    [[nodiscard]] clock::time_point now() const { return options_.environment.now(); }
    /// How long one member may take to answer a request about a lock with this ttl.
    [[nodiscard]] clock::duration timeout(std::chrono::milliseconds ttl) const;
    [[nodiscard]] clock::time_point query_deadline(const call& limits) const;
    /// Set when the deadline has passed.
    [[nodiscard]] failure lateness(const call& limits) const;

    /// Suspect: the member did not answer the last time.
    [[nodiscard]] bool suspect(std::size_t member) const noexcept { return suspects_[member]; }
    [[nodiscard]] std::vector<bool> suspects() const { return {suspects_.begin(), suspects_.end()}; }
    /// Suspects first: the caller waits for the last member, which should be one that answers.
    [[nodiscard]] std::vector<std::size_t> asking_order() const;
    /// The limits for one of the members. Only the call to the last trusted member may block the
    /// caller.
    [[nodiscard]] static call share_of(const call& limits, clock::time_point deadline, bool last) {
        return {std::min(limits.deadline, deadline), last ? limits.from : caller::must_not_block};
    }

    /// Calls a member, unless they are leaving. False: it was not called. Throws what the member
    /// throws.
    template <class Call>
    bool use(std::size_t member, const Call& call_member);
    /// Sends a request to the member, as an engine or to its `operators_view`. The answer shows whether
    /// the member is suspect. `answered` runs once: with `shut_down` if the members are leaving, and
    /// with `outcome_unknown` if the member throws before it has answered.
    template <class Role, class Request, class Reply, class Answered>
    void ask(std::size_t member, void (Role::*send)(Request, call, completion<Reply>),
             const std::type_identity_t<Request>& request, const call& limits, Answered answered) {
        Reply blank;
        if constexpr (std::is_same_v<Request, std::vector<renew_request>>) {
            blank.resize(request.size());
        }
        ask<Reply>(
            member,
            [&](engine& store, completion<Reply> done) {
                if constexpr (std::is_same_v<Role, engine>) {
                    (store.*send)(request, limits, std::move(done));
                } else {
                    (store.offers().operators->*send)(request, limits, std::move(done));
                }
            },
            std::move(answered), std::move(blank));
    }
    /// The same with `send(store, completion)`. `blank` is a reply with room for an error.
    template <class Reply, class Send, class Answered>
    void ask(std::size_t member, const Send& send, Answered answered, Reply blank = {});
    void attach(const client_callbacks& callbacks);
    [[nodiscard]] std::unique_ptr<subscription> watch(const std::string& name, lock_kind kind,
                                                      std::function<void()> hint);
    /// From now on no member is called. Destroys them.
    void leave();

    class own_reading;

private:
    class visit;

    template <class Reply>
    static void set_error(Reply& reply, const failure& error) {
        if constexpr (requires { reply.error; }) {
            reply.error = error;
        } else {
            for (auto& each : reply) {
                set_error(each, error);
            }
        }
    }
    template <class Reply>
    void note_answer(std::size_t member, const Reply& reply) noexcept {
        if constexpr (requires { reply.error; }) {
            suspects_[member] = reply.error.code == errc::store_unavailable ||
                                reply.error.code == errc::outcome_unknown;
        } else {
            for (const auto& each : reply) {
                note_answer(member, each);
            }
        }
    }

    const quorum_options options_;
    std::vector<std::unique_ptr<engine>> stores_;
    std::vector<std::string> names_;
    guarantees promises_;
    bool tokens_agree_{};
    std::vector<std::atomic<bool>> suspects_;

    std::mutex leaving_guard_;
    std::condition_variable unused_;
    std::size_t uses_{};
    bool leaving_{};
};

/// While it exists, a caller that may block reads the members' answers itself, as far as they leave
/// that to it.
class member_set::own_reading {
public:
    own_reading(const member_set& members, const call& limits) : majority_{members.majority()} {
        if (limits.from == caller::may_block) {
            gathered_.emplace();
        }
    }

    /// Until `decided`. Afterwards the rest is in no hurry if it is `settled`: what is still to come
    /// changes nothing.
    template <class Decided, class Settled>
    void await(clock::time_point deadline, const Decided& decided, const Settled& settled) {
        // The members that are read by other threads do not wake this one: without them there must be
        // enough to decide.
        if (!gathered_ || gathered_->size() < majority_) {
            return;
        }
        gathered_->fetch_until(decided, deadline);
        if (settled()) {
            gathered_->put_off();
        }
    }

private:
    const std::size_t majority_;
    std::optional<gathering> gathered_;
};

/// While it exists, the members stay, unless they were leaving before.
class member_set::visit {
public:
    explicit visit(member_set& members) : members_{members} {
        const std::lock_guard lock{members_.leaving_guard_};
        welcome_ = !members_.leaving_;
        members_.uses_ += welcome_ ? 1 : 0;
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
        if (!welcome_) {
            return;
        }
        const std::lock_guard lock{members_.leaving_guard_};
        if (--members_.uses_ == 0 && members_.leaving_) {
            members_.unused_.notify_all();
        }
    }
    [[nodiscard]] bool welcome() const noexcept { return welcome_; }

private:
    member_set& members_;
    bool welcome_{};
};

template <class Call>
bool member_set::use(std::size_t member, const Call& call_member) {
    const visit here{*this};
    if (here.welcome()) {
        call_member(*stores_[member]);
    }
    return here.welcome();
}

template <class Reply, class Send, class Answered>
void member_set::ask(std::size_t member, const Send& send, Answered answered, Reply blank) {
    struct question {
        explicit question(Answered&& told) : answered{std::move(told)} {}
        Answered answered;
        std::atomic<bool> over{false};
    };
    const auto asked = std::make_shared<question>(std::move(answered));
    const auto answer = [this, member, asked](Reply reply) {
        // A member that throws may have kept the request. It must not vote twice.
        if (!asked->over.exchange(true)) {
            note_answer(member, reply);
            asked->answered(std::move(reply));
        }
    };
    const bool called = use(member, [&](engine& store) {
        try {
            send(store, answer);
        } catch (const std::exception& wrong) {
            set_error(blank, {errc::outcome_unknown, wrong.what()});
            answer(std::move(blank));
        }
    });
    if (!called) {
        set_error(blank, shut_down);
        asked->answered(std::move(blank));
    }
}

/// Why these cannot be members of one quorum.
[[nodiscard]] failure check_distinct(const std::vector<engine*>& members);

/// As the member's `votes` say. Nothing is known of one that has none.
[[nodiscard]] store_instance instance_of(engine& member, const std::string& name);

}  // namespace holdfast::engines::quorums
