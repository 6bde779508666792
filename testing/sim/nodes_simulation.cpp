#include <holdfast/testing/sim/nodes_simulation.hpp>

#include <memory>
#include <nodes_client.hpp>
#include <nodes_server.hpp>
#include <vector>

namespace holdfast::testing::sim {

namespace {

constexpr std::uint64_t most_node_events = 200'000;

class nodes_world {
public:
    explicit nodes_world(std::uint64_t seed)
        : stage_{seed}, referee_{stage_}, terms_{draw_terms()}, server_{stage_, draw_layout()} {
        calm_ = stage_.one_in(4);
        weather_.calm = calm_;
        if (!calm_) {
            const auto maybe = [&](std::uint32_t least) {
                return stage_.one_in(2) ? 0 : least + stage_.pick(40);
            };
            weather_.lost_one_in = maybe(8);
            weather_.late_one_in = maybe(12);
            weather_.refused_one_in = maybe(8);
            weather_.news_lost_one_in = maybe(3);
            weather_.news_repeated_one_in = maybe(3);
        }
        server_.on_removal([this](const std::string& name, const engines::queue_node& node) {
            for (auto& each : clients_) {
                each->news(name, node);
            }
        });
        const auto clients = 2 + stage_.pick(3);
        for (std::uint32_t number = 0; number < clients; ++number) {
            clients_.push_back(std::make_unique<nodes_client>(stage_, referee_, server_, up_, weather_,
                                                              terms_, number));
        }
        plan_faults();
    }

    nodes_result run() {
        for (auto& each : clients_) {
            each->start();
        }
        // All have their locks by then, if nobody is forgotten: holds, outages and ttls are short.
        play_until(faults_end_ + 60 * terms_.ttl);
        for (const auto& each : clients_) {
            if (!each->finished()) {
                referee_.complain("somebody waits for ever:" + each->waits_for());
            }
        }
        // Then all sessions are idle.
        play_until(stage_.now() + 4 * terms_.ttl + 5s);
        for (const auto& [name, queue] : server_.queues()) {
            if (!queue.empty()) {
                referee_.complain("a node was forgotten: " + name + " " + queue.front().claim.label);
            }
        }
        if (!server_.sessions().empty()) {
            referee_.complain("a session was forgotten");
        }
        if (stage_.events() >= most_node_events) {
            referee_.complain("it never comes to rest");
        }
        nodes_result result{referee_.violation(), referee_.grants(), 0, stage_.events()};
        for (const auto& each : clients_) {
            result.turns += each->turns();
        }
        return result;
    }

private:
    [[nodiscard]] nodes_terms draw_terms() {
        return {.ttl = std::chrono::duration_cast<std::chrono::milliseconds>(stage_.between(300ms, 2s)),
                .rounds = 1 + static_cast<int>(stage_.pick(3)),
                .users = 1 + stage_.pick(3)};
    }

    [[nodiscard]] nodes_layout draw_layout() {
        return {.tells_queue = stage_.one_in(2),
                .tells_little = stage_.one_in(2),
                .reuses_ids = stage_.one_in(2),
                .longest_ttl = stage_.one_in(3) ? terms_.ttl / 2 : std::chrono::milliseconds{1h}};
    }

    void plan_faults() {
        faults_end_ = stage_.now() + 4 * terms_.ttl;
        stage_.at(faults_end_, [this] { weather_ = {.calm = calm_}; });
        if (calm_) {
            return;
        }
        const auto faults = stage_.pick(6);
        for (std::uint32_t number = 0; number < faults; ++number) {
            stage_.after(stage_.between(1ms, 3 * terms_.ttl), [this] { strike(); });
        }
    }

    void strike() {
        auto& client = *clients_[stage_.pick(static_cast<std::uint32_t>(clients_.size()))];
        switch (stage_.pick(6)) {
            case 0:
                client.pause(stage_.between(1ms, terms_.ttl * 3 / 2));
                break;
            case 1:
                client.crash();
                break;
            case 2:
                up_ = false;
                stage_.after(stage_.between(1ms, terms_.ttl), [this] {
                    up_ = true;
                    server_.restart();
                    for (auto& each : clients_) {
                        each->break_watches();
                    }
                });
                break;
            case 3:
                client.break_watches();
                break;
            case 4:
                remove_waiter();
                break;
            default:
                revoke();
                break;
        }
    }

    /// An operator removes the node of somebody who holds something.
    void revoke() {
        for (const auto& [name, queue] : server_.queues()) {
            for (const auto& node : queue) {
                if (referee_.revoke(name, node.token)) {
                    const auto victim = node;
                    const auto where = name;
                    server_.remove(where, victim);
                    for (auto& each : clients_) {
                        each->node_removed(where, victim.id);
                    }
                    return;
                }
            }
        }
    }

    /// Nobody is told of it.
    void remove_waiter() {
        const auto queue = server_.queues().find("mutex");
        if (queue != server_.queues().end() && queue->second.size() > 1) {
            const auto behind = 1 + stage_.pick(static_cast<std::uint32_t>(queue->second.size() - 1));
            const auto victim = queue->second[behind];
            server_.remove("mutex", victim);
        }
    }

    void play_until(clock::time_point end) {
        bool over = false;
        stage_.at(end, [&] { over = true; });
        while (!over && referee_.violation().empty() && stage_.events() < most_node_events &&
               stage_.step()) {
        }
    }

    quorum_stage stage_;
    nodes_referee referee_;
    const nodes_terms terms_;
    nodes_server server_;
    bool calm_{};
    bool up_{true};
    nodes_weather weather_;
    clock::time_point faults_end_;
    std::vector<std::unique_ptr<nodes_client>> clients_;
};

}  // namespace

nodes_result run_nodes(std::uint64_t seed) {
    return nodes_world{seed}.run();
}

}  // namespace holdfast::testing::sim
