#include <support/mariadb_server.hpp>

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace holdfast::testing_support {

namespace {

/// The server refuses to be root unless that is asked for by name.
std::string user() {
    const auto* const entry = ::getpwuid(::geteuid());
    return std::string{"--user="} + (entry != nullptr ? entry->pw_name : "root");
}

}  // namespace

mariadb_server::mariadb_server() {
    constexpr int attempts = 10;
    run_tool({"mariadb-install-db", "--no-defaults", user(),
              "--datadir=" + (files_.path() / "data").string(),
              "--auth-root-authentication-method=normal", "--skip-name-resolve"});
    for (int attempt = 0; attempt < attempts; ++attempt) {
        port_ = free_port();
        // Another test may have taken the port meanwhile; the next one is tried then.
        if (try_to_start()) {
            return;
        }
    }
    throw std::runtime_error{"mariadbd does not start: " + read_file(files_.path() / "out")};
}

mariadb_server::~mariadb_server() {
    try {
        process_->signal(SIGTERM);
        process_->wait_for_end();
    } catch (const std::exception&) {
        process_->end_now();
    }
}

bool mariadb_server::try_to_start() {
    const auto socket = "--socket=" + unix_socket().string();
    process_ = std::make_unique<server_process>(
        std::vector<std::string>{
            "mariadbd", "--no-defaults", user(), "--datadir=" + (files_.path() / "data").string(),
            socket, "--pid-file=" + (files_.path() / "pid").string(), "--port=" + std::to_string(port_),
            "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=2",
            "--performance-schema=OFF", "--innodb-flush-method=nosync", "--skip-sync-frm"},
        files_.path() / "out");
    const auto answers = [&] {
        if (!process_->running()) {
            return true;
        }
        try {
            run_tool({"mariadb-admin", "--no-defaults", socket, "-uroot", "ping"});
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    return became_true(answers) && process_->running();
}

}  // namespace holdfast::testing_support
