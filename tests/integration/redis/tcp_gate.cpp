#include <algorithm>
#include <array>
#include <cstddef>
#include <integration/redis/tcp_gate.hpp>
#include <stdexcept>
#include <support/server_process.hpp>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::testing {

namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return place;
}

int open_socket() {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) {
        throw std::runtime_error{"no socket"};
    }
    const int on = 1;
    ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

int listen_on(std::uint16_t port) {
    const int made = open_socket();
    const int yes = 1;  // a port whose last user has gone a moment ago counts as free
    ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto place = loopback(port);
    if (::bind(made, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
        ::listen(made, SOMAXCONN) != 0) {
        ::close(made);
        throw std::runtime_error{"cannot listen on port " + std::to_string(port)};
    }
    return made;
}

/// Moves what is there from one end to the other. False when either is closed.
bool moved(int from, int to) {
    std::array<char, 65536> bytes{};
    const auto count = ::recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
        return false;
    }
    for (std::size_t done = 0; done < static_cast<std::size_t>(count);) {
        const auto sent =
            ::send(to, bytes.data() + done, static_cast<std::size_t>(count) - done, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        done += static_cast<std::size_t>(sent);
    }
    return true;
}

}  // namespace

tcp_gate::descriptor& tcp_gate::descriptor::operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

tcp_gate::descriptor::~descriptor() {
    if (number_ >= 0) {
        ::close(number_);
    }
}

tcp_gate::tcp_gate(std::uint16_t server_port)
    : server_port_{server_port},
      port_{testing_support::free_port()},
      listener_{listen_on(port_)},
      bell_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      thread_{[this](const std::stop_token& stop) { run(stop); }} {}

tcp_gate::~tcp_gate() {
    thread_.request_stop();
    ring();
}

void tcp_gate::stall() {
    const std::lock_guard lock{guard_};
    stalled_ = true;
    ring();
}

void tcp_gate::keep_out() {
    const std::lock_guard lock{guard_};
    keeps_out_ = true;
    ring();
}

void tcp_gate::let_through() {
    const std::lock_guard lock{guard_};
    stalled_ = false;
    keeps_out_ = false;
    ring();
}

void tcp_gate::abandon() {
    const std::lock_guard lock{guard_};
    for (auto& one : passages_) {
        one.silent = true;
    }
    stalled_ = false;
    ring();
}

void tcp_gate::deliver_late() {
    const std::lock_guard lock{guard_};
    for (const auto& one : passages_) {
        // All that is there: the client may have hung up long ago, and an end can always be read.
        pollfd said{one.client.get(), POLLIN, 0};
        while (one.silent && ::poll(&said, 1, 0) > 0 && moved(one.client.get(), one.server.get())) {
        }
    }
}

void tcp_gate::ring() const {
    const std::uint64_t once = 1;
    static_cast<void>(::write(bell_.get(), &once, sizeof once));
}

std::vector<pollfd> tcp_gate::interests() {
    const std::lock_guard lock{guard_};
    std::vector<pollfd> result{{bell_.get(), POLLIN, 0},
                               {stalled_ || keeps_out_ ? -1 : listener_.get(), POLLIN, 0}};
    for (const auto& one : passages_) {
        const bool passes = !stalled_ && !one.silent;
        result.push_back({passes ? one.client.get() : -1, POLLIN, 0});
        result.push_back({passes ? one.server.get() : -1, POLLIN, 0});
    }
    return result;
}

void tcp_gate::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        auto ready = interests();
        if (::poll(ready.data(), ready.size(), -1) > 0) {
            serve(ready);
        }
    }
}

void tcp_gate::serve(const std::vector<pollfd>& ready) {
    std::uint64_t ignored{};
    static_cast<void>(::read(bell_.get(), &ignored, sizeof ignored));
    const std::lock_guard lock{guard_};
    if (stalled_) {
        return;
    }
    std::vector<std::size_t> closed;
    for (std::size_t index = 0; 2 * index + 3 < ready.size(); ++index) {
        const auto& one = passages_[index];
        const bool asked = ready[2 * index + 2].revents != 0;
        const bool answered = ready[2 * index + 3].revents != 0;
        if (!one.silent && ((asked && !moved(one.client.get(), one.server.get())) ||
                            (answered && !moved(one.server.get(), one.client.get())))) {
            closed.push_back(index);
        }
    }
    for (auto last = closed.rbegin(); last != closed.rend(); ++last) {
        passages_.erase(passages_.begin() + static_cast<std::ptrdiff_t>(*last));
    }
    if (ready[1].revents != 0 && !keeps_out_) {
        accept_one();
    }
}

void tcp_gate::accept_one() {
    descriptor client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    descriptor server{open_socket()};
    const auto place = loopback(server_port_);
    if (client.get() >= 0 &&
        ::connect(server.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) {
        passages_.push_back({std::move(client), std::move(server)});
    }
}

}  // namespace holdfast::testing
