// An engine over a store with sessions and ordered nodes. The store is a tree inside this process,
// where others have the client library of etcd or ZooKeeper; `make_node_engine` does the rest.
#include "engine.hpp"

#include <holdfast/ordered_nodes.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace {

using namespace holdfast::engines;
using holdfast::clock;

/// The server. Its thread ends sessions that are not kept alive, and tells of nodes that are gone.
struct tree {
    struct session {
        std::chrono::milliseconds ttl;
        clock::time_point ends;
    };
    struct watch {
        std::string name;
        std::function<void()> changed;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::map<session_id, session> sessions;
    std::map<std::string, std::vector<queue_node>> queues;
    std::uint64_t revision{};
    std::set<std::shared_ptr<watch>> watches;
    std::set<std::string> news;
    std::mutex telling;
    std::jthread thread{[this](const std::stop_token& stop) { work(stop); }};

    void remove_if(const std::string& name, const std::function<bool(const queue_node&)>& matches) {
        if (std::erase_if(queues[name], matches) > 0) {
            news.insert(name);
            changed.notify_all();
        }
    }
    void end_sessions() {
        std::erase_if(sessions, [](const auto& each) { return clock::now() >= each.second.ends; });
        for (const auto& [name, queue] : queues) {
            remove_if(name, [&](const auto& node) { return !sessions.contains(node.session); });
        }
    }
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::vector<std::shared_ptr<watch>> told;
            const std::lock_guard one_round{telling};
            {
                std::unique_lock lock{mutex};
                changed.wait_for(lock, std::chrono::milliseconds{5}, [&] { return !news.empty(); });
                end_sessions();
                std::copy_if(watches.begin(), watches.end(), std::back_inserter(told),
                             [&](const auto& each) { return news.contains(each->name); });
                news.clear();
            }
            for (const auto& each : told) {
                each->changed();
            }
        }
    }
};

class tree_store final : public node_store {
public:
    explicit tree_store(std::shared_ptr<tree> server) : server_{std::move(server)} {}
    // Returns when the server's thread calls nobody.
    ~tree_store() override { const std::lock_guard last_round{server_->telling}; }

    const guarantees& promises() const noexcept override { return promises_; }
    const std::string& address() const noexcept override { return address_; }
    std::uint64_t tokens_per_node() const noexcept override { return 1U << 16U; }
    void attach(node_events) override {}  // nobody else removes nodes; keep_alive tells the rest

    void open_session(std::chrono::milliseconds ttl, call, completion<session_reply> done) override {
        std::unique_lock lock{server_->mutex};
        const auto id = ++server_->revision;
        server_->sessions[id] = {ttl, clock::now() + ttl};
        lock.unlock();
        done({.session = id, .ttl = ttl});
    }
    void keep_alive(session_id id, call, completion<session_reply> done) override {
        session_reply reply{.error = {holdfast::errc::lost, "the session is over"}};
        std::unique_lock lock{server_->mutex};
        server_->end_sessions();
        if (const auto found = server_->sessions.find(id); found != server_->sessions.end()) {
            found->second.ends = clock::now() + found->second.ttl;
            reply = {.session = id, .ttl = found->second.ttl};
        }
        lock.unlock();
        done(std::move(reply));
    }
    void close_session(session_id id, call, completion<remove_reply> done) override {
        std::unique_lock lock{server_->mutex};
        server_->sessions.erase(id);
        server_->end_sessions();
        lock.unlock();
        done({});
    }
    void create(create_request request, call, completion<create_reply> done) override {
        create_reply reply;
        std::unique_lock lock{server_->mutex};
        server_->end_sessions();
        auto& queue = server_->queues[request.name];
        if (!server_->sessions.contains(request.session)) {
            reply.error = {holdfast::errc::lost, "the session is over"};
        } else if (queue.empty() || !request.only_if_empty) {
            const auto place = ++server_->revision;
            reply.created = {std::to_string(place), place, place, request.session, request.claim};
            queue.push_back(*reply.created);
        }
        reply.queue = queue;
        lock.unlock();
        done(std::move(reply));
    }
    void read(std::string name, std::string, call, completion<queue_reply> done) override {
        std::unique_lock lock{server_->mutex};
        server_->end_sessions();
        queue_reply reply{.queue = server_->queues[name]};
        lock.unlock();
        done(std::move(reply));
    }
    void remove(std::string name, queue_node node, call, completion<remove_reply> done) override {
        std::unique_lock lock{server_->mutex};
        server_->remove_if(name, [&](const auto& each) { return each.place == node.place; });
        lock.unlock();
        done({});
    }

    std::unique_ptr<subscription> watch(std::string name, std::vector<queue_node>,
                                        std::function<void()> changed) override {
        struct subscribed final : subscription {
            ~subscribed() override {
                const std::lock_guard lock{server->mutex};
                server->watches.erase(self);
            }
            bool active() const noexcept override { return true; }
            std::shared_ptr<tree> server;
            std::shared_ptr<tree::watch> self;
        };
        auto result = std::make_unique<subscribed>();
        result->server = server_;
        result->self = std::make_shared<tree::watch>(tree::watch{name, std::move(changed)});
        const std::lock_guard lock{server_->mutex};
        server_->watches.insert(result->self);
        server_->news.insert(name);  // the first news: it is in place
        server_->changed.notify_all();
        return result;
    }

private:
    const std::shared_ptr<tree> server_;
    const std::string address_{"tree:"};
    const guarantees promises_{.reach_text = "this process",
                               .tokens = fencing::strict,
                               .shared = true,
                               .permits = true,
                               .fair = true,
                               .minimum_ttl = std::chrono::milliseconds{50},
                               .ttl_granularity = std::chrono::milliseconds{50}};
};

}  // namespace

void register_tree() {
    register_engine(
        "tree", [server = std::make_shared<tree>()](std::string_view, const client_identity& identity) {
            return make_node_engine(std::make_unique<tree_store>(server), identity);
        });
}
