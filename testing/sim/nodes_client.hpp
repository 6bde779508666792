#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/testing/sim/nodes_simulation.hpp>
#include <nodes/recipe.hpp>
#include <nodes_server.hpp>

namespace holdfast::testing::sim {

/// Knows who believes in which lock, and complains.
class nodes_referee {
public:
    explicit nodes_referee(quorum_stage& stage) : stage_{stage} {}

    struct belief {
        std::string name;
        claim_mode mode{};
        std::uint32_t permits{1};
        std::uint32_t limit{};
        std::uint64_t token{};
        clock::time_point valid_until;
        bool revoked{};
    };
    using key = std::uint64_t;

    [[nodiscard]] key begin(const belief& one);
    void extend(key which, clock::time_point valid_until);
    /// The share of one who asked for less than it has.
    void weaken(key which) { beliefs_.at(which).mode = claim_mode::shared; }
    void end(key which) { beliefs_.erase(which); }
    /// An operator takes it away; its holder may not know yet. False: nobody has this token.
    [[nodiscard]] bool revoke(const std::string& name, std::uint64_t token);
    /// Nobody may be granted it until then.
    void keep_taken(const std::string& name, clock::time_point until);

    void complain(const std::string& what);
    [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }

private:
    void check_tokens(const belief& one);
    void check_others(const belief& one);

    quorum_stage& stage_;
    key last_{};
    std::map<key, belief> beliefs_;
    /// The largest token of a writer, and of anybody.
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> tokens_;
    std::map<std::string, clock::time_point> kept_;
    std::uint64_t grants_{};
    std::string violation_;
};

/// What may go wrong between a client and the store.
struct nodes_weather {
    std::uint32_t lost_one_in{};       ///< requests or their answers
    std::uint32_t late_one_in{};       ///< requests that take effect long after they were given up
    std::uint32_t refused_one_in{};    ///< requests that never leave
    std::uint32_t news_lost_one_in{};  ///< a watch breaks; once it is back, it says so
    std::uint32_t news_repeated_one_in{};
    bool calm{};
};

struct nodes_terms {
    std::chrono::milliseconds ttl{};
    int rounds{};
    std::uint32_t users{};
};

/// A process: the shipped recipe, threads that want locks, and what is between it and the store.
class nodes_client {
public:
    nodes_client(quorum_stage& stage, nodes_referee& referee, nodes_server& server, bool& server_is_up,
                 const nodes_weather& weather, const nodes_terms& terms, std::uint32_t number);
    nodes_client(const nodes_client&) = delete;
    nodes_client& operator=(const nodes_client&) = delete;
    ~nodes_client();

    void start();
    void pause(clock::duration length);
    /// Its process dies, and another one takes its place.
    void crash();
    void news(const std::string& name, const engines::queue_node& node);
    void node_removed(const std::string& name, const std::string& id);
    void break_watches();
    [[nodiscard]] bool finished() const;
    [[nodiscard]] std::string waits_for() const;
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

private:
    struct user;
    struct watch {
        std::string name;
        std::vector<engines::queue_node> nodes;
        bool in_place{};
    };
    using step = std::function<engines::nodes::actions(engines::nodes::recipe&)>;

    void boot();
    void take(const step& one);
    void set_timer();
    /// Later, in this life of the process, when it is not paused.
    void after(clock::duration delay, std::function<void()> what);
    void arrive(std::uint64_t life, std::function<void()> what);
    template <class Reply>
    void send(clock::time_point deadline, std::function<Reply()> ask,
              std::function<void(const Reply&)> tell);
    template <class Reply>
    void tell(engines::nodes::request_id id,
              engines::nodes::actions (engines::nodes::recipe::*answer)(engines::nodes::request_id,
                                                                        const Reply&,
                                                                        clock::time_point),
              clock::time_point deadline, std::function<Reply()> ask);
    void perform(engines::nodes::action& wanted);
    void tell_watch(engines::nodes::watch_id id, clock::duration delay);
    void place_watch(engines::nodes::watch_id id);
    void count_watchers(const std::string& name);

    void begin_round(user& who);
    void ask(user& who);
    void answered(user& who, const engines::acquire_reply& reply);
    void turn(user& who, const std::optional<engines::turn_grant>& granted);
    void hold(user& who, fencing_token token, clock::time_point valid_until);
    void keep(user& who);
    void renewed(user& who, const engines::renew_reply& reply, clock::time_point sent_at);
    void convert(user& who);
    void converted(user& who, const engines::acquire_reply& reply);
    void let_go(user& who);
    void release(user& who);
    void end_round(user& who);
    /// Unless the user has gone on meanwhile.
    void later(user& who, clock::duration delay, void (nodes_client::*what)(user&));
    [[nodiscard]] user* find(const owner_id& owner);

    quorum_stage& stage_;
    nodes_referee& referee_;
    nodes_server& server_;
    bool& server_is_up_;
    const nodes_weather& weather_;
    const nodes_terms terms_;
    const std::uint32_t number_;
    std::uint64_t life_{};
    std::unique_ptr<engines::nodes::recipe> recipe_;
    std::vector<std::unique_ptr<user>> users_;
    std::uint64_t last_call_{};
    std::int64_t last_owner_{};
    std::map<std::uint64_t, std::function<void(const engines::acquire_reply&)>> acquires_;
    std::map<std::uint64_t, std::function<void(const engines::renew_reply&)>> renewals_;
    std::map<std::uint64_t, std::function<void(const engines::release_reply&)>> releases_;
    std::map<engines::nodes::watch_id, watch> watches_;
    clock::time_point timer_{clock::time_point::max()};
    std::uint64_t timer_epoch_{};
    clock::time_point last_arrival_;
    clock::time_point paused_until_;
    std::deque<std::pair<std::uint64_t, std::function<void()>>> missed_;
    std::uint64_t turns_{};
};

}  // namespace holdfast::testing::sim
