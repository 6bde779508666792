#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <core/acquisition.hpp>
#include <core/actions.hpp>
#include <core/deadline_heap.hpp>
#include <core/local_queue.hpp>
#include <core/node_memory.hpp>
#include <core/release.hpp>
#include <core/renewal.hpp>
#include <core/shared.hpp>
#include <core/terms.hpp>

namespace holdfast::core {

struct table_settings {
    contention_settings contention;
    handover_limits handover;
    /// Whether anybody listens to `tell_observer`.
    bool observed{};
    /// For jitter.
    std::uint64_t seed{1};
};

/// What a call asks for.
struct claim {
    std::string name;
    claim_mode mode{claim_mode::exclusive};
    std::uint32_t permits{1};
    std::uint32_t limit{};
    terms how;
    /// None: as long as it takes.
    std::optional<clock::time_point> deadline;
    /// False: ask once.
    bool wait{true};
    lock_kind kind{lock_kind::mutex};

    /// Whether threads of this process share one contender at the store. Where the store keeps a line,
    /// everybody stands in it.
    [[nodiscard]] bool queues_here() const noexcept {
        return mode == claim_mode::exclusive && kind != lock_kind::fair_mutex;
    }
    /// Whether only some of those who wait here ask the store. Everybody needs a grant of its own, but
    /// what one of them is told holds for the others.
    [[nodiscard]] bool asks_in_turn() const noexcept { return mode != claim_mode::exclusive && wait; }
};

struct unreleased_lock {
    std::string name;
    fencing_token token;
    failure error;
};

/// All locks of one client: brings the machines together.
///
/// Fed with calls, replies, hints and the time; answers with actions, to be performed in order. Knows
/// no clock, thread or store, so the runtime and the simulator drive the very same code.
///
/// Exclusive claims on one name share a `local_queue` and one contender at the store. Shared claims and
/// permits contend one by one, in the order they came, a few at a time (`asks_in_turn`): "busy" keeps
/// those from asking who want as much or more, a grant lets more of them ask, and when a name may have
/// become free the first asks. A grant becomes a tenure (renewed, see `renewal`) with one hold at a
/// time on it; a hand-over passes its record on, at once or to whoever takes it first. A hold that is
/// lost stays on record until its holder lets go.
///
/// Not thread-safe: the caller serialises.
class lock_table {
public:
    lock_table(const table_settings& settings, const owner_id& client);
    lock_table(const lock_table&) = delete;
    lock_table& operator=(const lock_table&) = delete;
    ~lock_table() = default;

    /// Answered by `finish_acquire`. Busy is an error here: `errc::busy`.
    waiter_id acquire(const claim& what, clock::time_point now);
    /// The caller gives up waiting. No effect once the call is finished.
    void cancel(waiter_id who, errc why, clock::time_point now);
    /// Answered by `finish_release`, by the release timeout at the latest.
    void release_hold(hold_id which, std::chrono::milliseconds linger, clock::time_point now);
    /// Nobody can release it any more: it is lost, and given back without an answer to anybody.
    void abandon(hold_id which, clock::time_point now);
    /// The answer to `offer_turn`. No effect when somebody was quicker.
    void take_turn(waiter_id who, clock::time_point now);
    /// Exclusive to shared or back. Answered by `finish_convert`.
    void convert(hold_id which, claim_mode to, clock::time_point now);

    void on_acquire_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now);
    void on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                          clock::time_point now);
    void on_release_reply(request_id id, const engines::release_reply& reply, clock::time_point now);
    /// `name` may have become free.
    void on_hint(const std::string& name, clock::time_point now);
    /// It may be the turn of `owner`, who stands in line for `name`; with a grant it is. A grant to an
    /// owner that nobody knows is given back.
    void on_turn(const std::string& name, const owner_id& owner,
                 const std::optional<engines::turn_grant>& granted, clock::time_point now);
    /// The watch on `name` is in place now: what happened before was not seen.
    void on_watch_active(const std::string& name, clock::time_point now);
    void on_holds_may_have_changed(clock::time_point now);
    void on_time(clock::time_point now);
    /// When `on_time` is due next.
    [[nodiscard]] clock::time_point wake_at() const noexcept;

    /// Ends all waiting, tells every holder, gives everything back.
    void shut_down(clock::time_point now);

    /// After `shut_down`, when nobody will feed the table any more: everybody who waits for a release
    /// is told how it went so far.
    void finish_release_calls(clock::time_point now);

    /// After `shut_down`: what may still be ours in the store.
    [[nodiscard]] std::vector<unreleased_lock> unreleased() const;

    [[nodiscard]] bool wants_watch(const std::string& name) const;
    /// What is to be done, in order. `spare` lends its memory.
    [[nodiscard]] std::vector<action> take_actions(std::vector<action> spare = {});

    /// How much is going on, for tests and leak checks.
    struct census {
        std::size_t waiters{}, contests{}, tenures{}, holds{}, releases{}, names{}, requests{};
        [[nodiscard]] bool quiet() const noexcept {
            return waiters + contests + tenures + holds + releases + names + requests == 0;
        }
    };
    [[nodiscard]] census count() const noexcept;

private:
    using contest_id = std::uint64_t;
    using release_id = std::uint64_t;

    /// One call that waits.
    struct waiter {
        waiter_id id;
        claim what;
        clock::time_point since;
        timer deadline;
        /// The contest that works for it: its own, or that of its queue (then zero).
        contest_id own_contest{};
        /// Its deadline has passed. It ends with the answer to its request, which is under way.
        bool overdue{};

        waiter(waiter_id number, claim asked, clock::time_point now)
            : id{number}, what{std::move(asked)}, since{now}, deadline{number} {}
    };

    /// One contender at the store.
    struct contest {
        contest_id id;
        shared_name name;
        acquisition way;
        shared_terms how;
        timer wake;
        /// The waiter it works for; zero: whoever is at the front of the name's queue.
        waiter_id sole{};
        /// The waiter for whom the last request was sent, and when the engine answers it at the latest.
        waiter_id asker{};
        clock::time_point answer_by{};
        /// One of those who ask in turn.
        bool in_turn{};

        contest(contest_id number, shared_name where, acquisition machine, shared_terms asked)
            : id{number},
              name{std::move(where)},
              way{std::move(machine)},
              how{std::move(asked)},
              wake{number} {}
        [[nodiscard]] bool for_queue() const noexcept { return sole == 0; }
    };

    /// Something on its way back to the store.
    struct release_record {
        release_id id;
        engines::release_request request;
        release way;
        fencing_token token;
        timer wake;
        /// The call that waits for it; zero: none, or told already.
        hold_id caller{};
        clock::time_point tell_by{clock::time_point::max()};
        clock::time_point held_since{};
        /// The lease was valid when its holder let go.
        bool held{};
        /// The name's queue waits for it before it contends again.
        bool queue_waits{};
        /// Whether `unreleased` reports a refusal.
        bool at_shutdown{};

        release_record(release_id number, engines::release_request what, fencing_token its_token,
                       clock::time_point expires_by)
            : id{number},
              request{what},
              way{std::move(what), expires_by},
              token{its_token},
              wake{number} {}
    };

    /// The threads that wait for a name, and who contends for them. Only there while it is needed.
    struct line {
        local_queue queue;
        /// Everybody who contends for this name.
        std::vector<contest_id> contests;
        /// Those who ask in turn and have not asked yet, in the order they came.
        std::vector<waiter_id> standing;
        /// How many of those who ask in turn may do so now, within `most_asking`. One after "busy",
        /// more with every grant.
        std::uint32_t window{unlimited};
        static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
    };

    /// What a caller holds, or held and has not let go of yet.
    struct hold_record {
        /// The grant of the store's that it rests on: name, owner and terms are there.
        renewal::tenure tenure;
        fencing_token token{};
        clock::time_point since{};
        timer longest;
        /// When the store forgets it by itself; known once it is lost.
        clock::time_point expires_by{};
        claim_mode mode{};
        bool lost{};
        /// Its holder let go of it, and the front of the queue was told. Goes by its last holder's
        /// number until somebody takes it.
        bool vacant{};
        /// A downgrade was sent and not refused for certain: the store may let readers in.
        bool downgraded{};
        /// A request to acquire or convert it was never answered: it may still reach the store.
        bool unanswered{};
        /// Somebody else had it when it was asked for.
        bool contended{};

        [[nodiscard]] hold_id id() const noexcept { return tenure.id(); }
        [[nodiscard]] bool held() const noexcept { return !lost && !vacant; }
        [[nodiscard]] const std::string& name() const noexcept { return *tenure.name; }
        [[nodiscard]] const terms& how() const noexcept { return *tenure.how; }
        [[nodiscard]] engines::release_request give_back(std::chrono::milliseconds linger = {}) const {
            return {name(), mode, tenure.owner, linger, tenure.kind, contended};
        }
    };

    struct name_record {
        shared_name name;
        /// What works for the queue: its contest, its hold, or the release it waits for; zero: nothing.
        std::uint64_t busy_with{};
        /// Only there while somebody waits or contends.
        std::unique_ptr<line> waiting;
        bool watched{};
        lock_kind kind{};

        [[nodiscard]] bool idle() const noexcept { return busy_with == 0; }
    };

    /// What an answer from the store belongs to.
    struct pending_request {
        enum class kind : std::uint8_t { acquire, convert, renew, release } what{};
        /// The contest, hold or release.
        std::uint64_t of{};
        clock::time_point sent_at;
        std::vector<tenure_id> tenures{};
        claim_mode to{};
        std::uint32_t attempts{};
        /// Of a conversion: gives its lease back, should that be gone when the answer comes.
        std::unique_ptr<engines::release_request> give_back{};
        clock::time_point gone_by{};
    };

    [[nodiscard]] std::uint64_t next_id() noexcept { return ++last_id_; }
    [[nodiscard]] owner_id next_owner() noexcept;
    [[nodiscard]] double jitter();
    [[nodiscard]] std::optional<pending_request> take_request(request_id id);
    name_record& record_of(const std::string& name, lock_kind kind);
    [[nodiscard]] line& line_of(name_record& where);
    void put_away(std::unique_ptr<line> unused) noexcept;
    [[nodiscard]] shared_terms shared(const terms& how);
    void tidy(const std::string& name);
    void tell(event_kind kind, const std::string& name, const owner_id& owner, fencing_token token,
              clock::duration duration = {}, failure error = {});

    // lock_table_contending.cpp
    void start_contest(name_record& where, const waiter& first, clock::time_point not_before,
                       clock::time_point now);
    void contend_for_front(const std::string& name, std::uint32_t others_waiting,
                           clock::time_point now);
    void ask(contest& who, clock::time_point now);
    void settle(contest& who, acquisition::verdict verdict, const engines::acquire_reply& reply,
                clock::time_point now);
    [[nodiscard]] contest* contest_of(const std::string& name, const owner_id& owner);
    void give_back_unused(engines::release_request what, clock::time_point expires_by,
                          clock::time_point now);
    void settle_late_grant(contest& who, clock::time_point now);
    void settle_grant(contest& who, const engines::acquire_reply& reply, clock::time_point now);
    [[nodiscard]] bool settle_without_grant(contest& who, acquisition::verdict verdict,
                                            clock::time_point now);
    void step(contest& who, acquisition::verdict verdict, clock::time_point now);
    [[nodiscard]] bool serves_front(const contest& who) const;
    void start_over(contest& who, clock::time_point now);
    [[nodiscard]] std::vector<waiter_id> waiters_of(const contest& who) const;
    /// The one that gets what the contest brings; zero: nobody.
    [[nodiscard]] waiter_id first_of(const contest& who) const;
    [[nodiscard]] local_queue& queue_of(const contest& who);
    [[nodiscard]] const local_queue& queue_of(const contest& who) const;
    void on_deadline(waiter& who, clock::time_point now);
    [[nodiscard]] contest* contest_for(const waiter& who);
    [[nodiscard]] failure reason_to_give_up(const waiter& who, clock::time_point now) const;
    void end_contest(contest& who);
    void clean_up(const acquisition& after, clock::time_point now);
    void finish_waiter(waiter_id who, const failure& why, clock::time_point now);

    // lock_table_in_turn.cpp
    void let_some_ask(const std::string& name, clock::time_point now);
    void let_first_ask(const std::string& name, clock::time_point now);
    void let_more_ask(line& here, clock::time_point now);
    void let_smaller_ask(const line& here, const engines::acquire_request& refused,
                         clock::time_point now);
    void let_smaller_newcomer_ask(name_record& where, const engines::acquire_request& refused,
                                  clock::time_point now);
    void after_asking(contest_id who, const engines::acquire_request& asked,
                      acquisition::verdict verdict, const engines::acquire_reply& reply,
                      clock::time_point now);
    [[nodiscard]] std::size_t count_asking(const line& here) const;
    [[nodiscard]] bool is_refused(const line& here, const claim& what) const;
    [[nodiscard]] std::uint32_t most_asking(const line& here) const;

    // lock_table_holding.cpp
    void grant(waiter_id who, hold_record& hold, fencing_token token, event_kind kind,
               clock::time_point now);
    void lose(hold_record& hold, const failure& why, clock::time_point now);
    void lose_and_give_back(hold_record& hold, const failure& why, clock::time_point now);
    void end_at_max_hold(hold_record& hold, clock::time_point now);
    void detach(hold_record& hold);
    [[nodiscard]] clock::time_point gone_by(const terms& how, clock::time_point now) const;
    [[nodiscard]] static clock::time_point validity(const hold_record& hold);
    release_record& add_release(engines::release_request request, fencing_token token,
                                clock::time_point expires_by);
    void send(release_record& what, clock::time_point now);
    void finish_call(release_record& what, clock::time_point now);
    void let_queue_go_on(release_record& what, clock::time_point now);
    void finish(release_record& what, clock::time_point now);
    void on_release_timer(release_record& what, clock::time_point now);
    void send_convert(const hold_record& hold, claim_mode to, std::uint32_t attempts,
                      clock::time_point now);
    void on_convert_reply(const pending_request& request, const engines::acquire_reply& reply,
                          clock::time_point now);
    void run_renewals(clock::time_point now);
    void apply(const renewal::event& what, clock::time_point now);

    // lock_table_handover.cpp
    [[nodiscard]] bool hand_over(hold_record& hold, clock::time_point now);
    [[nodiscard]] bool may_pass_to(const waiter& next, const hold_record& hold,
                                   const local_queue& queue, clock::time_point now) const;
    void pass_on(hold_record& hold, const waiter& next);
    void pass_to(const waiter& next, hold_record& hold, name_record& where, clock::time_point now);
    [[nodiscard]] bool overtake(const waiter& who, name_record& where, clock::time_point now);
    [[nodiscard]] hold_record* vacancy_of(const name_record& where);
    void offer_again(name_record& where, clock::time_point now);
    void give_up_vacancy(hold_record& hold, clock::time_point now);

    table_settings settings_;
    owner_id client_;
    std::mt19937_64 random_;
    std::uint64_t last_id_{};
    std::int64_t last_sequence_{};
    bool shut_down_{};

    std::vector<action> actions_;
    std::vector<unreleased_lock> refused_at_shutdown_;
    /// The terms that were asked for last: most leases of a program have the same.
    shared_terms latest_terms_;
    /// The name that was asked for last.
    shared_name latest_name_;
    /// Nobody waits in it. Its memory is for the next ones.
    std::unique_ptr<line> spare_line_;
    deadline_heap timers_;
    renewal renewal_;
    node_memory memory_;
    std::pmr::unordered_map<std::string_view, name_record> names_{&memory_};
    std::pmr::unordered_map<waiter_id, waiter> waiters_{&memory_};
    std::pmr::unordered_map<contest_id, contest> contests_{&memory_};
    std::pmr::unordered_map<hold_id, hold_record> holds_{&memory_};
    std::pmr::unordered_map<release_id, release_record> releases_{&memory_};
    std::pmr::unordered_map<request_id, pending_request> requests_{&memory_};
};

}  // namespace holdfast::core
