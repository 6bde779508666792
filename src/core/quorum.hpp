#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>

/// What is decided, and what is done, when several stores vote on one lock. No clock, thread or I/O:
/// whoever drives these machines says what the members answered and when.
namespace holdfast::core {

/// How many of `members` are more than half.
[[nodiscard]] constexpr std::size_t majority_of(std::size_t members) noexcept {
    return members / 2 + 1;
}

/// What the owner has, as far as the quorum knows, when it asks.
enum class round_purpose : std::uint8_t {
    fresh,      ///< nothing: what a failed round got is released
    again,      ///< the same claim: nothing is ever undone
    upgrade,    ///< a share of it: what a failed round got is put back to a share
    downgrade,  ///< the exclusive claim: nothing is undone, a share is no more than it had
};

/// One round of asking all members for one lock.
///
///     asked ──granted──▶ granted ──its token is the largest──────────────▶ agreed
///       │                   └──another member's is larger──▶ raising ──────┘ granted
///       ├──busy────▶ busy                                       └─ busy, failed: no vote
///       └──failed──▶ failed
///
/// Granted as soon as a majority agreed on one token, the largest that any of them named: every later
/// majority shares a member with this one, and that member counts on from there. Failed as soon as a
/// majority can no longer be won; then everything that was, or may have been, granted is undone.
/// Answers may go on coming in after that.
///
/// A member that is suspect (it failed to answer the last time) is asked, but not waited for, as long
/// as the others are enough for a majority.
///
/// After a split vote, in which every contender got some members and none a majority, a round may have
/// a lead: that member is asked first, and the others only by whom it did not turn away. Contenders
/// that name the same lead cannot split the vote again.
class quorum_round {
public:
    struct settings {
        round_purpose purpose{round_purpose::fresh};
        /// What to call the members in errors; as many as there are members.
        std::vector<std::string> members;
        std::vector<bool> suspects;
        std::optional<std::size_t> lead;
        clock::time_point started;
        clock::duration ttl{};
        clock::duration drift{};
        /// Whether members can be raised to a token at all.
        bool tokens_agree{true};
        /// again, downgrade: the token that the owner has, whatever members say.
        std::optional<fencing_token> keep_token;
        std::uint32_t token_count{1};
        /// How often in a row this contender has lost a split vote, and a random fraction.
        std::uint32_t splits{};
        double jitter{};
    };

    struct action {
        enum class kind : std::uint8_t {
            ask,
            raise,     ///< ask again, with `token` as the floor
            undo,      ///< release, or put back to a share
            complete,  ///< `reply()` is the answer; comes once
        } what{};
        std::size_t member{};
        fencing_token token{};
    };
    using actions = std::vector<action>;

    explicit quorum_round(settings its_settings);

    [[nodiscard]] actions start();
    /// The answer to an `ask` or a `raise`.
    [[nodiscard]] actions on_reply(std::size_t member, const engines::acquire_reply& reply,
                                   clock::time_point now);
    /// It was granted, but the vote must not count.
    [[nodiscard]] actions on_uncounted_grant(std::size_t member, failure why, clock::time_point now);
    /// The owner let go meanwhile: members are no longer raised.
    void stop_raising() noexcept { may_raise_ = false; }
    /// Ends the round with this error, whatever the members say.
    [[nodiscard]] actions abort(failure why);

    [[nodiscard]] bool done() const noexcept { return done_; }
    [[nodiscard]] bool won() const noexcept {
        return done_ && reply_.result == engines::acquire_reply::outcome::granted;
    }
    /// Lost although some members were won: others may have split the vote with us.
    [[nodiscard]] bool split() const noexcept { return split_; }
    /// Only the lead was asked.
    [[nodiscard]] bool turned_away() const noexcept { return turned_away_; }
    [[nodiscard]] const engines::acquire_reply& reply() const noexcept { return reply_; }

private:
    enum class state : std::uint8_t { unasked, asked, granted, raising, agreed, busy, failed };
    struct voter {
        state is{state::unasked};
        /// It granted the claim, whether or not that counts.
        bool has_it{};
        fencing_token token{};
        fencing_token raised_to{};
        std::chrono::milliseconds retry_after{};
        failure error;
    };

    void ask(std::size_t index);
    void on_grant(voter& ballot, fencing_token token);
    void agree(clock::time_point now);
    void lose();
    void fail(failure why);
    void raise_members();
    void undo_all();
    void after_the_end(std::size_t index);
    [[nodiscard]] std::size_t count(state wanted) const noexcept;
    struct outlook {
        std::size_t votes;    ///< those that agree, or may yet
        std::size_t awaited;  ///< those whose answer is worth waiting for
    };
    [[nodiscard]] outlook prospects() const noexcept;
    [[nodiscard]] bool known_to_be_busy() const noexcept;
    [[nodiscard]] std::size_t members_won() const noexcept;
    [[nodiscard]] bool undoes() const noexcept {
        return settings_.purpose == round_purpose::fresh || settings_.purpose == round_purpose::upgrade;
    }
    [[nodiscard]] bool may_have_changed() const noexcept;
    [[nodiscard]] std::chrono::milliseconds lease_ends_in() const;
    [[nodiscard]] std::vector<failure> failures() const;
    void complete(engines::acquire_reply reply);
    [[nodiscard]] actions take();

    settings settings_;
    std::vector<voter> members_;
    std::size_t needed_;
    fencing_token agreed_{};
    engines::acquire_reply reply_;
    actions actions_;
    bool may_raise_{true};
    bool done_{};
    bool split_{};
    bool turned_away_{};
};

/// Counts the answers to something that all members were asked to do.
class quorum_tally {
public:
    enum class vote : std::uint8_t { done, gone, failed };
    enum class verdict : std::uint8_t { open, done, gone, failed };

    explicit quorum_tally(std::size_t members) noexcept : members_{members} {}

    void add(vote what) noexcept;
    /// done: a majority did it. gone: so many had nothing that there was no majority to have it.
    /// failed: everybody answered, or failed to, and it is neither.
    [[nodiscard]] verdict result() const noexcept;
    [[nodiscard]] bool complete() const noexcept { return done_ + gone_ + failed_ == members_; }
    [[nodiscard]] std::size_t answered() const noexcept { return done_ + gone_; }

private:
    std::size_t members_;
    std::size_t done_{};
    std::size_t gone_{};
    std::size_t failed_{};
};

/// "no quorum: 1 of 3 members answered, 2 needed; redis://a:6382: connection refused". The failures are
/// as many as the members; an empty one is one that answered.
[[nodiscard]] std::string describe_no_quorum(const std::vector<std::string>& members,
                                             const std::vector<failure>& failures);

/// What to tell a caller when too few members did what it asked for: the refusal that so many of them
/// share that no majority is left, or that there is no quorum.
[[nodiscard]] failure combined_failure(const std::vector<std::string>& members,
                                       const std::vector<failure>& failures);

}  // namespace holdfast::core
