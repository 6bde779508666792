#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <support/server_process.hpp>

namespace holdfast::testing_support {

/// A MariaDB of the test's own: in a temporary directory, on the loopback interface, without a password
/// for the user `root`, with an empty database `test`. The constructor returns when it answers.
class mariadb_server {
public:
    mariadb_server();
    mariadb_server(const mariadb_server&) = delete;
    mariadb_server& operator=(const mariadb_server&) = delete;
    ~mariadb_server();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::filesystem::path unix_socket() const { return files_.path() / "socket"; }

private:
    [[nodiscard]] bool try_to_start();

    temporary_directory files_;
    std::uint16_t port_{};
    std::unique_ptr<server_process> process_;
};

}  // namespace holdfast::testing_support
