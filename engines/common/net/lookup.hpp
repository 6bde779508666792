#pragma once

#include <string>
#include <vector>

#include <common/net/io.hpp>
#include <common/net/node_address.hpp>
#include <holdfast/error.hpp>

#include <sys/socket.h>

namespace holdfast::engines::net {

struct endpoint {
    ::sockaddr_storage address{};
    ::socklen_t length{};
};

struct endpoints {
    std::vector<endpoint> found;
    failure error;
};

/// Finds the endpoints of a server. A name look-up may hang for long. It runs on a thread of its own,
/// which is left behind when the deadline comes first.
[[nodiscard]] endpoints look_up(const node_address& server, clock::time_point deadline,
                                const waiting& wait);

}  // namespace holdfast::engines::net
