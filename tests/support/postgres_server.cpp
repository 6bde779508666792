#include <support/postgres_server.hpp>

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace holdfast::testing_support {

namespace {

/// Debian keeps the programs of each version out of the way.
std::filesystem::path program(const std::string& name) {
    const std::filesystem::path versions{"/usr/lib/postgresql"};
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(versions)) {
        for (const auto& version : std::filesystem::directory_iterator{versions}) {
            found.push_back(version.path() / "bin" / name);
        }
    }
    return found.empty() ? std::filesystem::path{name} : *std::max_element(found.begin(), found.end());
}

/// In front of a command: somebody who is not root.
std::vector<std::string> as_somebody() {
    if (::geteuid() != 0) {
        return {};
    }
    return {"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"};
}

std::vector<std::string> command(const std::string& name, const std::vector<std::string>& arguments) {
    auto words = as_somebody();
    words.push_back(program(name));
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

void give_to_somebody(const std::filesystem::path& directory) {
    if (::geteuid() != 0) {
        return;
    }
    const auto* const somebody = ::getpwnam("postgres");
    if (somebody == nullptr || ::chown(directory.c_str(), somebody->pw_uid, somebody->pw_gid) != 0) {
        throw std::runtime_error{"there is no user postgres to run the server as"};
    }
}

}  // namespace

postgres_server::postgres_server() {
    constexpr int attempts = 10;
    give_to_somebody(files_.path());
    const auto data = (files_.path() / "data").string();
    run_tool(command("initdb", {"-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C",
                                "-E", "UTF8"}));
    for (int attempt = 0; attempt < attempts; ++attempt) {
        port_ = free_port();
        // Another test may have taken the port meanwhile; the next one is tried then.
        if (try_to_start()) {
            return;
        }
    }
    throw std::runtime_error{"postgres does not start: " + read_file(files_.path() / "out")};
}

postgres_server::~postgres_server() {
    try {
        // The fast stop, which does not wait for its clients.
        process_->signal(SIGINT);
        process_->wait_for_end();
    } catch (const std::exception&) {
        process_->end_now();
    }
}

std::string postgres_server::connection_text() const {
    return "host=" + files_.path().string() + " port=" + std::to_string(port_) +
           " user=postgres dbname=postgres";
}

bool postgres_server::try_to_start() {
    const auto& directory = files_.path();
    process_ = std::make_unique<server_process>(
        command("postgres",
                {"-D", directory / "data", "-p", std::to_string(port_), "-k", directory, "-c",
                 "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c",
                 "full_page_writes=off", "-c", "shared_buffers=16MB"}),
        directory / "out");
    const auto answers = [&] {
        if (!process_->running()) {
            return true;
        }
        try {
            run_tool({program("pg_isready"), "-q", "-h", directory, "-p", std::to_string(port_)});
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    return became_true(answers) && process_->running();
}

}  // namespace holdfast::testing_support
