#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::engines::redis {

/// Where a server listens. A path means a Unix socket.
struct node_address {
    std::string host;
    std::uint16_t port{6379};
    std::string path;

    /// "10.0.0.5:6379", "[::1]:6379" or the path.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const node_address&, const node_address&) = default;
    friend auto operator<=>(const node_address&, const node_address&) = default;
};

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

struct tls_settings {
    /// Files in PEM form. An empty `ca_file` means the system's certificate store.
    std::string ca_file;
    std::string certificate_file;
    std::string key_file;
    /// The name the certificate must carry; empty: the host we connect to.
    std::string server_name;
    /// Only ever off when the address says so.
    bool verify{true};
};

/// How to get from a TCP connection to one that may be used.
struct connection_settings {
    credentials login;
    std::optional<tls_settings> tls;
    std::uint32_t database{};
    std::chrono::milliseconds connect_timeout{2000};
};

}  // namespace holdfast::engines::redis
