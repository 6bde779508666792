#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <integration/stage.hpp>
#include <support/redis_servers.hpp>

/// What the tests with real Redis servers have in common.
namespace holdfast::testing {

using testing_support::data_files;
using testing_support::free_port;
using testing_support::redis_client;
using testing_support::redis_replicas;
using testing_support::redis_reply;
using testing_support::redis_server;
using testing_support::redis_server_options;
using namespace std::chrono_literals;

/// What a call may take beyond its deadline on a machine that has other things to do.
inline constexpr std::chrono::milliseconds slack{500};
/// By when a waiter asks again, whatever it has not heard: a second, a quarter more, and the asking.
inline constexpr std::chrono::milliseconds recheck_bound{2000};

[[nodiscard]] inline std::string address_of(std::uint16_t port, std::string_view options = {}) {
    return "redis://127.0.0.1:" + std::to_string(port).append(options);
}

/// All that clients say to a server, as MONITOR tells it; what scripts do is left out.
///
/// Thread safety: none.
class command_log {
public:
    explicit command_log(const redis_server& server) : server_{server}, monitor_{server.connect()} {
        monitor_.command({"MONITOR"});
    }

    /// Everything since the last call, except what this class itself says.
    [[nodiscard]] std::vector<std::string> news() {
        const auto mark = "mark-" + std::to_string(++marks_);
        server_.cli({"ECHO", mark});
        std::vector<std::string> lines;
        while (true) {
            auto line = monitor_.next_message().text;
            if (line.find(mark) != std::string::npos) {
                return lines;
            }
            if (line.find(" lua] ") == std::string::npos) {
                lines.push_back(std::move(line));
            }
        }
    }
    void forget() { static_cast<void>(news()); }

private:
    const redis_server& server_;
    redis_client monitor_;
    int marks_{};
};

[[nodiscard]] inline std::size_t lines_with(const std::vector<std::string>& lines,
                                            std::string_view word) {
    std::size_t count = 0;
    for (const auto& line : lines) {
        count += line.find(word) != std::string::npos ? 1U : 0U;
    }
    return count;
}

/// Runs of scripts among what clients said.
[[nodiscard]] inline std::size_t script_runs(const std::vector<std::string>& lines) {
    return lines_with(lines, R"("EVALSHA")") + lines_with(lines, R"("EVAL")");
}

/// A server of its own for each test, a client that is observed, and another one.
class redis_stage : public ::testing::Test {
protected:
    explicit redis_stage(redis_server_options options = {}) : server_{std::move(options)} {}

    [[nodiscard]] std::string address(std::string_view options = {}) const {
        return address_of(server_.port(), options);
    }
    /// Told of by `events_`, unless the options say otherwise.
    [[nodiscard]] client make_client(client_options options = {}) const {
        if (!options.events) {
            options.events = events_;
        }
        return client{address(), options};
    }
    [[nodiscard]] std::int64_t count(const std::vector<std::string>& question) const {
        return server_.ask(question).integer;
    }
    [[nodiscard]] bool is_there(const std::string& key) const { return count({"EXISTS", key}) == 1; }
    /// The owner's field in the lock's hash, which counts holds; empty when there is none.
    [[nodiscard]] std::string field_of(const lease& held) const {
        return server_.cli({"HGET", held.name(), held.owner().text()});
    }

    redis_server server_;
    const std::shared_ptr<recorder> events_{std::make_shared<recorder>()};
};

}  // namespace holdfast::testing
