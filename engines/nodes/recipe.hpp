#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/ordered_nodes.hpp>

/// The recipe of locks over ordered nodes, as a machine without clock, thread or I/O: its inputs are
/// the client's calls, the store's answers and the time, its output is a list of actions.
namespace holdfast::engines::nodes {

using call_id = std::uint64_t;
using request_id = std::uint64_t;
using watch_id = std::uint64_t;

// Requests for the store. Each is answered with the function of the same subject, exactly once.
struct send_open {
    request_id id{};
    std::chrono::milliseconds ttl{};
    clock::time_point deadline;
};
struct send_keep_alive {
    request_id id{};
    session_id session{};
    clock::time_point deadline;
};
struct send_close {
    request_id id{};
    session_id session{};
    clock::time_point deadline;
};
struct send_create {
    request_id id{};
    create_request request;
    clock::time_point deadline;
};
struct send_read {
    request_id id{};
    std::string name;
    std::string label;
    clock::time_point deadline;
};
struct send_remove {
    request_id id{};
    std::string name;
    queue_node node;
    clock::time_point deadline;
};
struct start_watch {
    watch_id id{};
    std::string name;
    std::vector<queue_node> nodes;
};
struct stop_watch {
    watch_id id{};
};

// News for the client.
struct answer_acquire {
    call_id id{};
    acquire_reply reply;
};
struct answer_renew {
    call_id id{};
    std::vector<renew_reply> replies;
};
struct answer_release {
    call_id id{};
    release_reply reply;
};
struct tell_turn {
    std::string name;
    owner_id owner;
    std::optional<turn_grant> granted;
};
/// All who watch the name.
struct tell_hint {
    std::string name;
};
struct tell_holds_changed {};

using action = std::variant<send_open, send_keep_alive, send_close, send_create, send_read, send_remove,
                            start_watch, stop_watch, answer_acquire, answer_renew, answer_release,
                            tell_turn, tell_hint, tell_holds_changed>;
using actions = std::vector<action>;

struct recipe_settings {
    std::chrono::milliseconds granularity{1};
    std::chrono::milliseconds minimum_ttl{1};
    std::uint64_t tokens_per_node{1};
    /// For requests that no caller waits for.
    std::chrono::milliseconds request_timeout{std::chrono::seconds{2}};
    std::chrono::milliseconds shortest_pause{20};
    std::chrono::milliseconds longest_pause{std::chrono::seconds{1}};
    /// How long a session that nobody uses is kept, so that the next lock need not wait for a new one.
    std::chrono::milliseconds idle_session{std::chrono::minutes{1}};
    /// A waiter in line that was told nothing for so long reads the queue again.
    std::chrono::milliseconds recheck{std::chrono::seconds{10}};
};

/// What the queue says of a node in it.
struct standing {
    enum class verdict : std::uint8_t {
        missing,
        granted,
        blocked,
        wrong_kind
    } result{verdict::missing};
    /// blocked: the nodes on which it depends. When one of them is gone, it may be its turn.
    std::vector<queue_node> blockers;
};

/// `mine` are the nodes of the claim itself, which are never in its way. The first one counts.
///
/// - Exclusive: nobody may be ahead; depends on the node next to it.
/// - Shared: no writer may be ahead; depends on the last of them.
/// - Permits: they and all ahead of them must fit in the limit; depend on all ahead of them.
[[nodiscard]] standing judge(const std::vector<queue_node>& queue, const queue_node& node,
                             const std::vector<std::string>& own_labels);

/// All claims of one client.
///
/// A claim has one node, and two while it is being converted:
///
///     state       meaning                                      next
///     preparing   its session is opened or kept alive          reading, creating
///     reading     would it be granted? (no place in line)      creating, busy
///     creating    the node is created, its place is looked at  held, in_line, doubtful, leaving
///     in_line     others are ahead; their nodes are watched    held, leaving
///     held        granted                                      converting, lingering, leaving
///     converting  another node takes the place of the first    held
///     lingering   a node of another session keeps it taken     held, leaving
///     doubtful    the creation was not answered                creating (asked again), leaving
///     leaving     its nodes are removed, again and again       sweeping, gone
///     sweeping    they are gone, but a creation that was not   gone
///                 answered may still make one
///
/// A session that ends takes all its claims with it, whatever their state. It counts as ended when the
/// store says so, or when its ttl has passed since the last keep-alive *left*.
///
/// Calls for one claim, and those made after a call that waits, are performed one after another.
///
/// Thread safety: none.
class recipe {
public:
    recipe(std::string client, const recipe_settings& settings);

    [[nodiscard]] actions acquire(call_id id, acquire_request request, clock::time_point deadline,
                                  clock::time_point now);
    [[nodiscard]] actions renew(call_id id, std::vector<renew_request> batch,
                                clock::time_point deadline, clock::time_point now);
    [[nodiscard]] actions release(call_id id, release_request request, clock::time_point deadline,
                                  clock::time_point now);
    /// How many watch the name from now on.
    [[nodiscard]] actions watchers(const std::string& name, std::uint32_t count);
    /// Whether those who watch the name hear news of it.
    [[nodiscard]] bool hears(const std::string& name) const;

    [[nodiscard]] actions on_session(request_id id, const session_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_closed(request_id id, const remove_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_created(request_id id, const create_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_read(request_id id, const queue_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_removed(request_id id, const remove_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_changed(watch_id id, clock::time_point now);
    [[nodiscard]] actions on_session_ended(session_id session, clock::time_point now);
    [[nodiscard]] actions on_node_removed(const std::string& name, const std::string& id,
                                          clock::time_point now);
    [[nodiscard]] actions on_time(clock::time_point now);
    /// When `on_time` is to be called.
    [[nodiscard]] clock::time_point next_wake() const;

    /// Answers all calls with `shut_down` and closes the sessions, except where a name lingers.
    [[nodiscard]] actions shut_down(clock::time_point now);
    /// Whether sessions are still being closed.
    [[nodiscard]] bool closing() const noexcept { return !closing_.empty(); }

private:
    using claim_id = std::uint64_t;
    using session_key = std::uint64_t;

    struct waiting_call {
        call_id id{};
        clock::time_point deadline;
        clock::time_point asked_at;
        std::variant<acquire_request, release_request> request;

        [[nodiscard]] bool acquires() const noexcept { return request.index() == 0; }
        [[nodiscard]] const std::string& name() const noexcept;
        [[nodiscard]] const owner_id& owner() const noexcept;
    };

    enum class state : std::uint8_t {
        preparing,
        reading,
        creating,
        in_line,
        held,
        converting,
        lingering,
        doubtful,
        leaving,
        sweeping,
    };

    struct claim {
        claim_id id{};
        state now_in{state::preparing};
        session_key session{};
        /// The last request for it.
        acquire_request terms;
        clock::time_point asked_at;
        /// The call that is being performed.
        std::optional<waiting_call> caller;
        /// The request under way whose answer counts.
        request_id request{};
        /// Those that may be there. The first is the one that counts, unless it is being converted.
        std::vector<queue_node> nodes;
        /// Of all nodes that were ever asked for.
        std::vector<std::string> labels;
        /// Until then, creations that were not answered may still take effect.
        clock::time_point doubt_until{};
        /// As it is held.
        claim_mode mode{claim_mode::exclusive};
        fencing_token token;
        std::uint32_t token_count{1};
        bool was_held{};
        /// Converting: the node that takes the place of the others is being created.
        bool replacing{};
        /// Held, in line, doubtful: it ends then, unless it is asked for again.
        clock::time_point expires;
        clock::time_point wakes{clock::time_point::max()};
        clock::duration pause{};
        watch_id watch{};
        std::vector<queue_node> blockers;
        /// The watch spoke while the queue was being read.
        bool changed{};
        clock::time_point read_at;
        /// What the caller is told when all that is to be removed is gone.
        std::optional<acquire_reply> verdict;
        /// Converting: nodes that are no longer needed.
        std::vector<queue_node> surplus;
        session_key linger_session{};
        /// Keeps the name taken after its owner has let go.
        bool lingers{};
        /// It is in the way of the name's news: see `update_watch`.
        bool mutes{};
    };

    struct session_record {
        session_id id{};
        /// As it was asked for, and as it was granted.
        std::chrono::milliseconds ttl{};
        std::chrono::milliseconds granted{};
        bool open{};
        /// An open or a keep-alive is under way, since then.
        bool asking{};
        clock::time_point sent_at;
        /// When the last one left that was answered.
        clock::time_point confirmed_at;
        clock::time_point valid_until;
        clock::time_point next_keep_alive{clock::time_point::max()};
        clock::time_point used_at;
        std::set<claim_id> claims;
        /// Only for a linger: when that is over.
        std::optional<clock::time_point> ends_at;
    };

    /// A session that is not used any more, while the store may still have it.
    struct closing_session {
        session_id id{};
        clock::time_point gone_at;
        clock::time_point wakes{clock::time_point::max()};
        clock::duration pause{};
    };

    struct name_record {
        std::set<claim_id> claims;
        std::deque<waiting_call> backlog;
        std::uint32_t watchers{};
        /// Claims that mute the news.
        std::uint32_t muted{};
        watch_id watch{};
        bool hears{};
    };

    struct renewal {
        call_id id{};
        clock::time_point deadline;
        clock::time_point asked_at;
        std::vector<renew_request> batch;
        std::vector<std::optional<renew_reply>> replies;
    };

    // Calls.
    void take(waiting_call call, clock::time_point now);
    void start(waiting_call call, clock::time_point now);
    void start_acquire(waiting_call call, clock::time_point now);
    void start_release(waiting_call call, clock::time_point now);
    void perform_backlog(const std::string& name, clock::time_point now);
    void refuse(const waiting_call& call, const failure& why);
    void answer(claim& who, const acquire_reply& reply);
    void answer(claim& who, const release_reply& reply);
    void fail(claim& who, const failure& why);
    void answer_granted(claim& who, clock::time_point now);
    void settle_renewals(clock::time_point now);
    [[nodiscard]] bool settle(renewal& call, clock::time_point now);
    void fail_renewals(session_key session, const failure& why);

    // One claim.
    [[nodiscard]] claim* find(const std::string& name, const owner_id& owner);
    [[nodiscard]] claim* find_leftover(const std::string& name, const owner_id& owner);
    [[nodiscard]] claim* asked_by(request_id id);
    [[nodiscard]] claim& add_claim(const waiting_call& call, clock::time_point now);
    void prepare(claim& who, clock::time_point now);
    void begin(claim& who, clock::time_point now);
    void create(claim& who, claim_mode mode, session_key session, bool only_if_empty,
                clock::time_point now);
    void send_creation(claim& who, session_key session, bool only_if_empty, clock::time_point now);
    void read(claim& who, clock::time_point now);
    void on_creation_failed(claim& who, const failure& why, clock::time_point now);
    void on_reading_failed(claim& who, const failure& why, clock::time_point now);
    void look_before(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void look(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void grant(claim& who, clock::time_point now);
    void stand_in_line(claim& who, std::vector<queue_node> blockers, clock::time_point now);
    void watch_blockers(claim& who, std::vector<queue_node> blockers);
    void stop_watching(claim& who);
    void verify_hold(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void look_before_conversion(claim& who, const std::vector<queue_node>& queue,
                                clock::time_point now);
    void convert(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void remove_surplus(claim& who, clock::time_point now);
    void start_linger(claim& who, std::chrono::milliseconds linger, clock::time_point now);
    void linger(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void leave(claim& who, clock::time_point now);
    void remove_next(claim& who, clock::time_point now);
    void look_for_forgotten(claim& who, const std::vector<queue_node>& queue, clock::time_point now);
    void left(claim& who, clock::time_point now);
    void retry_later(claim& who, clock::time_point now);
    void lose(claim& who, const failure& why, clock::time_point now);
    void detach(const claim& who);
    void forget(claim_id id);
    void enter(claim& who, state next);
    void wake(claim& who, clock::time_point at);
    void on_wake(claim& who, clock::time_point now);
    [[nodiscard]] clock::time_point deadline_of(const claim& who, clock::time_point now) const;

    // Sessions.
    [[nodiscard]] session_key session_for(std::chrono::milliseconds ttl, clock::time_point now);
    [[nodiscard]] session_key make_session(std::chrono::milliseconds ttl, clock::time_point now);
    void ask(session_key key, clock::time_point now);
    void tell_claims(session_key key, const failure& trouble, clock::time_point now);
    void end_session(session_key key, bool known_to_store, clock::time_point now);
    void start_closing(session_id id, std::chrono::milliseconds ttl, clock::time_point now);
    void close(std::uint64_t key, closing_session& session, clock::time_point now);
    void expire(clock::time_point now);
    [[nodiscard]] bool fresh(const session_record& session, clock::time_point now) const;
    [[nodiscard]] std::optional<std::chrono::milliseconds> granted_ttl(const claim& who,
                                                                       std::chrono::milliseconds ttl,
                                                                       clock::time_point since) const;

    void update_watch(const std::string& name);
    void tidy(const std::string& name);
    [[nodiscard]] actions finish(clock::time_point now);
    [[nodiscard]] request_id ask_for(std::uint64_t subject);
    template <class Action>
    void emit(Action wanted) {
        actions_.emplace_back(std::move(wanted));
    }

    const std::string client_;
    const recipe_settings settings_;
    std::uint64_t last_id_{};
    std::map<claim_id, claim> claims_;
    /// The claim that calls of this owner are about. Not those that are only cleaned up.
    std::map<std::pair<std::string, owner_id>, claim_id> by_owner_;
    std::map<std::string, name_record> names_;
    std::map<session_key, session_record> sessions_;
    std::map<std::uint64_t, closing_session> closing_;
    std::vector<renewal> renewals_;
    /// Requests under way, and the claim or session they are for.
    std::map<request_id, std::uint64_t> requests_;
    std::map<watch_id, claim_id> claim_watches_;
    std::map<watch_id, std::string> name_watches_;
    std::set<std::pair<clock::time_point, claim_id>> timers_;
    /// Names with a backlog, and those whose backlog may go on.
    std::set<std::string> delayed_;
    std::vector<std::string> ready_;
    bool holds_changed_{};
    bool shut_down_{};
    actions actions_;
};

}  // namespace holdfast::engines::nodes
