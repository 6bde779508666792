#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace flash_sale {

struct reply {
    unsigned status{200};
    std::string type{"application/json"};
    std::string body;
};

struct server_options {
    std::uint16_t port{3786};
    /// How many requests are worked on at a time; the others wait.
    std::size_t threads{200};
};

/// HTTP on the loopback interface: one thread for all connections, a pool of threads for the answers.
class server {
public:
    /// Called on a thread of the pool with the path and query of a GET.
    using handler = std::function<reply(const std::string& target)>;

    /// Throws `std::system_error` when the port is taken.
    server(const server_options& options, handler answer);
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server();

    /// Until SIGTERM or SIGINT. Requests that were accepted by then are answered before it returns.
    void run();

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace flash_sale
