#include <redis/net/connection.hpp>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <common/net/descriptor.hpp>
#include <support/redis_servers.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "server.hpp"

/// What listens at the address is not what the address says.
namespace holdfast::engines::redis::test {

namespace {

/// Says something to everybody who connects, answers the first words, and then hangs up or is silent.
class talker {
public:
    enum class end : std::uint8_t { hangs_up, stays_silent };

    talker(std::string greeting, std::string answer, end ending)
        : greeting_{std::move(greeting)}, answer_{std::move(answer)}, ending_{ending} {
        const ::sockaddr_in where{.sin_family = AF_INET,
                                  .sin_port = htons(port_),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_zero = {}};
        const int on = 1;
        ::setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(listening_.get(), reinterpret_cast<const ::sockaddr*>(&where), sizeof where) != 0 ||
            ::listen(listening_.get(), 16) != 0) {
            throw std::runtime_error{"cannot listen"};
        }
        thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
    }

    [[nodiscard]] node_address where() const {
        return {.host = "127.0.0.1", .port = port_, .path = {}};
    }

private:
    void serve(const std::stop_token& stop) {
        std::vector<net::descriptor> silent;
        while (!stop.stop_requested()) {
            ::pollfd watched{.fd = listening_.get(), .events = POLLIN, .revents = 0};
            if (::poll(&watched, 1, 10) <= 0) {
                continue;
            }
            net::descriptor guest{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            say(guest, greeting_);
            std::array<char, 4096> heard{};
            if (ending_ == end::hangs_up || !answer_.empty()) {
                static_cast<void>(::recv(guest.get(), heard.data(), heard.size(), 0));
            }
            say(guest, answer_);
            if (ending_ == end::stays_silent) {
                silent.push_back(std::move(guest));
            }
        }
    }
    static void say(const net::descriptor& guest, const std::string& words) {
        static_cast<void>(::send(guest.get(), words.data(), words.size(), MSG_NOSIGNAL));
    }

    const std::string greeting_;
    const std::string answer_;
    const end ending_;
    const std::uint16_t port_{free_port()};
    net::descriptor listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::jthread thread_;
};

struct attempt {
    failure error;
    clock::duration took{};
};

[[nodiscard]] attempt connect_to(const node_address& where, connection_settings how) {
    how.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    connection tested{where, how, {{"ROLE"}}, {}};
    const auto began = clock::now();
    failure why = tested.connect(clock::now() + patience);
    return {std::move(why), clock::now() - began};
}

[[nodiscard]] connection_settings with_password() {
    return {.login = {.user = {}, .password = "hunter2"}, .tls = {}};
}
[[nodiscard]] connection_settings with_tls() {
    connection_settings how;
    how.tls = tls_settings{};
    return how;
}

/// A wrong configuration, said at once: the attempt itself would have `patience`.
void expect_at_once(const attempt& made, const std::string& words) {
    EXPECT_EQ(made.error.code, errc::bad_configuration) << made.error.detail;
    EXPECT_NE(made.error.detail.find(words), std::string::npos) << made.error.detail;
    EXPECT_EQ(made.error.detail.find("hunter2"), std::string::npos) << made.error.detail;
    EXPECT_LT(made.took, patience / 2) << made.error.detail;
}

TEST(wrong_server, one_that_speaks_another_protocol_is_named) {
    using namespace std::string_literals;
    const auto mysql = "\x5f\0\0\0\x0a"s + "8.0.33\0"s + "\x08\0\0\0abcdefgh\0\xff\xff"s;
    struct speech {
        std::string greeting;
        std::string answer;
        std::string named;
    };
    const std::vector<speech> all{
        {"", "HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server"},
        // HTTP/0.9, as Python's http.server answers what it does not understand.
        {"", "<!DOCTYPE HTML>\n<html lang=\"en\">\n", "an HTTP server"},
        {"SSH-2.0-OpenSSH_9.2p1\r\n", "", "an SSH server"},
        // 0x5f is the letter by which Redis' nil begins: it would be taken for half an answer.
        {mysql, "", "a MySQL or MariaDB server"},
        {"220 mail.example ESMTP\r\n", "", "a mail or FTP server"},
        {"", "ERROR\r\nERROR\r\n", "this is not a Redis server"},
        // Answers every line of what it takes for commands.
        {"+OK POP3 ready\r\n", "-ERR\r\n-ERR\r\n-ERR\r\n-ERR\r\n-ERR\r\n-ERR\r\n-ERR\r\n",
         "answer to TIME makes no sense"},
    };
    for (const auto& each : all) {
        for (const auto ending : {talker::end::stays_silent, talker::end::hangs_up}) {
            const talker other{each.greeting, each.answer, ending};
            expect_at_once(connect_to(other.where(), {}), each.named);
        }
        const talker other{each.greeting, each.answer, talker::end::stays_silent};
        const auto with_login = connect_to(other.where(), with_password()).error;
        EXPECT_EQ(with_login.detail.find("hunter2"), std::string::npos) << with_login.detail;
    }
}

TEST(wrong_server, one_that_merely_hangs_up_may_come_back) {
    const talker other{"", "", talker::end::hangs_up};
    for (const auto& how : {connection_settings{}, with_tls()}) {
        const auto made = connect_to(other.where(), how);
        EXPECT_EQ(made.error.code, errc::store_unavailable) << made.error.detail;
        EXPECT_LT(made.took, patience / 2) << made.error.detail;
    }
}

TEST(wrong_server, one_without_tls_is_told_at_once_from_one_that_is_down) {
    const server plain;
    const server guarded{{"--requirepass", "s3cret"}};
    for (const auto* const each : {&plain, &guarded}) {
        expect_at_once(connect_to(each->where(), with_tls()), "write redis:// instead of rediss://");
    }
}

TEST(wrong_server, a_sentinel_is_known_from_its_answers) {
    const auto sentinel_with = [](const std::string& password) {
        return testing_support::redis_server_options{
            .arguments = {"--sentinel"},
            .password = password,
            .configuration = "sentinel monitor service 127.0.0.1 1 1\n"};
    };
    const testing_support::redis_server open{sentinel_with("")};
    const testing_support::redis_server guarded{sentinel_with("s3cret")};
    for (const auto* const each : {&open, &guarded}) {
        const node_address where{.host = "127.0.0.1", .port = each->port(), .path = {}};
        const auto advice = "use redis+sentinel://" + where.text() + "/SERVICE";
        expect_at_once(connect_to(where, {}), advice);
        expect_at_once(connect_to(where, with_password()), advice);
    }
}

}  // namespace

}  // namespace holdfast::engines::redis::test
