#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <redis/net/connection.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/topology/router.hpp>

namespace holdfast::engines::redis {

/// One server: its two command connections (the second is made when it is first needed) and its
/// subscriber.
///
/// Thread safety: all functions may be called from any thread.
class node {
public:
    struct events {
        subscriber::events pubsub;
        /// A command connection was lost or could not be made. May be empty.
        std::function<void(const failure& reason)> lost;
        /// Whether it is to be a server of a cluster. One that is, and is not to be, is refused: it
        /// would take some locks and not others.
        bool clustered{};
    };

    node(node_address where, connection_settings settings, events told);

    [[nodiscard]] failure connect(clock::time_point deadline);
    void send(router::lane path, connection::encode encoder, call terms, connection::done finished);
    /// Drops the command connections, so that the next request finds out who is there now.
    void reset(const failure& reason);

    [[nodiscard]] subscriber& pubsub() noexcept { return subscriber_; }
    [[nodiscard]] const subscriber& pubsub() const noexcept { return subscriber_; }
    [[nodiscard]] const node_address& where() const noexcept { return where_; }
    /// The most replicas it has been seen with.
    [[nodiscard]] std::uint32_t replicas() const noexcept { return replicas_.load(); }
    /// Whether the last attempt to use its common connection found the server there, as a master. True
    /// before the first.
    [[nodiscard]] bool reachable() const noexcept { return reachable_.load(); }
    /// Who answered when the last command connection was made.
    [[nodiscard]] store_instance instance() const;
    [[nodiscard]] std::uint64_t commands_sent() const;

private:
    [[nodiscard]] failure greeted(const std::vector<value>& replies);
    [[nodiscard]] failure check_role(const value& answer);
    [[nodiscard]] std::unique_ptr<connection> make_connection(router::lane path);
    [[nodiscard]] connection& of(router::lane path);

    node_address where_;
    connection_settings settings_;
    events told_;
    std::atomic<std::uint32_t> replicas_{0};
    std::atomic<bool> reachable_{true};
    mutable std::mutex guard_;
    store_instance instance_;
    subscriber subscriber_;
    std::unique_ptr<connection> common_;
    std::unique_ptr<connection> confirmed_;
};

}  // namespace holdfast::engines::redis
