#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <redis/net/connection.hpp>
#include <redis/scripts.hpp>

namespace holdfast::engines::redis {

/// One run of a script, ready to be sent.
struct script_call {
    const script* what{};
    std::vector<std::string> keys;
    std::vector<std::string> arguments;
    /// Which argument is the server's clock at the time of connecting, if any.
    std::optional<std::size_t> floor{};
    /// A command that is sent right behind it.
    std::vector<std::string> then{};

    /// Whether the server is told the whole text or only its fingerprint.
    enum class form : std::uint8_t { fingerprint, text };

    /// Appends it to what is sent; how many replies it has.
    std::size_t append(std::string& out, const server_facts& server, form how) const;
};

}  // namespace holdfast::engines::redis
