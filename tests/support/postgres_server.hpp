#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <support/server_process.hpp>

namespace holdfast::testing_support {

/// A PostgreSQL of the test's own: in a temporary directory, on the loopback interface, without a
/// password for the user `postgres`. It does not run as root, so a test that is root lends it the user
/// `postgres` that comes with the package. The constructor returns when it answers.
class postgres_server {
public:
    postgres_server();
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    ~postgres_server();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// For `PQconnectdb`.
    [[nodiscard]] std::string connection_text() const;

private:
    [[nodiscard]] bool try_to_start();

    temporary_directory files_;
    std::uint16_t port_{};
    std::unique_ptr<server_process> process_;
};

}  // namespace holdfast::testing_support
