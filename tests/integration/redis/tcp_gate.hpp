#pragma once

#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

struct pollfd;

namespace holdfast::testing {

/// Stands between a client and a server on loopback, and can stop passing on what they say without
/// closing anything: what a network does that drops all packets.
///
/// Thread safety: all functions may be called from any thread.
class tcp_gate {
public:
    explicit tcp_gate(std::uint16_t server_port);
    tcp_gate(const tcp_gate&) = delete;
    tcp_gate& operator=(const tcp_gate&) = delete;
    ~tcp_gate();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// From now on nothing passes in either direction; nothing is closed.
    void stall();
    /// The connections that are there work; on new ones nothing passes.
    void keep_out();
    /// Everything passes, also what was kept back.
    void let_through();
    /// The connections that are there stay silent, until `deliver_late`; new ones work.
    void abandon();
    /// What clients said on abandoned connections arrives at the server after all.
    void deliver_late();

private:
    /// A descriptor of our own.
    class descriptor {
    public:
        explicit descriptor(int number) noexcept : number_{number} {}
        descriptor(descriptor&& other) noexcept : number_{other.number_} { other.number_ = -1; }
        descriptor& operator=(descriptor&& other) noexcept;
        ~descriptor();
        [[nodiscard]] int get() const noexcept { return number_; }

    private:
        int number_;
    };
    struct passage {
        descriptor client;
        descriptor server;
        bool silent{};
    };

    void run(const std::stop_token& stop);
    /// What to wait for now: the bell, the listener, and both ends of every passage.
    [[nodiscard]] std::vector<pollfd> interests();
    void accept_one();
    void serve(const std::vector<pollfd>& ready);
    void ring() const;

    std::uint16_t server_port_;
    std::uint16_t port_;
    descriptor listener_;
    descriptor bell_;
    std::mutex guard_;
    std::vector<passage> passages_;
    bool stalled_{};
    bool keeps_out_{};
    std::jthread thread_;
};

}  // namespace holdfast::testing
