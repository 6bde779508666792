#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <redis/net/connection.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::engines::redis::test {

using namespace std::chrono_literals;

constexpr std::chrono::seconds patience{20};

/// Waits for something that happens by itself.
template <class Condition>
[[nodiscard]] bool eventually(Condition holds, clock::duration limit = patience) {
    const auto until = clock::now() + limit;
    while (!holds()) {
        if (clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(1ms);  // not a guess: the condition is asked again
    }
    return true;
}

class temporary_directory {
public:
    temporary_directory() {
        std::string name = (std::filesystem::temp_directory_path() / "holdfast-net-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error{"no temporary directory"};
        }
        path_ = name;
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

/// Below the range that the system takes ports from by itself.
inline std::uint16_t free_port() {
    static std::mt19937 random{std::random_device{}()};
    std::uniform_int_distribution<int> choice{18'000, 31'999};
    for (int attempt = 0; attempt < 200; ++attempt) {
        const auto port = static_cast<std::uint16_t>(choice(random));
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_port = htons(port);
        place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const bool free = ::bind(socket, reinterpret_cast<::sockaddr*>(&place), sizeof place) == 0;
        ::close(socket);
        if (free) {
            return port;
        }
    }
    throw std::runtime_error{"no free port"};
}

struct reply_deleter {
    void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};
using reply = std::unique_ptr<redisReply, reply_deleter>;

/// A plain blocking client, for what the tests do behind the tested one's back.
class admin {
public:
    explicit admin(std::uint16_t port) : context_{::redisConnect("127.0.0.1", port), &::redisFree} {}

    [[nodiscard]] bool connected() const { return context_ && context_->err == 0; }
    reply command(const std::vector<std::string>& words) {
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const auto& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        return reply{static_cast<redisReply*>(::redisCommandArgv(
            context_.get(), static_cast<int>(texts.size()), texts.data(), sizes.data()))};
    }

private:
    std::unique_ptr<redisContext, decltype(&::redisFree)> context_;
};

/// A server of our own on loopback, killed at the end.
class server {
public:
    explicit server(std::vector<std::string> options = {}, std::uint16_t port = free_port())
        : options_{std::move(options)}, port_{port} {
        start();
        if (!eventually([&] { return answers(); })) {
            throw std::runtime_error{"redis-server does not start"};
        }
    }
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server() { kill(); }

    void start() {
        std::vector<std::string> words{"redis-server",
                                       "--bind",
                                       "127.0.0.1",
                                       "--port",
                                       std::to_string(port_),
                                       "--dir",
                                       directory_.file(""),
                                       "--save",
                                       "",
                                       "--appendonly",
                                       "no",
                                       "--enable-debug-command",
                                       "local",
                                       "--logfile",
                                       directory_.file("log")};
        words.insert(words.end(), options_.begin(), options_.end());
        std::vector<char*> arguments;
        for (auto& word : words) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
    }
    void restart() {
        kill();
        start();
        if (!eventually([&] { return answers(); })) {
            throw std::runtime_error{"redis-server does not start again"};
        }
    }
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }
    void stop() const { ::kill(pid_, SIGSTOP); }
    void resume() const { ::kill(pid_, SIGCONT); }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] node_address where() const {
        return {.host = "127.0.0.1", .port = port_, .path = {}};
    }
    [[nodiscard]] std::string file(std::string_view name) const { return directory_.file(name); }

private:
    [[nodiscard]] bool answers() const {
        // A server that listens elsewhere is asked for its log instead.
        admin asked{port_};
        if (!asked.connected()) {
            return !options_.empty() && log_says_ready();
        }
        const reply pong = asked.command({"PING"});
        return pong &&
               (pong->type == REDIS_REPLY_STATUS || std::string_view{pong->str}.starts_with("NOAUTH"));
    }
    [[nodiscard]] bool log_says_ready() const {
        const std::string path = directory_.file("log");
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log{std::fopen(path.c_str(), "re"),
                                                                  &std::fclose};
        std::string text(16'384, '\0');
        if (!log) {
            return false;
        }
        text.resize(std::fread(text.data(), 1, text.size(), log.get()));
        return text.find("eady to accept connections") != std::string::npos;
    }

    temporary_directory directory_;
    std::vector<std::string> options_;
    std::uint16_t port_;
    ::pid_t pid_{};
};

/// Encodes one command.
inline connection::encode command(std::vector<std::string> words) {
    return [words = std::move(words)](std::string& out, const server_facts&) {
        const std::vector<std::string_view> views{words.begin(), words.end()};
        append_command(out, views);
        return std::size_t{1};
    };
}

/// Sends one command and waits for its end.
inline connection::result ask(connection& to, std::vector<std::string> words,
                              clock::duration limit = patience) {
    connection::result answer;
    to.send(command(std::move(words)), {clock::now() + limit, caller::may_block},
            [&](connection::result got) { answer = std::move(got); });
    return answer;
}

}  // namespace holdfast::engines::redis::test
