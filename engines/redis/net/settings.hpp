#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <common/net/node_address.hpp>
#include <common/net/tls.hpp>

namespace holdfast::engines::redis {

using net::node_address;
using net::tls_settings;

struct credentials {
    /// Empty: the default user.
    std::string user;
    std::string password;
    /// Where the password came from, if it was a file: it may be another one by the next connection.
    std::string password_file{};
};

struct password_file_content {
    /// The first line of the file.
    std::string password;
    /// Why there is no password: "No such file or directory".
    std::string problem;
};
[[nodiscard]] password_file_content read_password_file(const std::string& path);
/// The same credentials with the password that their file has now. A file that cannot be read, or is
/// empty because it is just being written, changes nothing.
[[nodiscard]] credentials up_to_date(credentials login);

/// How to get from a TCP connection to one that may be used.
struct connection_settings {
    credentials login;
    std::optional<tls_settings> tls;
    std::uint32_t database{};
    std::chrono::milliseconds connect_timeout{2000};
};

}  // namespace holdfast::engines::redis
