#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/holdfast.hpp>
#include <support/redis_servers.hpp>

#include "story.hpp"

/// What the scenarios have in common.
namespace lab {

using namespace std::chrono_literals;
using holdfast::testing_support::became_true;
using holdfast::testing_support::redis_client;
using holdfast::testing_support::redis_replicas;
using holdfast::testing_support::redis_server;
using holdfast::testing_support::wait_until;

/// The name of every lock here, and what it protects.
inline constexpr auto lock_name = "lock:101";
inline constexpr auto stock_name = "stock:101";

[[nodiscard]] std::string address_of(std::uint16_t port);
[[nodiscard]] inline std::string address_of(const redis_server& server) {
    return address_of(server.port());
}

[[nodiscard]] bool is_there(const redis_server& server, const std::string& key);
/// The stock as a plain number.
[[nodiscard]] int plain_stock(const redis_server& server);
/// Milliseconds; −1 when the key has no end, −2 when there is no key.
[[nodiscard]] std::int64_t ttl_of(const redis_server& server, const std::string& key);
void wait_until_gone(const redis_server& server, const std::string& key);
/// How often the server has run a command, as INFO tells it.
[[nodiscard]] std::int64_t calls_of(const redis_server& server, std::string_view command);
/// Returns when a client of holdfast waits for the lock.
void wait_for_waiter(holdfast::client& client);

/// A master and a replica whose link breaks, and then the master.
class pair_of_servers {
public:
    pair_of_servers();
    ~pair_of_servers();
    pair_of_servers(const pair_of_servers&) = delete;
    pair_of_servers& operator=(const pair_of_servers&) = delete;

    [[nodiscard]] redis_server& master() { return servers_.master(); }
    [[nodiscard]] redis_server& replica() { return servers_.replica(0); }
    /// From now on the replica hears nothing from its master.
    void cut_link();
    /// The master dies, the replica takes its place with what it has.
    void promote();

private:
    redis_replicas servers_{1};
    bool stopped_{};
};

/// Counts a client's events of one kind.
class event_count : public holdfast::observer {
public:
    explicit event_count(holdfast::event_kind kind) : kind_{kind} {}
    void on_event(const holdfast::event& news) noexcept override;
    [[nodiscard]] std::uint32_t value() const;

private:
    holdfast::event_kind kind_;
    mutable std::mutex guard_;
    std::uint32_t count_{};
};

}  // namespace lab
