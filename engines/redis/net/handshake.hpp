#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <redis/net/io.hpp>
#include <redis/net/settings.hpp>
#include <redis/net/stream.hpp>
#include <redis/resp/reply_reader.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

using commands = std::vector<std::vector<std::string>>;

/// What a server said when a connection to it was made.
struct introduction {
    /// Its clock, microseconds since 1970.
    std::int64_t time{};
    /// One for each command of the greeting.
    std::vector<value> replies;
    failure error;
};

/// AUTH, SELECT, TIME, CLIENT SETNAME and the greeting, in one go.
/// Errors name the server and never the password.
[[nodiscard]] introduction introduce(stream& to, reply_reader& reader, const node_address& where,
                                     const connection_settings& how, const commands& greeting,
                                     clock::time_point deadline, const waiting& wait);

}  // namespace holdfast::engines::redis
