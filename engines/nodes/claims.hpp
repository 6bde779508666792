#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nodes/name_news.hpp>
#include <nodes/outbox.hpp>
#include <nodes/queue.hpp>
#include <nodes/sessions.hpp>

namespace holdfast::engines::nodes {

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
struct claim {
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

    claim_id id{};
    state current{state::preparing};
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
    /// The watch spoke while the queue was being read, or could not be started.
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

/// The claims of one client, from the call to the last removed node. A session that ends takes all its
/// claims with it, whatever their state.
///
/// Thread safety: none.
class claim_table {
public:
    /// `client`: the beginning of all labels.
    claim_table(std::string client, const recipe_settings& settings, outbox& outbox,
                session_pool& sessions, name_news& news)
        : client_{std::move(client)},
          settings_{settings},
          outbox_{outbox},
          sessions_{sessions},
          news_{news} {}

    /// The claim that calls of this owner are about.
    [[nodiscard]] claim* find(const std::string& name, const owner_id& owner);

    void start_acquire(waiting_call call, clock::time_point now);
    void start_release(waiting_call call, clock::time_point now);
    void on_created(request_id id, const create_reply& reply, clock::time_point now);
    void on_read(request_id id, const queue_reply& reply, clock::time_point now);
    void on_removed(request_id id, const remove_reply& reply, clock::time_point now);
    void on_changed(watch_id id, clock::time_point now);
    void on_watch_failed(watch_id id, clock::time_point now);
    void on_node_removed(const std::string& name, const std::string& id, clock::time_point now);
    /// The session was confirmed, or has this trouble.
    void on_session(session_key key, const failure& trouble, clock::time_point now);
    void end_session(session_key key, bool known_to_store, clock::time_point now);
    /// Ends the sessions that are over by our clock.
    void expire(clock::time_point now);
    void on_time(clock::time_point now);
    [[nodiscard]] clock::time_point next_wake() const;
    /// Answers all calls with this reason.
    void end(const failure& reason);

    /// The names of the claims whose callers have got an answer since the last time.
    [[nodiscard]] std::vector<std::string> take_answered() { return std::exchange(answered_, {}); }
    /// Whether a hold was lost since the last time.
    [[nodiscard]] bool take_loss() { return std::exchange(loss_, false); }

private:
    [[nodiscard]] const std::set<claim_id>& claims_of(const std::string& name) const;
    void answer(claim& claim, const acquire_reply& reply);
    void answer(claim& claim, const release_reply& reply);
    void fail(claim& claim, const failure& reason);
    void answer_granted(claim& claim, clock::time_point now);
    void set_token(claim& claim, const queue_node& node) const;
    void stay_held(claim& claim);
    void doubt(claim& claim, const failure& reason);
    void go_on_later(claim& claim, const failure& reason, clock::time_point now);
    [[nodiscard]] claim* find_leftover(const std::string& name, const owner_id& owner);
    [[nodiscard]] claim* asked_by(request_id id);
    [[nodiscard]] claim& add_claim(const waiting_call& call, clock::time_point now);
    void prepare(claim& claim, clock::time_point now);
    void begin(claim& claim, clock::time_point now);
    void create(claim& claim, claim_mode mode, session_key session, bool only_if_empty,
                clock::time_point now);
    void send_creation(claim& claim, session_key session, bool only_if_empty, clock::time_point now);
    void read(claim& claim, clock::time_point now);
    void on_creation_failed(claim& claim, const failure& reason, clock::time_point now);
    void on_reading_failed(claim& claim, const failure& reason, clock::time_point now);
    void look_before(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void look(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void grant(claim& claim, clock::time_point now);
    void stand_in_line(claim& claim, std::vector<queue_node> blockers, clock::time_point now);
    void watch_blockers(claim& claim, std::vector<queue_node> blockers);
    void stop_watching(claim& claim);
    void verify_hold(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void look_before_conversion(claim& claim, const std::vector<queue_node>& queue,
                                clock::time_point now);
    void convert(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void remove_surplus(claim& claim, clock::time_point now);
    void start_linger(claim& claim, std::chrono::milliseconds linger, clock::time_point now);
    void linger(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void leave(claim& claim, clock::time_point now);
    void remove_next(claim& claim, clock::time_point now);
    void look_for_forgotten(claim& claim, const std::vector<queue_node>& queue, clock::time_point now);
    void left(claim& claim, clock::time_point now);
    void retry_later(claim& claim, clock::time_point now);
    void lose(claim& claim, const failure& reason, clock::time_point now);
    void detach(const claim& claim);
    void forget(claim_id id);
    void enter(claim& claim, claim::state next);
    void wake(claim& claim, clock::time_point at);
    void on_wake(claim& claim, clock::time_point now);
    [[nodiscard]] clock::time_point deadline_of(const claim& claim, clock::time_point now) const;

    const std::string client_;
    const recipe_settings& settings_;
    outbox& outbox_;
    session_pool& sessions_;
    name_news& news_;
    std::map<claim_id, claim> claims_;
    /// Not those that are only cleaned up.
    std::map<std::pair<std::string, owner_id>, claim_id> by_owner_;
    std::map<std::string, std::set<claim_id>> by_name_;
    std::map<watch_id, claim_id> watches_;
    std::set<std::pair<clock::time_point, claim_id>> timers_;
    std::vector<std::string> answered_;
    bool loss_{};
};

}  // namespace holdfast::engines::nodes
