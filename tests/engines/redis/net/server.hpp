#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <redis/net/connection.hpp>
#include <support/server_process.hpp>

#include <hiredis/hiredis.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::engines::redis::test {

using namespace std::chrono_literals;

constexpr std::chrono::seconds patience{20};

using testing_support::free_port;
using testing_support::temporary_directory;

[[nodiscard]] inline bool eventually(const std::function<bool()>& holds) {
    return testing_support::became_true(holds, patience);
}

[[nodiscard]] inline std::string file_in(const temporary_directory& where, std::string_view name) {
    return (where.path() / name).string();
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
                                       file_in(directory_, ""),
                                       "--save",
                                       "",
                                       "--appendonly",
                                       "no",
                                       "--enable-debug-command",
                                       "local",
                                       "--logfile",
                                       file_in(directory_, "log")};
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
    [[nodiscard]] std::string file(std::string_view name) const { return file_in(directory_, name); }

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
        const std::string path = file_in(directory_, "log");
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
        return connection::expected{1};
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
