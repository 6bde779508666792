#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/guarantees.hpp>
#include <holdfast/info.hpp>
#include <holdfast/options.hpp>
#include <holdfast/owner.hpp>

/// The contract between holdfast and a store. Users of locks need nothing from this header; writers
/// of engines need only this header and the contract tests in `holdfast/testing`.
namespace holdfast::engines {
inline namespace v0 {

/// Whether the thread that makes a call may be kept busy with it (a user's thread that waits for the
/// answer anyway), or has other work (timers, notifications).
enum class caller : std::uint8_t { may_block, must_not_block };

/// Every call ends, with an answer or with an error, no later than its deadline.
struct call {
    clock::time_point deadline;
    caller from{caller::must_not_block};
};

template <class Reply>
using completion = std::function<void(Reply)>;

/// Asks for a lock on behalf of `owner`.
///
/// Idempotent by owner: asked again by an owner that already has the claim in the same mode, the
/// store answers "granted" with the *same* tokens and extends the ttl. An exclusive owner that asks
/// for `shared` is downgraded (same token). A shared owner that asks for `exclusive` gets it, with a
/// new token, when it is the only holder, and otherwise is told "busy" and keeps its share.
struct acquire_request {
    std::string name;
    claim_mode mode{claim_mode::exclusive};
    /// Only for `permit`: how many, of how many. All contenders must agree on the limit.
    std::uint32_t permits{1};
    std::uint32_t limit{0};
    owner_id owner;
    std::chrono::milliseconds ttl{};
    /// How many consecutive tokens to reserve.
    std::uint32_t token_count{1};
    lock_kind kind{lock_kind::mutex};
    /// Only where the engine has `lines`. `fair_mutex`: whether to stand in line, until granted or
    /// released, when it is busy. `mutex`: whether the store may remember who wants it. In both cases
    /// the store may then grant the lock by itself when it is released: see `turn_grant`.
    bool queue{};
    replica_policy replicas{};
    /// Only where the engine has `votes`. The smallest first token wanted: what is granted is no
    /// smaller, and neither is anything granted later. An owner that already has the claim with a
    /// smaller token gets this one in its place. Not for permits.
    fencing_token token_floor{};
    /// The owner has the claim and wants it in this mode. If the store does not know of it, nothing is
    /// granted: the reply is `failed` with `lost`. Others may have held the lock in between. Not for
    /// permits.
    bool converts{};
};

struct acquire_reply {
    enum class outcome : std::uint8_t { granted, busy, failed } result{outcome::failed};
    fencing_token first_token{};
    std::uint32_t token_count{1};
    /// busy: how long until the current holders' leases end if none of them renews; zero if unknown.
    std::chrono::milliseconds retry_after{};
    /// failed: `store_unavailable` and every refusal mean that nothing was changed,
    /// `outcome_unknown` that it may have been.
    failure error{};
    /// granted: a part of the store that answers may not know of the lock yet (a member of a quorum).
    /// A renewal tells it, and should follow soon.
    bool incomplete{};
    /// granted: the ttl in the store, where it differs from the one that was asked for. Zero: as asked.
    /// The lease is valid for the shorter of the two.
    std::chrono::milliseconds ttl{};
};

/// The answer to `engine::acquire_all`.
struct acquire_all_reply {
    struct grant {
        fencing_token first_token{};
        std::uint32_t token_count{1};
        /// As in `acquire_reply`.
        std::chrono::milliseconds ttl{};
    };

    acquire_reply::outcome result{acquire_reply::outcome::failed};
    /// granted: one for each request, in the same order.
    std::vector<grant> grants;
    /// busy: the first request that somebody is in the way of, and, as in `acquire_reply`, for how
    /// long.
    std::size_t busy{};
    std::chrono::milliseconds retry_after{};
    failure error{};
};

/// A renewal extends a lease that is there. It never re-creates one, and never shortens one.
struct renew_request {
    std::string name;
    claim_mode mode{claim_mode::exclusive};
    owner_id owner;
    std::chrono::milliseconds ttl{};
    lock_kind kind{lock_kind::mutex};
};

struct renew_reply {
    enum class outcome : std::uint8_t { renewed, gone, failed } result{outcome::failed};
    /// gone: `lost`, or `revoked` with the reason when the store knows. failed: why.
    failure error{};
    /// renewed: as in `acquire_reply`.
    bool incomplete{};
    /// renewed: as in `acquire_reply`. The ttl counts from this request, also where an earlier one has
    /// kept the lease alive.
    std::chrono::milliseconds ttl{};
};

/// Gives up what `owner` has, also its place in a line. Never touches another's claim. "gone" is a
/// normal answer.
struct release_request {
    std::string name;
    claim_mode mode{claim_mode::exclusive};
    owner_id owner;
    /// Not zero: keep the name taken for this long from now, even if the owner's process ends.
    std::chrono::milliseconds linger{};
    lock_kind kind{lock_kind::mutex};
    /// Somebody else had it when it was asked for: others probably wait for it now.
    bool contended{};
};

struct release_reply {
    enum class outcome : std::uint8_t { released, gone, failed } result{outcome::failed};
    /// How many other processes wait for this name, as far as the store knows.
    std::uint32_t others_waiting{};
    failure error{};
};

struct inspect_reply {
    lock_info info;
    failure error{};
};

struct list_request {
    std::string prefix;
    /// What the previous reply's `next` said; empty for the first page.
    std::string from;
    std::size_t limit{1000};
};

/// A page may have fewer locks than there is room for, or none, and not be the last: a store that has
/// many other things to go through stops in time.
struct list_reply {
    std::vector<lock_info> locks;
    /// Empty after the last page.
    std::string next;
    failure error{};
    /// Not an error: why locks that may exist are not in this page (a part of the store does not
    /// answer).
    failure missing{};
};

/// Removes the hold of `owner` whose first token is `token`, and only that.
struct revoke_request {
    std::string name;
    owner_id owner;
    fencing_token token;
    std::string actor;
    std::string reason;
};

struct revoke_reply {
    enum class outcome : std::uint8_t { revoked, gone, failed } result{outcome::failed};
    failure error{};
};

/// A latch is a counter under a name. A latch that is not there counts zero. One that opened is known
/// for `opened_latch_known`, so that a latch that opened differs from one that the store lost, and from
/// one whose lifetime ended.
struct latch_request {
    enum class operation : std::uint8_t {
        read,
        set,         ///< to `count`, only when the latch is not there or open
        count_down,  ///< by `count`, down to zero at most; at zero the latch is open
    } what{operation::read};
    std::string name;
    std::uint32_t count{};
    /// set: after this long the store forgets the latch.
    std::chrono::milliseconds lifetime{};
    /// Makes a re-sent `set` or `count_down` count once.
    owner_id request;
};

/// Tells one life of a latch from the others. A latch that is set anew while it is known that it opened
/// goes on in the same line, with one more opening. A waiter that sees another line knows that its own
/// latch is gone, but not that it opened.
struct latch_life {
    /// Zero: not known.
    std::uint64_t line{};
    std::uint32_t openings{};

    /// For a `set` of a latch that is not known. Of 53 bits: a script keeps them in a floating-point
    /// number.
    [[nodiscard]] static latch_life begin(const owner_id& request) noexcept {
        constexpr unsigned too_many = 11;
        return {((request.high >> too_many) + static_cast<std::uint64_t>(request.sequence)) &
                    (~std::uint64_t{0} >> too_many),
                0};
    }
    friend bool operator==(const latch_life&, const latch_life&) = default;
};

struct latch_reply {
    /// What the latch counts after the operation.
    std::uint32_t count{};
    /// set: whether this call made it.
    bool applied{};
    failure error{};
    /// The latch was set through holdfast and counts, or it opened not long ago. False for one that is
    /// not there, and for one that a program without holdfast has set.
    bool known{};
    /// Of one that is known.
    latch_life life{};
};

/// Longer than a waiter goes without a look at the store.
constexpr std::chrono::minutes opened_latch_known{2};

struct examine_reply {
    std::vector<finding> findings;
    failure error{};
};

/// A watch in place. Destroying it ends it; a hint already on its way may still arrive.
class HOLDFAST_EXPORT subscription {
public:
    virtual ~subscription() = default;
    /// Whether notifications are flowing now. If not, a hint follows as soon as they do.
    [[nodiscard]] virtual bool active() const noexcept = 0;
};

/// A thread of the client's that can do nothing but wait, and is lent to an engine meanwhile.
///
/// Thread safety: only for the thread itself.
class idle_thread {
public:
    virtual ~idle_thread() = default;
    /// Whether it has something to do. It must be let go, then.
    [[nodiscard]] virtual bool called_away() const noexcept = 0;
    /// Sleeps until `descriptor` can be read, or is broken: true. False when it is called away, or for
    /// no reason.
    [[nodiscard]] virtual bool sleep(int descriptor) noexcept = 0;
};

/// What the store granted to an owner in line, on the terms of its last request, when its turn came or
/// the lock was released.
struct turn_grant {
    fencing_token first_token{};
    std::uint32_t token_count{1};
    /// When the owner's last request left. Its answer was "busy", so the store began the ttl later.
    clock::time_point asked_at{};
    /// As in `acquire_reply`.
    std::chrono::milliseconds ttl{};
};

/// What an engine needs to know of the client it serves.
struct client_identity {
    owner_id client;
    holder_card card;
    /// The client takes nothing: a store that is not there is not made for it.
    bool only_looks{};
    /// How long opening the store may wait for others who keep it busy.
    std::chrono::milliseconds opening_timeout{std::chrono::seconds{10}};
};

/// Calls back into the client. Set once, before the first request; may be called from any thread
/// until the engine is destroyed.
struct client_callbacks {
    /// Holds may have been revoked: ask about all of them now rather than at their next renewal.
    std::function<void()> holds_may_have_changed{};
    /// Fair locks: it may be the turn of `owner`, who stands in line for `name`. Takes the place of
    /// `watch` for them. With a grant it is, and the lock is already the owner's: it need not ask, but
    /// may, and is then granted the same. A grant that nobody hears of ends with its ttl.
    /// Plain locks, while they are watched: always with a grant.
    std::function<void(const std::string& name, const owner_id& owner,
                       const std::optional<turn_grant>& granted)>
        turn_of{};
    /// The store refuses something that locks work without, but less well: a permission to be told of
    /// releases, for example. Once for each such thing.
    std::function<void(const failure& why)> degraded{};
};

/// An ability of an engine: hears when names become free.
class watching {
public:
    /// Calls `hint` when `name` may have become free (or a latch open), whenever notifications may
    /// have been missed, and, if `active()` was false at first, once they flow. Hints are never
    /// called from inside `watch` itself. They may be spurious and may be lost.
    [[nodiscard]] virtual std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                              std::function<void()> hint) = 0;

protected:
    ~watching() = default;
};

/// An ability of an engine: shows who holds what, and ends a hold by force.
class operators_view {
public:
    virtual void inspect(std::string name, call how, completion<inspect_reply> done) = 0;
    virtual void list(list_request request, call how, completion<list_reply> done) = 0;
    virtual void revoke(revoke_request request, call how, completion<revoke_reply> done) = 0;

protected:
    ~operators_view() = default;
};

/// An ability of an engine: looks at the store itself, for people: how it is set up, and what that puts
/// at risk.
class examination {
public:
    virtual void examine(call how, completion<examine_reply> done) = 0;

protected:
    ~examination() = default;
};

/// An ability of an engine: counters that programs wait for.
class latches {
public:
    virtual void latch(latch_request request, call how, completion<latch_reply> done) = 0;

protected:
    ~latches() = default;
};

/// An ability of an engine: takes several plain locks (`lock_kind::mutex`, exclusive, no replica
/// policy) in one step.
class joint_locking {
public:
    /// Whether locks of these names can be taken together: in a cluster, only those of one server.
    [[nodiscard]] virtual bool acquires_together(const std::vector<std::string>& names) const = 0;
    /// All, or none. Each request has a name and an owner of its own; idempotent by owner like
    /// `acquire`.
    virtual void acquire_all(std::vector<acquire_request> all, call how,
                             completion<acquire_all_reply> done) = 0;

protected:
    ~joint_locking() = default;
};

/// An ability of an engine: the store keeps those who wait in a line (`acquire_request::queue`), and
/// may grant the lock to the first of them by itself. It says so with `client_callbacks::turn_of`.
class lines {
public:
    /// Whether waiters for a plain lock stand in line, too, and not only those for a fair one.
    [[nodiscard]] virtual bool serves_plain_locks() const noexcept = 0;
    /// Lends the engine a thread that waits for `name` on behalf of `owner`, so that news need not be
    /// passed from one thread to another: the engine may listen, and call hints and `turn_of`, on it.
    /// Returns when the thread is called away, or sooner. Counts as a call that is running: the engine
    /// is not destroyed meanwhile.
    virtual void attend(const std::string& name, lock_kind kind, const owner_id& owner,
                        idle_thread& thread) {
        static_cast<void>(name);
        static_cast<void>(kind);
        static_cast<void>(owner);
        static_cast<void>(thread);
    }

protected:
    ~lines() = default;
};

/// The one store, among those an address may lead to, that answers for a name.
struct store_instance {
    /// Tells it from every other store, and from itself before a restart. Empty: not known.
    std::string id;
    /// Since when it has been there to remember what it granted.
    std::optional<clock::time_point> since;
};

/// An ability of an engine: it can be a member of a quorum whose tokens always rise, because it obeys
/// `acquire_request::token_floor`.
class votes {
public:
    /// Who answered the last request about `name`, or would answer the next one. Known by the time
    /// that the request completes; costs no request of its own.
    [[nodiscard]] virtual store_instance instance(const std::string& name) const = 0;

protected:
    ~votes() = default;
};

/// What an engine offers beside acquire, renew and release. Null: it does not, and the library does
/// without (it polls, asks one by one) or refuses with a clear word.
struct abilities {
    engines::watching* watching{};
    engines::operators_view* operators{};
    engines::examination* examination{};
    engines::latches* latches{};
    engines::joint_locking* joint_locking{};
    engines::lines* lines{};
    engines::votes* votes{};
};

/// A store, as holdfast sees it.
///
/// Thread safety: all functions, those of its abilities too, may be called from any thread at any time.
/// Completions run exactly once, on any thread, possibly before the call returns, never with a lock
/// of the engine's held. Requests made by one client on one name take effect in the order they were
/// made, as long as the connection lasts. The destructor completes what is pending with
/// `errc::shut_down` and returns when no callback is running.
class HOLDFAST_EXPORT engine {
public:
    virtual ~engine() = default;

    [[nodiscard]] virtual const guarantees& promises() const noexcept = 0;
    /// The same for as long as the engine exists, and valid as long.
    [[nodiscard]] virtual abilities offers() noexcept { return {}; }
    /// The store's address without secrets, for people. Two different stores may look alike in it.
    [[nodiscard]] virtual const std::string& address() const noexcept = 0;
    /// Tells this store from all others, in the same way in every process: engines with equal
    /// identities have the same locks. It says how the store is found and where in it the locks are,
    /// whether or not it can be reached; never who asks (credentials) or how (timeouts, certificates).
    [[nodiscard]] virtual std::string store_identity() const { return address(); }
    /// An engine that never calls back need not override it.
    virtual void attach(client_callbacks callbacks) {
        [[maybe_unused]] const auto unused = std::move(callbacks);
    }

    virtual void acquire(acquire_request request, call how, completion<acquire_reply> done) = 0;
    /// One reply per request, in the same order.
    virtual void renew(std::vector<renew_request> batch, call how,
                       completion<std::vector<renew_reply>> done) = 0;
    virtual void release(release_request request, call how, completion<release_reply> done) = 0;
};

/// Makes an engine for an address. `rest` is what follows the scheme and its colon.
/// Throws `std::system_error` with an `errc` when the store cannot be used.
using engine_factory =
    std::function<std::unique_ptr<engine>(std::string_view rest, const client_identity& identity)>;

/// Makes a scheme known to `client{"scheme:…"}`. Replaces an earlier one of the same name. An empty
/// factory is refused with `errc::invalid_argument`.
HOLDFAST_EXPORT void register_engine(std::string scheme, engine_factory factory);

/// Called with the name of one of holdfast's own engines ("redis") when an address needs it and it is
/// not linked. Loads its library, or throws `std::system_error` with what to do. Any thread may call
/// it.
using engine_loader = void (*)(std::string_view name);

/// For programs that learn at run time which engines they need. Others link them. Null: none is loaded.
HOLDFAST_EXPORT void load_engines_with(engine_loader load) noexcept;

/// Opens the store at `address`, with the registered and the linked engines.
[[nodiscard]] HOLDFAST_EXPORT std::unique_ptr<engine> open(std::string_view address,
                                                           const client_identity& identity);

/// What can be said of an address without opening the store.
struct address_summary {
    /// As `engine::store_identity` says it.
    std::string identity;
    /// As `engine::address` says it. Of an address that makes no sense, no more than the scheme: the
    /// rest may be a password.
    std::string shown;
    /// What the store puts before every name to make its key; of a quorum, each that a member has.
    std::vector<std::string> prefixes{};
};

[[nodiscard]] HOLDFAST_EXPORT address_summary summarise_address(std::string_view address);

/// A fresh identity for this process: random client id, host, pid, program.
[[nodiscard]] HOLDFAST_EXPORT client_identity make_identity(std::string label = {});

}  // namespace v0
}  // namespace holdfast::engines
