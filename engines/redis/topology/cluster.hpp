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

#include <common/backoff.hpp>
#include <common/callback_gate.hpp>
#include <redis/topology/cluster_survey.hpp>
#include <redis/topology/node.hpp>
#include <redis/topology/redirect.hpp>
#include <redis/topology/router.hpp>
#include <redis/topology/slot_map.hpp>

namespace holdfast::engines::redis {

/// Several masters that share the slots among them.
///
/// The functions are in three files: getting commands to their server and following redirections
/// (cluster.cpp), keeping the map (cluster_refresh.cpp), channels (cluster_channels.cpp).
///
/// The map is fetched anew, by a thread of our own, when a server sends us elsewhere, is lost, does not
/// serve its channels or says that the cluster is down (at once, then with growing, jittered pauses),
/// and every few seconds; it comes from whichever server answers, those in doubt last. Servers that are
/// masters no more are given a moment to answer what they have been asked, then dropped.
class cluster final : public router {
public:
    cluster(const address& where, events told, cluster_use use);
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;
    ~cluster() override;

    [[nodiscard]] failure connect(clock::time_point deadline) override;
    void send(std::uint16_t slot, lane which, connection::encode what, call how,
              connection::done finished) override;
    [[nodiscard]] std::vector<std::uint16_t> a_slot_of_each_master() override;
    [[nodiscard]] std::size_t slots_of_nobody() override;

    void subscribe(const channel_place& where) override;
    void unsubscribe(const channel_place& where) override;
    [[nodiscard]] bool subscribed(const channel_place& where) const override;
    void attend(std::uint16_t slot, idle_thread& who,
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
    /// Between looks at the map that nothing has prompted.
    static constexpr std::chrono::seconds usual_pause{5};
    /// While there is trouble.
    static constexpr std::chrono::milliseconds longest_pause{500};
    /// For one server to tell us its map.
    static constexpr std::chrono::milliseconds survey_patience{500};
    /// Servers that are asked when what they say is in doubt.
    static constexpr int most_opinions = 3;
    /// For a server that is a master no more to say so.
    static constexpr std::chrono::milliseconds farewell{250};
    /// For a server to serve the channels it should, and between looks whether it does.
    static constexpr std::chrono::seconds channel_patience{1};

    /// A request on its way from server to server.
    struct errand {
        std::uint16_t slot{};
        lane which{};
        connection::encode what;
        clock::time_point deadline;
        connection::done finished;
        int hops{};
    };
    enum class manner : std::uint8_t { plain, asking };

    /// A channel, and where we are subscribed to it. Nowhere: the next look at the map will tell.
    struct attachment {
        channel_place where;
        std::optional<node_address> at;
    };

    struct former_node {
        std::shared_ptr<node> who;
        clock::time_point since;
        bool reset{};
    };

    // Getting commands to their server. cluster.cpp
    void dispatch(const std::shared_ptr<errand>& what, call how);
    [[nodiscard]] std::optional<node_address> whom_to_ask_about_slots() const;
    void go(const std::shared_ptr<errand>& what, const std::shared_ptr<node>& to, manner how_asked,
            call how);
    void returned(const std::shared_ptr<errand>& what, const node& from, connection::result result);
    void follow(const std::shared_ptr<errand>& what, const redirect& where, const value& answer);
    void go_on(const std::shared_ptr<errand>& what, const redirect& where);

    // Keeping the map. cluster_refresh.cpp
    [[nodiscard]] cluster_survey first_survey(clock::time_point deadline);
    void background();
    void refresh(guard& lock);
    [[nodiscard]] std::optional<cluster_survey> newest_survey(guard& lock);
    [[nodiscard]] std::vector<node_address> whom_to_ask() const;
    [[nodiscard]] cluster_survey ask(const node_address& whom, guard& lock);
    void adopt(slot_map map);
    void inherit_replicas(const slot_map& before);
    [[nodiscard]] std::uint32_t replicas_seen(const node_address& master) const;
    void dismiss(guard& lock);
    /// With the lock held.
    void want_refresh();
    void lost(const node_address& who);
    void moved(std::uint16_t slot, const node_address& to);
    [[nodiscard]] std::shared_ptr<node> node_at(const node_address& where);

    // Channels. cluster_channels.cpp; with the lock held.
    [[nodiscard]] channel_style style_of(const channel_place& where) const;
    void attach(attachment& what);
    void attach_all();
    [[nodiscard]] std::optional<node_address> home_of(const attachment& what) const;
    [[nodiscard]] bool serves(const attachment& what) const;
    [[nodiscard]] bool deaf(const node_address& which) const;
    void look_for_deaf_ones();
    void moved_away(const std::string& channel, const node_address& from);

    const address where_;
    const events told_;
    const cluster_use use_;
    callback_gate gate_;
    /// Settled before anything is sent.
    std::string publish_command_{"publish"};
    bool sharded_{};

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
    std::map<std::string, attachment> channels_;
    /// Since when none of the channels at a server has been served.
    std::map<node_address, clock::time_point> deaf_since_;
    std::uint64_t commands_before_{};

    clock::time_point refreshed_{};
    clock::time_point refresh_at_{};
    backoff pauses_;
    std::jthread thread_;
};

}  // namespace holdfast::engines::redis
