#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <common/net/io.hpp>
#include <common/net/stream.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/reply_reader.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

using commands = std::vector<std::vector<std::string>>;

/// What a server calls one of our connections. Ids are given out anew when a server restarts, so the
/// address belongs to it. Empty: not known, or a Unix socket, whose connections share one address.
struct peer_name {
    std::string id;
    std::string address;
};

/// What a server said when a connection to it was made.
struct introduction {
    /// Its clock, microseconds since 1970.
    std::int64_t time{};
    peer_name name;
    /// One for each command of the greeting.
    std::vector<value> replies;
    failure error;
};

/// AUTH, CLIENT KILL, SELECT, TIME, CLIENT SETNAME, CLIENT INFO and the greeting, in one go.
/// Errors name the server and never the password. A password that came from a file is read anew.
///
/// `predecessor` is the connection that this one replaces. The server closes it first: requests that
/// are still on their way there take effect before everything that is sent here, or never. A user who
/// may not do that does without.
[[nodiscard]] introduction introduce(net::stream& to, reply_reader& reader, const node_address& server,
                                     const connection_settings& settings, const peer_name& predecessor,
                                     const commands& greeting, clock::time_point deadline,
                                     const net::waiting& wait);

}  // namespace holdfast::engines::redis
