#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

/// Engines for stores that have sessions and ordered nodes: etcd, ZooKeeper. The engine implements
/// `node_store`, seven small requests. `make_node_engine` adds the recipe: queues, readers and writers,
/// permits, giving up, sessions that end, removal that is repeated until it is certain. Users of locks
/// need nothing from this header.
namespace holdfast::engines {
inline namespace v0 {

/// A session of the store. It ends by itself unless it is kept alive, and takes its nodes with it.
using session_id = std::uint64_t;

/// What a new node stands for. The engine writes it in the layout that it shares with other programs.
struct node_claim {
    /// Unique: a node whose creation was not answered is found again by its label. It begins with the
    /// client's id and has no `/`.
    std::string label;
    claim_mode mode{claim_mode::exclusive};
    std::uint32_t permits{1};
    std::uint32_t limit{0};
    lock_kind kind{lock_kind::mutex};
};

/// A node in the queue of a name. All nodes of one name are in one queue, whatever their kind, and
/// whichever program made them.
struct queue_node {
    /// Under which the store has it.
    std::string id;
    /// Its place in the queue. A node that is created later has a larger one.
    std::uint64_t place{};
    /// Larger for every node that is created later, also after the name was not in use: etcd's create
    /// revision, ZooKeeper's czxid. Zero is allowed for nodes whose label was not asked for.
    std::uint64_t token{};
    /// Whose node it is. Zero is allowed for nodes whose label was not asked for.
    session_id session{};
    /// `label` is empty for nodes of other programs.
    node_claim claim{};
};

struct session_reply {
    session_id session{};
    /// What the store granted.
    std::chrono::milliseconds ttl{};
    /// `errc::lost`: the session is over.
    failure error{};
};

struct create_request {
    std::string name;
    session_id session{};
    node_claim claim;
    /// Create it only if the queue is empty, in the same step. Otherwise the reply has no node.
    bool only_if_empty{};
};

struct create_reply {
    std::optional<queue_node> created{};
    /// The queue after that, in any order, if the store tells in the same step: always when the node
    /// was not created. Nodes behind the new one may be left out.
    std::optional<std::vector<queue_node>> queue{};
    /// `errc::lost`: the session is over. `errc::outcome_unknown`: the node may be there, or come
    /// later.
    failure error{};
};

struct queue_reply {
    /// In any order.
    std::vector<queue_node> queue{};
    failure error{};
};

struct remove_reply {
    /// None: the node is not there any more.
    failure error{};
};

/// What a store tells by itself. May be called from any thread, but not from inside `attach`.
struct node_events {
    /// The session is over, and its nodes are gone.
    std::function<void(session_id session)> session_ended{};
    /// Somebody else may have removed a node of ours (an operator, another program): the queue is read.
    /// From an engine that never calls it, the holder does not learn of it.
    std::function<void(const std::string& name, const std::string& id)> node_removed{};
};

/// A store with sessions and ordered nodes, as the recipe sees it.
///
/// Thread safety: all functions may be called from any thread at any time. Completions run exactly
/// once, no later than the call's deadline, on any thread, possibly before the call returns, never with
/// a mutex of the store's locked. Requests of one client take effect in the order in which they were
/// made, as long as the connection lasts. The destructor completes what is pending with
/// `errc::shut_down` and returns when no callback is running.
///
/// Failure: `store_unavailable` means that nothing was changed, `outcome_unknown` that it may have
/// been.
class HOLDFAST_EXPORT node_store {
public:
    virtual ~node_store() = default;

    /// Ttls are those of sessions.
    [[nodiscard]] virtual const guarantees& promises() const noexcept = 0;
    [[nodiscard]] virtual const std::string& address() const noexcept = 0;
    [[nodiscard]] virtual std::string store_identity() const { return address(); }
    /// How many fencing tokens a node stands for. A node's tokens begin at `token * tokens_per_node`,
    /// so programs that hand a lock over between their threads need more than one.
    [[nodiscard]] virtual std::uint64_t tokens_per_node() const noexcept { return 1; }
    virtual void attach(node_events events) = 0;

    /// The ttl is a multiple of `promises().ttl_granularity`.
    virtual void open_session(std::chrono::milliseconds ttl, call limits,
                              completion<session_reply> done) = 0;
    virtual void keep_alive(session_id session, call limits, completion<session_reply> done) = 0;
    /// Ends it at once. A session that is over already is no failure.
    virtual void close_session(session_id session, call limits, completion<remove_reply> done) = 0;

    /// Creates a node behind all nodes of the queue. A node that has the label already is the answer.
    virtual void create(create_request request, call limits, completion<create_reply> done) = 0;
    /// Reads the queue. The node with this label has its token and its session. The answer knows what
    /// this client's earlier requests have done.
    virtual void read(std::string name, std::string label, call limits,
                      completion<queue_reply> done) = 0;
    /// Removes this very node: never another one that has its id by now.
    virtual void remove(std::string name, queue_node node, call limits,
                        completion<remove_reply> done) = 0;

    /// Calls `changed`, never from inside `watch`, when one of the nodes is gone, also if it was gone
    /// before, and whenever news may have been missed (a new connection, compaction). It may be called
    /// without reason. Without nodes: when any node of the queue is gone, and once as soon as news
    /// flow. The watch may be destroyed from inside `changed`; a last call may still come after that.
    [[nodiscard]] virtual std::unique_ptr<subscription> watch(std::string name,
                                                              std::vector<queue_node> nodes,
                                                              std::function<void()> changed) = 0;
};

/// An engine over a store with ordered nodes: the contract of `engine.hpp`, with the abilities
/// `watching` and `lines`.
[[nodiscard]] HOLDFAST_EXPORT std::unique_ptr<engine> make_node_engine(
    std::unique_ptr<node_store> store, const client_identity& identity);

}  // namespace v0
}  // namespace holdfast::engines
