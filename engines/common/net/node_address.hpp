#pragma once

#include <cstdint>
#include <string>

namespace holdfast::engines::net {

/// Where a server listens. A path means a Unix socket.
struct node_address {
    std::string host;
    std::uint16_t port{};
    std::string path;

    /// "10.0.0.5:6379", "[::1]:6379" or the path.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const node_address&, const node_address&) = default;
    friend auto operator<=>(const node_address&, const node_address&) = default;
};

}  // namespace holdfast::engines::net
