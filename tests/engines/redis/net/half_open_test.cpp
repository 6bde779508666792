#include <arpa/inet.h>
#include <sys/socket.h>
#include <redis/net/connection.hpp>
#include <redis/net/subscriber.hpp>
#include <thread>

#include <array>
#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "server.hpp"

#include <poll.h>

namespace holdfast::engines::redis::test {

namespace {

/// Stands between a client and a server, and can stop forwarding what belongs to the connections it
/// has, without a word to either end: as when a cable is cut. New connections are not concerned.
class cable {
public:
    explicit cable(std::uint16_t to) : to_{to}, listener_{listen()}, thread_{[this] { work(); }} {}
    cable(const cable&) = delete;
    cable& operator=(const cable&) = delete;
    ~cable() {
        done_ = true;
        thread_.join();
        for (const auto& [from, other] : pairs_) {
            ::close(from);
        }
        ::close(listener_);
    }

    [[nodiscard]] node_address where() const {
        return {.host = "127.0.0.1", .port = port_, .path = {}};
    }
    void cut() {
        cut_ = true;
        EXPECT_TRUE(eventually([&] { return !cut_; }));
    }

    /// What the client left on a connection that was cut, read to its end: 0, or an error.
    [[nodiscard]] int ending() {
        std::vector<char> buffer(1 << 16);
        for (const auto& [from, other] : pairs_) {
            ::sockaddr_in peer{};
            ::socklen_t size = sizeof peer;
            ::getsockname(from, reinterpret_cast<::sockaddr*>(&peer), &size);
            if (ntohs(peer.sin_port) != port_) {
                continue;
            }
            const ::timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
            ::setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            for (;;) {
                const auto got = ::recv(from, buffer.data(), buffer.size(), 0);
                if (got <= 0) {
                    return got == 0 ? 0 : errno;
                }
            }
        }
        return -1;
    }

private:
    [[nodiscard]] static ::sockaddr_in place(std::uint16_t port) {
        ::sockaddr_in made{};
        made.sin_family = AF_INET;
        made.sin_port = htons(port);
        made.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return made;
    }
    [[nodiscard]] int listen() {
        const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int yes = 1;  // a port whose last user has gone a moment ago counts as free
        ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        const auto where = place(port_ = free_port());
        if (::bind(made, reinterpret_cast<const ::sockaddr*>(&where), sizeof where) != 0 ||
            ::listen(made, 16) != 0) {
            ::close(made);
            throw std::runtime_error{"cannot listen on port " + std::to_string(port_)};
        }
        return made;
    }
    void accept() {
        const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) {
            return;
        }
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto where = place(to_);
        ::connect(server, reinterpret_cast<const ::sockaddr*>(&where), sizeof where);
        pairs_[client] = server;
        pairs_[server] = client;
        live_[client] = live_[server] = true;
    }
    void forward(int from) {
        std::array<char, 4096> buffer{};
        const auto got = ::recv(from, buffer.data(), buffer.size(), 0);
        if (got > 0) {
            ::send(pairs_[from], buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
        } else {
            ::shutdown(pairs_[from], SHUT_WR);
            live_[from] = false;
        }
    }
    void work() {
        while (!done_) {
            if (cut_) {
                live_.clear();
                cut_ = false;
            }
            std::vector<::pollfd> watched{{.fd = listener_, .events = POLLIN, .revents = 0}};
            for (const auto& [from, alive] : live_) {
                if (alive) {
                    watched.push_back({.fd = from, .events = POLLIN, .revents = 0});
                }
            }
            ::poll(watched.data(), watched.size(), 5);
            for (const auto& each : watched) {
                if (each.revents != 0) {
                    each.fd == listener_ ? accept() : forward(each.fd);
                }
            }
        }
    }

    std::uint16_t to_;
    std::uint16_t port_{};
    int listener_;
    std::map<int, int> pairs_;
    std::map<int, bool> live_;
    std::atomic<bool> cut_{};
    std::atomic<bool> done_{};
    std::jthread thread_;
};

TEST(half_open_connection, calls_end_by_their_deadlines_and_a_new_connection_is_made) {
    const server redis;
    cable wire{redis.port()};
    connection tested{wire.where(), {}, {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    wire.cut();
    const auto deadline = clock::now() + 200ms;
    EXPECT_EQ(ask(tested, {"PING"}, 200ms).error.code, errc::outcome_unknown);
    EXPECT_LT(clock::now(), deadline + 500ms);
    EXPECT_TRUE(eventually([&] { return !ask(tested, {"PING"}, 200ms).error; }));
}

TEST(half_open_connection, what_was_not_sent_when_it_is_given_up_is_never_sent) {
    const server redis;
    cable wire{redis.port()};
    connection tested{wire.where(), {}, {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    wire.cut();
    // More than the buffers of both ends take.
    const std::string much(std::size_t{32} << 20U, 'x');
    std::atomic<bool> over{};
    tested.send(command({"SET", "key", much}), {clock::now() + patience, caller::must_not_block},
                [&](const connection::result&) { over = true; });
    tested.reset({errc::store_unavailable, "given up"});
    ASSERT_TRUE(eventually([&] { return over.load(); }));
    EXPECT_EQ(wire.ending(), ECONNRESET);
}

TEST(half_open_connection, a_new_connection_ends_the_one_before_it_at_the_server) {
    const server redis;
    cable wire{redis.port()};
    connection tested{wire.where(), {}, {}, {}};
    const auto id_of = [](const connection::result& info) {
        const std::string& words = info.replies.at(0).text;
        return words.substr(0, words.find(' '));
    };
    const auto first = id_of(ask(tested, {"CLIENT", "INFO"}));
    ASSERT_TRUE(first.starts_with("id=")) << first;
    wire.cut();
    tested.reset({errc::store_unavailable, "given up"});
    ASSERT_NE(id_of(ask(tested, {"CLIENT", "INFO"})), first);
    admin other{redis.port()};
    const std::string clients{other.command({"CLIENT", "LIST"})->str};
    EXPECT_EQ(("\n" + clients).find("\n" + first + " "), std::string::npos) << clients;
}

TEST(half_open_connection, a_user_who_may_not_end_connections_does_without) {
    const server redis;
    admin other{redis.port()};
    other.command({"ACL", "SETUSER", "locker", "on", ">pw", "~*", "+time", "+ping", "+client|info"});
    cable wire{redis.port()};
    connection tested{wire.where(), {.login = {.user = "locker", .password = "pw"}, .tls = {}}, {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    wire.cut();
    tested.reset({errc::store_unavailable, "given up"});
    EXPECT_EQ(ask(tested, {"PING"}).error.code, errc{});
}

TEST(half_open_connection, a_subscriber_notices_it_and_subscribes_again) {
    const server redis;
    cable wire{redis.port()};
    std::atomic<int> confirmed{0};
    std::atomic<int> heard{0};
    subscriber tested{wire.where(),
                      {},
                      {.heard = [&](const std::string&, std::string_view) { ++heard; },
                       .subscribed = [&](const std::string&) { ++confirmed; },
                       .moved_away = {}}};
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return confirmed == 1; }));
    const auto cut_at = clock::now();
    wire.cut();
    ASSERT_TRUE(eventually([&] { return confirmed == 2; }));
    EXPECT_LT(clock::now() - cut_at, 5s);
    admin other{redis.port()};
    other.command({"PUBLISH", "news", "hello"});
    EXPECT_TRUE(eventually([&] { return heard == 1; }));
}

TEST(hanging_server, callers_that_must_not_wait_are_not_held_up_by_it) {
    const server redis;
    std::vector<std::future<errc>> seen;
    std::promise<errc> blocked;
    std::jthread reads;
    clock::duration longest{};
    {
        connection connected{redis.where(), {}, {}, {}};
        connection connecting{redis.where(), {}, {}, {}};
        ASSERT_EQ(ask(connected, {"PING"}).error.code, errc{});
        redis.stop();
        // Somebody else waits for an answer, and reads for all.
        reads = std::jthread{[&] { blocked.set_value(ask(connected, {"PING"}, patience).error.code); }};
        ASSERT_TRUE(eventually([&] { return connected.commands_sent() == 2; }));
        // More than the buffers of both ends take.
        const std::string much(std::size_t{16} << 20U, 'x');
        for (auto* each : {&connected, &connected, &connecting, &connecting}) {
            const auto before = clock::now();
            const auto ended = std::make_shared<std::promise<errc>>();
            seen.push_back(ended->get_future());
            each->send(command({"SET", "key", much}),
                       {clock::now() + 2 * patience, caller::must_not_block},
                       [ended](const connection::result& got) { ended->set_value(got.error.code); });
            longest = std::max(longest, clock::now() - before);
        }
    }
    EXPECT_LT(longest, patience / 4);
    for (auto& each : seen) {
        EXPECT_EQ(each.get(), errc::shut_down);
    }
    EXPECT_EQ(blocked.get_future().get(), errc::shut_down);
    redis.resume();
}

}  // namespace

}  // namespace holdfast::engines::redis::test
