#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redis/net/settings.hpp>
#include <redis/resp/reply_reader.hpp>
#include <redis/resp/value.hpp>
#include <support/server_process.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::engines::redis {

/// What a server sends: a text, a list, an error, a number.
inline std::string sends_text(const std::string& said) {
    return "$" + std::to_string(said.size()) + "\r\n" + said + "\r\n";
}
inline std::string sends_list(const std::vector<std::string>& items) {
    std::string all = "*" + std::to_string(items.size()) + "\r\n";
    for (const auto& each : items) {
        all += each;
    }
    return all;
}
inline std::string sends_error(const std::string& said) {
    return "-" + said + "\r\n";
}
inline std::string sends_number(std::int64_t number) {
    return ":" + std::to_string(number) + "\r\n";
}

/// A server that says what the test wants: stands for servers that a real one cannot be made to be.
///
/// Thread safety: all functions may be called from any thread; `answer` is called by the server's.
class scripted_server {
public:
    /// The bytes of the answer to a command. TIME is answered without it.
    using answer = std::function<std::string(const std::vector<std::string>& command)>;

    explicit scripted_server(answer script)
        : script_{std::move(script)},
          port_{testing_support::free_port()},
          listener_{listen_on(port_)},
          thread_{[this](const std::stop_token& stop) { run(stop); }} {}
    scripted_server(const scripted_server&) = delete;
    scripted_server& operator=(const scripted_server&) = delete;
    ~scripted_server() {
        thread_.request_stop();
        thread_.join();
        for (auto& each : guests_) {
            ::close(each.socket);
        }
        ::close(listener_);
    }

    [[nodiscard]] node_address where() const { return {"127.0.0.1", port_, {}}; }
    /// From now on everybody, also those who are there, is told this and sent away.
    void turn_away(std::string said) {
        const std::lock_guard lock{mutex_};
        farewell_ = std::move(said);
        away_ = true;
    }
    /// How many have been sent away.
    [[nodiscard]] int turned_away() const { return turned_away_.load(); }

private:
    struct guest {
        int socket;
        std::unique_ptr<reply_reader> commands;
    };

    [[nodiscard]] static int listen_on(std::uint16_t port) {
        const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int yes = 1;
        ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        ::sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_port = htons(port);
        place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(made, reinterpret_cast<const ::sockaddr*>(&place), sizeof place) != 0 ||
            ::listen(made, SOMAXCONN) != 0) {
            ::close(made);
            throw std::runtime_error{"cannot listen on port " + std::to_string(port)};
        }
        return made;
    }

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::vector<::pollfd> watched{{.fd = listener_, .events = POLLIN, .revents = 0}};
            for (const auto& each : guests_) {
                watched.push_back({.fd = each.socket, .events = POLLIN, .revents = 0});
            }
            ::poll(watched.data(), watched.size(), 5);
            const std::lock_guard lock{mutex_};
            for (std::size_t index = guests_.size(); index > 0; --index) {
                if (away_ || (watched[index].revents != 0 && !serve(guests_[index - 1]))) {
                    send_away(guests_[index - 1].socket);
                    guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(index) - 1);
                }
            }
            if (watched[0].revents != 0) {
                accept_one();
            }
        }
    }
    void accept_one() {
        const int made = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (made >= 0 && away_) {
            send_away(made);
        } else if (made >= 0) {
            guests_.push_back({made, std::make_unique<reply_reader>()});
        }
    }
    void send_away(int socket) {
        if (away_) {
            ::send(socket, farewell_.data(), farewell_.size(), MSG_NOSIGNAL);
            ++turned_away_;
        }
        ::close(socket);
    }
    [[nodiscard]] bool serve(guest& who) {
        std::array<char, 4096> buffer{};
        const auto got = ::recv(who.socket, buffer.data(), buffer.size(), 0);
        if (got <= 0) {
            return false;
        }
        who.commands->feed({buffer.data(), static_cast<std::size_t>(got)});
        value command;
        while (who.commands->next(command) == reply_reader::progress::complete) {
            std::vector<std::string> heard;
            for (const auto& each : command.items) {
                heard.push_back(each.text);
            }
            const auto said = heard.front() == "TIME" ? sends_list({sends_text("1"), sends_text("0")})
                                                      : script_(heard);
            ::send(who.socket, said.data(), said.size(), MSG_NOSIGNAL);
        }
        return true;
    }

    const answer script_;
    const std::uint16_t port_;
    const int listener_;
    std::mutex mutex_;
    std::string farewell_;
    bool away_{};
    std::atomic<int> turned_away_{0};
    /// Only for the thread.
    std::vector<guest> guests_;
    std::jthread thread_;
};

}  // namespace holdfast::engines::redis
