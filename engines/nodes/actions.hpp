#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/ordered_nodes.hpp>

/// What the recipe of locks over ordered nodes says is to be done.
namespace holdfast::engines::nodes {

/// A time to wake up at that does not come.
inline constexpr auto never = clock::time_point::max();

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

}  // namespace holdfast::engines::nodes
