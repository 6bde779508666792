#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <redis/net/connection.hpp>
#include <redis/resp/word_list.hpp>
#include <redis/scripts.hpp>

namespace holdfast::engines::redis {

/// One run of a script, ready to be sent.
struct script_call {
    const script* source{};
    word_list keys{};
    word_list arguments{};
    /// Where in the arguments' text the server's clock at the time of connecting is put in, as one
    /// more, if anywhere.
    std::optional<std::size_t> floor_at{};
    /// A command that is sent right behind it.
    word_list then{};
    /// The waiters that the script tells something hear it before the caller has its answer. Redis
    /// flushes replies in the order in which clients became pending, so a `PING` goes ahead of it.
    bool tells_first{};

    /// Whether the server is told the whole text or only its fingerprint.
    enum class form : std::uint8_t { fingerprint, text };

    /// The next argument is the server's clock.
    void add_floor() { floor_at = arguments.text().size(); }
    /// Appends it to the commands that are sent.
    connection::expected append(std::string& out, const server_facts& server, form as) const;
};

}  // namespace holdfast::engines::redis
