#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <common/callback_gate.hpp>
#include <redis/topology/cluster_channels.hpp>
#include <redis/topology/cluster_refresh.hpp>
#include <redis/topology/cluster_survey.hpp>
#include <redis/topology/node.hpp>
#include <redis/topology/redirect.hpp>
#include <redis/topology/router.hpp>
#include <redis/topology/slot_map.hpp>

namespace holdfast::engines::redis {

/// Several masters that share the slots among them.
///
/// A thread of its own fetches the map again when a server redirects a request, is lost, does not serve
/// its channels or says that the cluster is down, and every few seconds. The map comes from the first
/// server that answers; servers in doubt are asked last. Servers that are masters no more are given a
/// moment to answer, then dropped.
class cluster final : public router, private cluster_channels::servers {
public:
    cluster(const address& given, events told, cluster_use use);
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;
    ~cluster() override;

    [[nodiscard]] failure connect(clock::time_point deadline) override;
    void send(std::uint16_t slot, lane path, connection::encode encoder, call terms,
              connection::done finished) override;
    [[nodiscard]] std::vector<std::uint16_t> a_slot_of_each_master() override;
    [[nodiscard]] std::size_t slots_of_nobody() override;

    void subscribe(const channel_place& place) override;
    void unsubscribe(const channel_place& place) override;
    [[nodiscard]] bool subscribed(const channel_place& place) const override;
    void attend(std::uint16_t slot, idle_thread& attendant,
                const std::function<bool()>& others_listen) override;
    [[nodiscard]] const std::string& publish_command() const noexcept override {
        return publish_command_;
    }
    [[nodiscard]] bool clustered() const noexcept override { return true; }
    [[nodiscard]] std::uint32_t replicas_of(std::uint16_t slot) const override;
    [[nodiscard]] store_instance instance_of(std::uint16_t slot) const override;
    [[nodiscard]] std::uint64_t commands_sent() const override;

private:
    using guard = std::unique_lock<std::mutex>;

    /// How often a request may be sent elsewhere.
    static constexpr int most_hops = 5;
    /// For one server to tell us its map.
    static constexpr std::chrono::milliseconds survey_patience{500};
    /// Servers that are asked when what they say is in doubt.
    static constexpr int most_opinions = 3;
    /// For a server that is a master no more to say so.
    static constexpr std::chrono::milliseconds farewell{250};
    /// A request on its way from server to server.
    struct routed_request {
        std::uint16_t slot{};
        lane path{};
        connection::encode encode;
        clock::time_point deadline;
        connection::done finished;
        int hops{};
    };
    enum class manner : std::uint8_t { plain, asking };

    struct former_node {
        std::shared_ptr<node> server;
        clock::time_point since;
        bool reset{};
    };

    // Getting commands to their server.
    void dispatch(const std::shared_ptr<routed_request>& sent, call terms);
    [[nodiscard]] std::optional<node_address> any_master() const;
    void go(const std::shared_ptr<routed_request>& sent, const std::shared_ptr<node>& to, manner style,
            call terms);
    void returned(const std::shared_ptr<routed_request>& sent, const node& from,
                  connection::result result);
    void follow(const std::shared_ptr<routed_request>& sent, const redirect& target,
                const value& answer);
    void go_on(const std::shared_ptr<routed_request>& sent, const redirect& target);

    // Keeping the map.
    [[nodiscard]] cluster_survey first_survey(clock::time_point deadline);
    void background();
    void refresh(guard& lock);
    [[nodiscard]] std::optional<cluster_survey> newest_survey(guard& lock);
    [[nodiscard]] std::vector<node_address> servers_to_ask() const;
    [[nodiscard]] cluster_survey ask(const node_address& address, guard& lock);
    void adopt(slot_map map);
    void inherit_replicas(const slot_map& before);
    [[nodiscard]] std::uint32_t replicas_seen(const node_address& master) const;
    void dismiss(guard& lock);
    void lost(const node_address& server);
    void moved(std::uint16_t slot, const node_address& to);
    void moved_away(const std::string& channel, const node_address& from);
    // With the lock held.
    [[nodiscard]] std::shared_ptr<node> node_at(const node_address& server);
    [[nodiscard]] subscriber* known_subscriber(const node_address& server) const override;
    [[nodiscard]] subscriber& subscriber_at(const node_address& server) override;
    void want_refresh() override;

    const address address_;
    const events told_;
    const cluster_use use_;
    callback_gate gate_;
    /// Settled before anything is sent.
    std::string publish_command_{"publish"};

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<bool> closed_{false};
    slot_map map_;
    std::uint64_t epoch_{};
    std::map<node_address, std::shared_ptr<node>> nodes_;
    std::vector<former_node> former_;
    /// When a server was last lost; it is asked last.
    std::map<node_address, clock::time_point> losses_;
    std::map<node_address, std::uint32_t> most_replicas_;
    cluster_channels channels_{map_, *this};
    std::uint64_t commands_before_{};

    cluster_refresh refresh_;
    std::jthread thread_;
};

}  // namespace holdfast::engines::redis
