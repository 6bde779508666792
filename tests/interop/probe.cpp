#include "probe.hpp"

#include <stdexcept>

namespace holdfast::interop {

namespace {

using testing_support::redis_reply;

constexpr int most_redirections = 5;

[[nodiscard]] std::string as_text(const redis_reply& answer) {
    if (answer.type == redis_reply::kind::integer) {
        return std::to_string(answer.integer);
    }
    if (answer.type != redis_reply::kind::array) {
        return answer.text;
    }
    std::string joined;
    for (const auto& item : answer.items) {
        joined += (joined.empty() ? "" : " ") + as_text(item);
    }
    return joined;
}

/// What follows the last colon of "MOVED 3999 127.0.0.1:6381".
[[nodiscard]] std::uint16_t port_in(const std::string& redirection) {
    return static_cast<std::uint16_t>(std::stoul(redirection.substr(redirection.rfind(':') + 1)));
}

/// What follows the last blank of "channel 2".
[[nodiscard]] std::int64_t last_number(const std::string& text) {
    return std::stoll(text.substr(text.rfind(' ') + 1));
}

/// What "calls=" says in the line of a command; 0 when there is no such line.
[[nodiscard]] std::int64_t calls_of(const std::string& command, const std::string& statistics) {
    const auto line = "cmdstat_" + command + ":calls=";
    const auto found = statistics.find(line);
    return found == std::string::npos ? 0 : std::stoll(statistics.substr(found + line.size()));
}

}  // namespace

probe::probe(std::uint16_t port) : connection_{port} {}

std::string probe::text(const std::vector<std::string>& command) {
    for (int redirections = 0; redirections < most_redirections; ++redirections) {
        const auto answer = connection_.command(command);
        if (!answer.is_error()) {
            return as_text(answer);
        }
        if (!answer.text.starts_with("MOVED ")) {
            throw std::runtime_error{command[0] + ": " + answer.text};
        }
        connection_ = testing_support::redis_client{port_in(answer.text)};
    }
    throw std::runtime_error{"the nodes of the cluster do not agree"};
}

std::int64_t probe::number(const std::vector<std::string>& command) {
    return std::stoll(text(command));
}

std::int64_t probe::listeners(const std::string& channel) {
    return last_number(text({"PUBSUB", "NUMSUB", channel}));
}

std::int64_t probe::sharded_listeners(const std::string& channel) {
    return last_number(text({"PUBSUB", "SHARDNUMSUB", channel}));
}

std::int64_t probe::scripts_run() {
    const auto statistics = text({"INFO", "commandstats"});
    return calls_of("eval", statistics) + calls_of("evalsha", statistics);
}

}  // namespace holdfast::interop
