// An engine for a store with sessions and ordered nodes. The store is a tree inside this process, where
// others have the client library of etcd or ZooKeeper. `make_node_engine` does the rest.
#include "tree_store.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tree.hpp"

using namespace holdfast::engines;
using holdfast::clock;

namespace {

struct tree_watch final : subscription {
    tree_watch(std::shared_ptr<tree> store, tree::watch watched)
        : server{std::move(store)}, self{std::make_shared<tree::watch>(std::move(watched))} {
        server->perform([&] {
            server->watches.insert(self);
            server->tell(self->name);  // it is in place
        });
    }
    ~tree_watch() override {
        server->perform([&] { server->watches.erase(self); });
    }
    bool active() const noexcept override { return true; }
    const std::shared_ptr<tree> server;
    const std::shared_ptr<tree::watch> self;
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
        done(server_->perform([&] {
            server_->sessions[++server_->revision] = {ttl, clock::now() + ttl};
            return session_reply{.session = server_->revision, .ttl = ttl};
        }));
    }
    void keep_alive(session_id id, call, completion<session_reply> done) override {
        done(server_->perform([&] {
            const auto found = server_->sessions.find(id);
            if (found == server_->sessions.end()) {
                return session_reply{.error = {holdfast::errc::lost, "the session is over"}};
            }
            found->second.ends = clock::now() + found->second.ttl;
            return session_reply{.session = id, .ttl = found->second.ttl};
        }));
    }
    void close_session(session_id id, call, completion<remove_reply> done) override {
        server_->perform([&] { server_->sessions.erase(id); });
        done({});
    }
    void create(create_request asked, call, completion<create_reply> done) override {
        done(server_->perform([&] {
            auto& queue = server_->queues[asked.name];
            if (!server_->sessions.contains(asked.session)) {
                return create_reply{.error = {holdfast::errc::lost, "the session is over"}};
            }
            create_reply reply;
            if (queue.empty() || !asked.only_if_empty) {
                const auto place = ++server_->revision;
                reply.created = {std::to_string(place), place, place, asked.session, asked.claim};
                queue.push_back(*reply.created);
            }
            reply.queue = queue;
            return reply;
        }));
    }
    void read(std::string name, std::string, call, completion<queue_reply> done) override {
        done(server_->perform([&] { return queue_reply{.queue = server_->queues[name]}; }));
    }
    void remove(std::string name, queue_node node, call, completion<remove_reply> done) override {
        server_->perform([&] {
            server_->remove_if(name, [&](const auto& each) { return each.place == node.place; });
        });
        done({});
    }
    std::unique_ptr<subscription> watch(std::string name, std::vector<queue_node>,
                                        std::function<void()> changed) override {
        return std::make_unique<tree_watch>(server_, tree::watch{std::move(name), std::move(changed)});
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
    register_engine("tree", [server = std::make_shared<tree>()](std::string_view, const auto& client) {
        return make_node_engine(std::make_unique<tree_store>(server), client);
    });
}
