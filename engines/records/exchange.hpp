#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <holdfast/records.hpp>
#include <records/known_records.hpp>

namespace holdfast::engines::records {

/// What a rule made of a record.
struct verdict {
    bool changed{};
    bool freed{};
};

/// When a rule decides, by the store's clock.
struct decision_time : moment {
    /// What the clock shows at most; `now` is what it shows at least. The same after a read.
    clock::time_point latest;
};

/// One request of the contract about one name.
struct operation {
    std::string name;
    /// Whose hold is to be extended or converted: this counts only if it takes effect before the hold
    /// has ended.
    owner_id owner{};
    /// Changes the record, and keeps its answer for itself. Run again after a conflict: the last answer
    /// counts.
    std::function<verdict(saved_record&, const decision_time&)> rule;
    enum class kind : std::uint8_t {
        looks,    ///< never writes
        repeats,  ///< asked again, it answers the same
        once,     ///< asked again, it answers as if it had not been asked before
    } repetition{kind::repeats};
    std::chrono::system_clock::time_point wall{};
};

/// Leads one operation to its answer: a pure machine, which says what to ask the store for next.
///
///     action    │ done               conflict           outcome_unknown    other failure
///     ──────────┼──────────────────────────────────────────────────────────────────────────
///     read      │ rule → replace     –                  finish, or pause   finish, or pause
///               │      or finish                        while in doubt     while in doubt
///     replace   │ finish, or rule    rule → replace     doubt, pause,      finish
///               │ → replace if late       or finish     then read
///     pause     │ read, or replace with what the conflict showed
///
/// The first action is `replace` where the record is known and the store's clock can be estimated: then
/// a request costs one round trip. Everything ends at the deadline.
///
/// Others' holds are judged by the least that the store's clock may show, so none is taken for ended
/// too soon. The owner's own hold is judged by the most that it may show, and once more by the store's
/// time in the answer: a write that extends a hold may take effect after its end, when somebody has
/// seen the name free. Then this hold is taken out of the record, and the rule decides again, without
/// it.
///
/// A write without an answer may arrive late. It does no harm once the record has another version than
/// the write expects, and so an operation that would change nothing writes all the same while there is
/// such a doubt. After a `gone` nothing of ours turns up any more.
///
/// Thread safety: none; `known` has its own.
class exchange {
public:
    enum class action : std::uint8_t { read, replace, pause, finish };

    /// `chance`: random bits.
    exchange(known_records& known, operation request, clock::time_point deadline, std::uint64_t chance);

    [[nodiscard]] action start(clock::time_point now);
    /// The answer to `read` or `replace`.
    [[nodiscard]] action on_reply(record_reply reply, clock::time_point sent,
                                  clock::time_point received);
    [[nodiscard]] action on_pause_over(clock::time_point now);

    [[nodiscard]] const std::string& name() const noexcept { return request_.name; }
    /// replace: with what.
    [[nodiscard]] const record_change& change() const noexcept { return change_; }
    /// pause: for how long.
    [[nodiscard]] clock::duration pause() const noexcept { return pause_; }
    /// finish: why the rule's answer does not count. Empty: it does.
    [[nodiscard]] const failure& error() const noexcept { return error_; }
    /// finish, without an error: the ttl of a lease that ends at `expires` by the store's clock,
    /// counted from `asked_at`, if that is less than `ttl`; otherwise zero.
    [[nodiscard]] std::chrono::milliseconds shortened_ttl(clock::time_point expires,
                                                          std::chrono::milliseconds ttl,
                                                          clock::time_point asked_at) const;

private:
    struct sighting {
        clock::time_point sent;
        clock::time_point store_now;
    };

    [[nodiscard]] action decide(clock::time_point store_now, clock::time_point now);
    [[nodiscard]] action on_record(stored_record&& found, clock::time_point store_now,
                                   clock::time_point sent, clock::time_point now);
    /// A write of ours has made `written`, by `store_now` at the latest.
    [[nodiscard]] action on_written(known_records::entry&& written, clock::time_point store_now,
                                    clock::time_point sent, clock::time_point now);
    /// Removes the owner's hold from `next_` if it is uncertain and would be over by now.
    [[nodiscard]] bool take_back_own(clock::time_point store_now, clock::time_point now);
    [[nodiscard]] std::optional<clock::time_point> own_end(const saved_record& record) const;
    [[nodiscard]] action settled(known_records::entry&& current);
    [[nodiscard]] action write(const verdict& made, clock::time_point store_now);
    [[nodiscard]] action wait(clock::duration longest, clock::time_point now, action then);
    [[nodiscard]] action fail(failure why);
    [[nodiscard]] action give_up();
    [[nodiscard]] bool has_taken_effect() const noexcept;
    [[nodiscard]] std::uint64_t random() noexcept;

    known_records& known_;
    const operation request_;
    const clock::time_point deadline_;
    std::uint64_t chance_;
    action asked_{action::read};
    action after_pause_{action::read};
    /// The record as it was last seen, and its version.
    known_records::entry seen_;
    /// What is to replace it.
    saved_record next_;
    /// When the owner's hold ends that the rule decided on.
    std::optional<clock::time_point> own_end_;
    record_change change_;
    clock::duration pause_{};
    failure error_;
    std::uint32_t conflicts_{};
    /// The last write of ours that was not answered.
    std::optional<std::uint64_t> unanswered_edit_;
    /// When the store was seen to have the record that the last answer speaks of.
    std::optional<sighting> confirmed_;
};

}  // namespace holdfast::engines::records
