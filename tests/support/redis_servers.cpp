#include <signal.h>
#include <cstdlib>

#include <stdexcept>
#include <support/redis_servers.hpp>

namespace holdfast::testing_support {

namespace {

constexpr std::string_view operator_name = "holdfast_tests";
constexpr std::string_view operator_password = "for-tests-only";

/// The end of a log says why.
std::string tail_of(const std::string& text) {
    constexpr std::size_t enough = 4000;
    return text.size() <= enough ? text : "…" + text.substr(text.size() - enough);
}

struct certificate_files {
    temporary_directory directory;
    tls_files files;
};

/// Signed by `authority`, or by itself when that is empty.
void make_certificate(const std::filesystem::path& directory, const std::string& name,
                      const std::string& subject, const std::string& authority) {
    const auto file = [&](const std::string& of, const char* extension) {
        return (directory / (of + extension)).string();
    };
    std::vector<std::string> command{"openssl",  "req",
                                     "-x509",    "-nodes",
                                     "-newkey",  "ec",
                                     "-days",    "2",
                                     "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                     "-subj",    "/CN=" + subject,
                                     "-keyout",  file(name, ".key"),
                                     "-out",     file(name, ".crt")};
    const std::vector<std::string> signed_by_authority{
        "-CA",     file(authority, ".crt"),
        "-CAkey",  file(authority, ".key"),
        "-addext", "basicConstraints=critical,CA:FALSE",
        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"};
    if (!authority.empty()) {
        command.insert(command.end(), signed_by_authority.begin(), signed_by_authority.end());
    }
    run_tool(command);
}

std::unique_ptr<certificate_files> make_certificates() {
    auto made = std::make_unique<certificate_files>();
    const auto& directory = made->directory.path();
    make_certificate(directory, "ca", "holdfast test authority", "");
    make_certificate(directory, "other", "another authority", "");
    make_certificate(directory, "server", "localhost", "ca");
    make_certificate(directory, "client", "client", "ca");
    made->files = {directory / "ca.crt",     directory / "server.crt", directory / "server.key",
                   directory / "client.crt", directory / "client.key", directory / "other.crt"};
    return made;
}

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
}

}  // namespace

const tls_files& test_certificates() {
    static const auto made = make_certificates();
    return made->files;
}

redis_server::redis_server(redis_server_options options) : options_{std::move(options)} {
    constexpr int attempts = 10;
    if (!options_.acl.empty()) {
        write_file(directory() / "users.acl", options_.acl + "\nuser " + std::string{operator_name} +
                                                  " on >" + std::string{operator_password} +
                                                  " ~* &* +@all\n");
    }
    for (int attempt = 0; attempt < attempts; ++attempt) {
        port_ = free_port();
        if (!options_.configuration.empty()) {
            write_file(directory() / "server.conf",
                       "port " + std::to_string(port_) + "\n" + options_.configuration);
        }
        // Another test may have taken the port meanwhile; the next one is tried then.
        if (try_to_start()) {
            return;
        }
    }
    throw std::runtime_error{complaint()};
}

redis_server::~redis_server() = default;

pid_t redis_server::pid() const {
    return process_ ? process_->pid() : -1;
}

std::filesystem::path redis_server::unix_socket() const {
    return directory() / "socket";
}

std::string redis_server::log() const {
    return read_file(directory() / "log") + read_file(directory() / "out");
}

bool redis_server::running() {
    return process_ && process_->running();
}

std::vector<std::string> redis_server::command_line() const {
    const auto in_directory = [this](const char* name) { return (directory() / name).string(); };
    const auto* const chosen = std::getenv("HOLDFAST_TEST_REDIS_SERVER");
    std::vector<std::string> words{chosen == nullptr ? "redis-server" : chosen};
    if (!options_.configuration.empty()) {
        words.push_back(in_directory("server.conf"));
    }
    append(words, {"--bind", "127.0.0.1", "--dir", directory().string(), "--daemonize", "no",
                   "--logfile", in_directory("log"), "--unixsocket", unix_socket().string(), "--save",
                   "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"});
    const auto port = std::to_string(port_);
    if (options_.tls == tls_use::none) {
        append(words, {"--port", port});
    } else {
        const auto& files = test_certificates();
        const bool asks = options_.tls == tls_use::both_certificates;
        append(words,
               {"--port", "0", "--tls-port", port, "--tls-cert-file", files.server_certificate.string(),
                "--tls-key-file", files.server_key.string(), "--tls-ca-cert-file", files.ca.string(),
                "--tls-auth-clients", asks ? "yes" : "no"});
    }
    if (!options_.password.empty()) {
        append(words, {"--requirepass", options_.password, "--masterauth", options_.password});
    }
    if (!options_.acl.empty()) {
        append(words, {"--aclfile", in_directory("users.acl")});
    }
    words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
    return words;
}

bool redis_server::try_to_start() {
    process_ = std::make_unique<server_process>(command_line(), directory() / "out");
    const auto answers = [this] {
        if (!process_->running()) {
            return true;
        }
        try {
            const auto reply = redis_client{unix_socket()}.command({"PING"});
            return reply.text == "PONG" || reply.text.starts_with("NOAUTH");
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    if (!became_true(answers)) {
        throw std::runtime_error{complaint()};
    }
    return process_->running();
}

std::string redis_server::complaint() const {
    return "redis-server did not start on port " + std::to_string(port_) + ":\n" + tail_of(log());
}

redis_client redis_server::connect() const {
    redis_client client{unix_socket()};
    redis_reply reply;
    if (!options_.acl.empty()) {
        reply = client.command({"AUTH", std::string{operator_name}, std::string{operator_password}});
    } else if (!options_.password.empty()) {
        reply = client.command({"AUTH", options_.password});
    }
    if (reply.is_error()) {
        throw std::runtime_error{"cannot log in: " + reply.text};
    }
    return client;
}

redis_reply redis_server::ask(const std::vector<std::string>& words) const {
    return connect().command(words);
}

std::string redis_server::cli(const std::vector<std::string>& words) const {
    return ask(words).as_text();
}

std::string redis_server::info(std::string_view field) const {
    const auto text = "\n" + cli({"INFO", "everything"});
    const auto line = "\n" + std::string{field} + ":";
    const auto start = text.find(line);
    if (start == std::string::npos) {
        return "";
    }
    const auto from = start + line.size();
    return text.substr(from, text.find('\r', from) - from);
}

void redis_server::stop() {
    process_->signal(SIGTERM);
    process_->wait_for_end();
}

void redis_server::kill_hard() {
    process_->end_now();
}

void redis_server::start_again(data_files data) {
    if (running()) {
        throw std::logic_error{"the server runs"};
    }
    if (data == data_files::removed) {
        std::filesystem::remove(directory() / "dump.rdb");
        std::filesystem::remove_all(directory() / "appendonlydir");
    }
    if (!became_true([this] { return try_to_start(); })) {
        throw std::runtime_error{complaint()};
    }
}

void redis_server::pause() {
    process_->stop();
}

void redis_server::resume() {
    process_->signal(SIGCONT);
}

void redis_server::client_kill(const std::string& type) const {
    const auto reply = ask({"CLIENT", "KILL", "TYPE", type});
    if (reply.is_error()) {
        throw std::runtime_error{"CLIENT KILL: " + reply.text};
    }
}

}  // namespace holdfast::testing_support
