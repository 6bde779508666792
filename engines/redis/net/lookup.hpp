#pragma once

#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <redis/net/io.hpp>
#include <redis/net/settings.hpp>

#include <sys/socket.h>

namespace holdfast::engines::redis {

struct endpoint {
    ::sockaddr_storage address{};
    ::socklen_t length{};
};

struct endpoints {
    std::vector<endpoint> found;
    failure error;
};

/// Finds what to connect to. A name look-up may hang for long: it runs in a thread of its own, which is
/// left behind when the wait for it ends.
[[nodiscard]] endpoints look_up(const node_address& where, clock::time_point deadline,
                                const waiting& wait);

}  // namespace holdfast::engines::redis
