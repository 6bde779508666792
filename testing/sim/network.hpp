#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include <context.hpp>
#include <sim_store.hpp>

namespace holdfast::testing::sim {

using renew_requests = std::vector<engines::renew_request>;
using renew_replies = std::vector<engines::renew_reply>;
using request = std::variant<engines::acquire_request, renew_requests, engines::release_request>;
using reply = std::variant<engines::acquire_reply, renew_replies, engines::release_reply>;

/// One request and its answer, on their way.
struct message {
    std::uint8_t client{};
    std::uint16_t life{};
    std::uint32_t connection{};
    core::request_id id{};
    clock::time_point sent_at{};
    request asked;
    reply answer;
    /// Late requests of a connection that broke wait until then.
    clock::time_point not_before{};
    bool executed{};
    bool dropped{};
    /// The client has its answer, or has been told that there is none.
    bool answered{};
};

/// The connections between the clients and the store: in order, but slow, lossy, and cut at times.
///
/// A connection that breaks leaves its unanswered requests with an unknown outcome. What was on the
/// wire reaches the store up to some point, possibly much later, or not at all.
class network {
public:
    network(context& run, sim_store& store) : run_{run}, store_{store} {}

    void send(std::uint8_t client, std::uint16_t life, core::request_id id, request what,
              clock::time_point deadline);
    void request_arrives(std::uint32_t index);
    /// The message, if its client is to be told now.
    [[nodiscard]] const message* reply_arrives(std::uint32_t index);
    [[nodiscard]] const message* request_times_out(std::uint32_t index);

    void reset(std::uint8_t client, dice::severity how);
    /// All connections are lost; for a while nobody can connect.
    void store_goes_down(clock::duration how_long, dice::severity how, bool keeps_data);
    void store_comes_up();
    void slow_down(clock::duration by) noexcept { slowness_ = by; }

    /// Whether the watch is in place at once.
    bool set_watch(std::uint8_t client, std::uint16_t life, std::size_t lock, bool wanted);
    void watch_arrives(const happening& event);
    void forget_client(std::uint8_t client);
    /// Wakes whoever watches the names that became free.
    void notify();
    void send_hint(std::uint8_t client, std::size_t lock);
    void tell_of_revocation();
    [[nodiscard]] const turn& turn_number(std::uint32_t index) const { return turns_[index]; }
    [[nodiscard]] bool watched_by(std::uint8_t client) const noexcept;

private:
    struct link {
        std::uint32_t connection{1};
        std::uint16_t life{};
        clock::time_point last_request{};
        clock::time_point last_reply{};
        clock::time_point last_hint{};
        std::array<bool, lock_count> wanted{};
        std::array<bool, lock_count> watched{};
        /// Not answered yet, in the order they were sent.
        std::vector<std::uint32_t> pending;
    };

    static constexpr std::size_t most_clients = 4;

    [[nodiscard]] clock::duration delay() {
        return run_.random.between(20us, run_.numbers.longest_delay);
    }
    void fail(std::uint32_t index, clock::duration after, errc why);
    void execute(message& what);
    void tell_turns();
    [[nodiscard]] std::uint32_t others_watching(std::size_t lock, std::uint8_t client) const noexcept;
    [[nodiscard]] const message* deliver(std::uint32_t index);
    [[nodiscard]] happening for_client(what_happens what, std::uint8_t client,
                                       std::uint32_t subject) const noexcept;

    context& run_;
    sim_store& store_;
    std::array<link, most_clients> links_;
    // Stays where it is while others are sent.
    std::deque<message> messages_;
    std::vector<turn> turns_;
    clock::duration slowness_{};
    bool down_{};
};

}  // namespace holdfast::testing::sim
