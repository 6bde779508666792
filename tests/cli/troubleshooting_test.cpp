#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <regex>
#include <support/redis_servers.hpp>
#include <thread>

#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/sqlite.hpp>
#include <holdfast/guard/storage_lease.hpp>
#include <holdfast/holdfast.hpp>
#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using namespace std::chrono_literals;
using testing_support::redis_server;
using testing_support::redis_server_options;

/// What makes the errors of docs/troubleshooting.md happen.
class stage : public cli_test {
public:
    using words = std::vector<std::string>;

    /// What `holdfast` says on standard error.
    [[nodiscard]] std::string said(const words& arguments, program_options options = {}) const {
        return finish(arguments, std::move(options))->errors();
    }
    [[nodiscard]] std::string said_on(const std::string& address, const words& arguments) const {
        return said(arguments, {.environment = {{"HOLDFAST_STORE", address}}});
    }
    [[nodiscard]] std::string local_store() const { return store(); }
    [[nodiscard]] std::string local_file(const std::string& name) const {
        return local_store().substr(6) + "/" + name;
    }
    void use_local_store() const { static_cast<void>(finish({"run", "job", "--", "true"})); }
    /// For root no file is closed: then a program of another user's looks at the store.
    [[nodiscard]] std::string said_without_access_to(const std::string& path) const {
        constexpr ::uid_t somebody = 12345;
        program_options options;
        ::chmod(path.c_str(), 0);
        if (::geteuid() == 0) {
            const std::filesystem::path directory = std::filesystem::path{path}.parent_path();
            static_cast<void>(::chown(directory.c_str(), somebody, somebody));
            static_cast<void>(::chown(directory.parent_path().c_str(), somebody, somebody));
            options.prepare = [] { static_cast<void>(::setuid(somebody)); };
        }
        return said({"run", "job", "--", "true"}, std::move(options));
    }
    [[nodiscard]] auto holder_of_lock(const std::string& name, const words& options = {}) const {
        return hold(name, options);
    }
    /// What is written to standard error when the lock is taken away from a command.
    [[nodiscard]] std::string said_after_forced_release() const {
        const auto loser = holder_of_lock("job");
        static_cast<void>(finish({"release", "job", "--force", "--reason", "stuck"}));
        loser->wait();
        return loser->errors();
    }
    /// At a server that says this to everybody and hangs up.
    [[nodiscard]] std::string said_at_a_server_that_says(const std::string& answer) const {
        const auto port = testing_support::free_port();
        const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const ::sockaddr_in where{.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_zero = {}};
        if (::bind(listening, reinterpret_cast<const ::sockaddr*>(&where), sizeof where) != 0 ||
            ::listen(listening, 16) != 0) {
            throw std::runtime_error{"cannot listen"};
        }
        std::jthread serving{[&] {
            for (int guest = 0; (guest = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
                std::array<char, 1024> heard{};
                static_cast<void>(::recv(guest, heard.data(), heard.size(), 0));
                static_cast<void>(::send(guest, answer.data(), answer.size(), MSG_NOSIGNAL));
                ::close(guest);
            }
        }};
        auto text = said_on("redis://127.0.0.1:" + std::to_string(port), {"list"});
        ::shutdown(listening, SHUT_RDWR);
        serving.join();
        ::close(listening);
        return text;
    }
    /// Files in PEM form, PATH.crt and PATH.key, of a client that nobody vouches for.
    [[nodiscard]] std::string own_certificate() const {
        const auto path = local_store().substr(6) + "-own";
        program maker{{"/bin/sh", "-c",
                       "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own -keyout "
                       "\"$0.key\" -out \"$0.crt\"",
                       path},
                      {.input = ""}};
        maker.wait();
        return path;
    }
    void TestBody() override {}
};

[[nodiscard]] redis_server_options sentinel_options() {
    return {.arguments = {"--sentinel"}, .configuration = "sentinel monitor service 127.0.0.1 1 1\n"};
}

[[nodiscard]] std::string address_of(const redis_server& server) {
    return "redis://127.0.0.1:" + std::to_string(server.port());
}

/// Takes no connections any more: those that wait to be taken fill its queue.
class full_queue {
public:
    full_queue() {
        const ::sockaddr_in where{.sin_family = AF_INET,
                                  .sin_port = htons(port_),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_zero = {}};
        const auto* const address = reinterpret_cast<const ::sockaddr*>(&where);
        sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::bind(sockets_.front(), address, sizeof where) != 0 ||
            ::listen(sockets_.front(), 0) != 0) {
            throw std::runtime_error{"cannot listen"};
        }
        for (int guest = 0; guest < 3; ++guest) {
            sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            static_cast<void>(::connect(sockets_.back(), address, sizeof where));
        }
    }
    full_queue(const full_queue&) = delete;
    full_queue& operator=(const full_queue&) = delete;
    ~full_queue() {
        for (const int each : sockets_) {
            ::close(each);
        }
    }
    [[nodiscard]] std::string address() const { return "redis://127.0.0.1:" + std::to_string(port_); }

private:
    const std::uint16_t port_{testing_support::free_port()};
    std::vector<int> sockets_;
};

/// The text of what a call throws.
template <class Call>
[[nodiscard]] std::string thrown_by(const Call& call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.what();
    }
    return {};
}

/// What a forked child writes to standard error before it ends.
template <class Call>
[[nodiscard]] std::string said_by_child(const Call& call) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) {
        throw std::runtime_error{"pipe"};
    }
    const auto child = ::fork();
    if (child == 0) {
        ::dup2(pipe[1], STDERR_FILENO);
        const auto text = thrown_by(call) + "\n";
        static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
        ::_exit(0);
    }
    ::close(pipe[1]);
    std::string text;
    std::array<char, 1024> some{};
    for (ssize_t size = 0; (size = ::read(pipe[0], some.data(), some.size())) > 0;) {
        text.append(some.data(), static_cast<std::size_t>(size));
    }
    ::close(pipe[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

struct close_database {
    void operator()(sqlite3* handle) const noexcept { ::sqlite3_close(handle); }
};
[[nodiscard]] std::unique_ptr<sqlite3, close_database> open_database(const std::string& path) {
    sqlite3* handle = nullptr;
    ::sqlite3_open(path.c_str(), &handle);
    return std::unique_ptr<sqlite3, close_database>{handle};
}

std::string with_fence(const std::string& path, const std::function<void(guard::fence&)>& use) {
    const auto handle = open_database(path);
    guard::sqlite_database database{handle.get()};
    guard::fence fence{database};
    return thrown_by([&] { use(fence); });
}

[[nodiscard]] std::string thrown_by_lock_with(const stage& on, const lease_options& options) {
    client store{on.local_store()};
    return thrown_by([&] { mutex{store, "job", options}; });
}

/// Waits until it is over, and says why.
[[nodiscard]] std::string loss_of(const std::string& address, const lease_options& options) {
    client store{address};
    const auto held = mutex{store, "job", options}.acquire();
    wait_until("the lease is over", [&] { return !held; });
    return thrown_by([&] { held.check(); });
}

using production = std::function<std::string(stage&)>;

/// For each text on the page, how it is produced. A new text of the page needs a line here.
const std::map<std::string, production>& productions() {
    static const std::map<std::string, production> all{
        {"the host name is not known (…",
         [](stage& on) { return on.said_on("redis://no..where", {"list"}); }},
        {"no connection in time; is the server up?",
         [](stage& on) {
             const full_queue server;
             return on.said_on(server.address() + "?connect_timeout=400", {"list"});
         }},
        {"this is not a Redis server (…); is the port right?",
         [](stage& on) { return on.said_at_a_server_that_says("ERROR\r\nERROR\r\n"); }},
        {"is a semaphore of … permits at the moment, not of …; all who use it must agree on the limit",
         [](stage& on) {
             client store{on.local_store()};
             const auto permit = semaphore{store, "pool", 3}.acquire();
             return thrown_by([&] { static_cast<void>(semaphore{store, "pool", 5}.try_acquire()); });
         }},
        {"most_at_once must be at least 1",
         [](stage&) {
             return thrown_by([] {
                 keyed_batcher<int, int>{
                     {}, 0, [](const std::string&, std::span<int>) { return std::vector<int>{}; }};
             });
         }},
        {"the columns that were given are of a table of yours; create it yourself, or give none for "
         "the "
         "guard's own table",
         [](stage& on) {
             const auto handle = open_database(on.local_store().substr(6) + "-guards");
             guard::sqlite_database database{handle.get()};
             guard::storage_lease lease{database, {.table = "stock", .key = "id"}};
             return thrown_by([&] { lease.create_table(); });
         }},
        {"no answer in time; is the server up?",
         [](stage& on) {
             redis_server server;
             server.pause();
             auto text = on.said_on(address_of(server) + "?connect_timeout=400", {"list"});
             server.resume();
             return text;
         }},
        {"the server closed the connection; is the server up, and is this its port?",
         [](stage& on) { return on.said_at_a_server_that_says(""); }},
        {"this is not a Redis server: … answers there; is the port right?",
         [](stage& on) { return on.said_at_a_server_that_says("HTTP/1.1 400 Bad Request\r\n\r\n"); }},
        {"the server did not take the user or the password (…",
         [](stage& on) {
             const redis_server server;
             return on.said({"list"}, {.environment = {{"HOLDFAST_STORE", address_of(server)},
                                                       {"HOLDFAST_REDIS_PASSWORD", "secret"}}});
         }},
        {"the password cannot be read from password_file=…: …",
         [](stage& on) { return on.said_on("redis://127.0.0.1:1?password_file=/nowhere", {"list"}); }},
        {"the environment variable that password_env names is not set",
         [](stage& on) {
             return on.said_on("redis://127.0.0.1:1?password_env=NOT_SET_ANYWHERE", {"list"});
         }},
        {"the server expects TLS; use rediss:// instead of redis://",
         [](stage& on) {
             const redis_server server{{.tls = testing_support::tls_use::server_certificate}};
             return on.said_on(address_of(server), {"list"});
         }},
        {"the server's certificate is not for \"…\" (…",
         [](stage& on) {
             const redis_server server{{.tls = testing_support::tls_use::server_certificate}};
             return on.said_on("rediss://127.0.0.1:" + std::to_string(server.port()) +
                                   "?ca=" + testing_support::test_certificates().ca.string() +
                                   "&server_name=other.example",
                               {"list"});
         }},
        {"the server's certificate is not valid now: …",
         [](stage& on) {
             const auto files = on.local_store().substr(6) + "-expired";
             const auto key = files + ".key";
             const auto certificate = files + ".crt";
             program maker{
                 {"/bin/sh", "-c",
                  "openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout \"$0\" -out "
                  "\"$0.csr\" && openssl x509 -req -signkey \"$0\" -in \"$0.csr\" -days -1 -out \"$1\"",
                  key, certificate},
                 {.input = ""}};
             maker.wait();
             const redis_server server{
                 {.arguments = {"--tls-cert-file", certificate, "--tls-key-file", key},
                  .tls = testing_support::tls_use::server_certificate}};
             return on.said_on(
                 "rediss://localhost:" + std::to_string(server.port()) + "?ca=" + certificate,
                 {"list"});
         }},
        {"the server demands a client certificate; give cert=FILE&key=FILE",
         [](stage& on) {
             const redis_server server{{.tls = testing_support::tls_use::both_certificates}};
             return on.said_on("rediss://127.0.0.1:" + std::to_string(server.port()) +
                                   "?ca=" + testing_support::test_certificates().ca.string(),
                               {"list"});
         }},
        {"the server refused the TLS handshake: …",
         [](stage& on) {
             const redis_server server{{.tls = testing_support::tls_use::both_certificates}};
             const auto own = on.own_certificate();
             return on.said_on("rediss://127.0.0.1:" + std::to_string(server.port()) +
                                   "?ca=" + testing_support::test_certificates().ca.string() +
                                   "&cert=" + own + ".crt&key=" + own + ".key",
                               {"list"});
         }},
        {"ca=… cannot be used: …",
         [](stage& on) { return on.said_on("rediss://127.0.0.1:1?ca=/nowhere", {"list"}); }},
        {"key=… cannot be used: it is not the key of the certificate cert=…",
         [](stage& on) {
             const auto& files = testing_support::test_certificates();
             return on.said_on("rediss://127.0.0.1:1?cert=" + files.client_certificate.string() +
                                   "&key=" + files.server_key.string(),
                               {"list"});
         }},
        {"needs TLS: write rediss instead of redis",
         [](stage& on) { return on.said_on("redis://127.0.0.1:1?ca=/nowhere", {"list"}); }},
        {"this server is not part of a cluster; use redis://…",
         [](stage& on) {
             const redis_server server;
             return on.said_on("redis+cluster://127.0.0.1:" + std::to_string(server.port()), {"list"});
         }},
        {"the cluster is not set up: nobody has any slots",
         [](stage& on) {
             const redis_server server{{.arguments = {"--cluster-enabled", "yes"}}};
             return on.said_on("redis+cluster://127.0.0.1:" + std::to_string(server.port()), {"list"});
         }},
        {"this is a sentinel, not a server; use redis+sentinel://…",
         [](stage& on) {
             const redis_server server{sentinel_options()};
             return on.said_on(address_of(server), {"list"});
         }},
        {"this is not a sentinel; use redis:// (…",
         [](stage& on) {
             const redis_server server;
             return on.said_on(
                 "redis+sentinel://127.0.0.1:" + std::to_string(server.port()) + "/service", {"list"});
         }},
        {"does not know a service called \"…\"",
         [](stage& on) {
             const redis_server server{sentinel_options()};
             return on.said_on("redis+sentinel://127.0.0.1:" + std::to_string(server.port()) + "/other",
                               {"list"});
         }},
        {"the service's name is missing; write redis+sentinel://…",
         [](stage& on) { return on.said_on("redis+sentinel://127.0.0.1", {"list"}); }},
        {"database … cannot be used: …",
         [](stage& on) {
             const redis_server server;
             return on.said_on(address_of(server) + "/99", {"list"});
         }},
        {"the server has reached its maxmemory; …",
         [](stage& on) {
             const redis_server server{{.arguments = {"--maxmemory", "1"}}};
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the server refuses writes because it has too few replicas",
         [](stage& on) {
             const redis_server server{{.arguments = {"--min-replicas-to-write", "1"}}};
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the server refuses writes because it cannot save (MISCONF …",
         [](stage& on) {
             redis_server server{{.arguments = {"--dbfilename", "occupied"}}};
             // A directory stands where the file would go.
             std::filesystem::create_directory(server.directory() / "occupied");
             server.cli({"CONFIG", "SET", "save", "3600 1000000"});
             server.cli({"BGSAVE"});
             wait_until("saving has failed",
                        [&] { return server.info("rdb_last_bgsave_status") == "err"; });
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the server is still loading its data (LOADING …",
         [](stage& on) {
             return on.said_at_a_server_that_says(
                 "-LOADING Redis is loading the dataset in memory\r\n");
         }},
        {"the server is busy with somebody's script; …",
         [](stage& on) {
             redis_server server{{.arguments = {"--busy-reply-threshold", "20"}}};
             const std::jthread looping{[&] { server.ask({"EVAL", "while true do end", "0"}); }};
             wait_until("the server is busy", [&] {
                 return server.ask({"GET", "x"}).text.starts_with("BUSY");
             });
             auto text = on.said_on(address_of(server), {"list"});
             server.cli({"SCRIPT", "KILL"});
             return text;
         }},
        {"the slot is being moved to another server; …",
         [](stage& on) {
             testing_support::redis_cluster cluster{{.masters = 2, .replicas_each = 0}};
             const auto slot = static_cast<std::uint16_t>(
                 std::stoi(cluster.node(0).cli({"CLUSTER", "KEYSLOT", "job"})));
             cluster.begin_migration(slot, cluster.node_without_slot(slot));
             return on.said_on("redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port()),
                               {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the cluster says that it is down (cluster_state:fail)",
         [](stage& on) {
             testing_support::redis_cluster cluster{{.masters = 2, .replicas_each = 0}};
             cluster.node(0).cli({"CLUSTER", "DELSLOTS", "1"});
             cluster.node(1).cli({"CLUSTER", "DELSLOTS", "1"});
             const auto slot = cluster.node(0).cli({"CLUSTER", "KEYSLOT", "job"});
             wait_until("the cluster is down", [&] {
                 return cluster.node(0).cli({"CLUSTER", "INFO"}).starts_with("cluster_state:fail") &&
                        cluster.node(1).cli({"CLUSTER", "INFO"}).starts_with("cluster_state:fail");
             });
             return on.said_on("redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port()),
                               {"run", "job", "--no-wait", "--", "true"});
         }},
        {"no sentinel says who the master is",
         [](stage& on) {
             return on.said_on("redis+sentinel://127.0.0.1:1/service",
                               {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the server has as many clients as its maxclients allows",
         [](stage& on) {
             const redis_server server;
             const auto other = server.connect();
             server.cli({"CONFIG", "SET", "maxclients", "1"});
             return on.said_on(address_of(server), {"list"});
         }},
        {"HOLDFAST_REQUIRE is \"…\": write process, host or fleet",
         [](stage&) {
             return said_by_child([] {
                 ::setenv("HOLDFAST_REQUIRE", "everybody", 1);
                 client{"memory:"};
             });
         }},
        {"… is named twice; it has one vote",
         [](stage& on) {
             return on.said_on("quorum:" + on.local_store() + " " + on.local_store(), {"list"});
         }},
        {"store address without a scheme: write it as scheme:rest, such as redis://host:port; "
         "known are …",
         [](stage& on) { return on.said_on("redis.example", {"list"}); }},
        {"several hosts: write redis+sentinel:// or redis+cluster://",
         [](stage& on) { return on.said_on("redis://a,b", {"list"}); }},
        {"the port must be from 1 to 65535; after a password write @ and the host",
         [](stage& on) { return on.said_on("redis://ann:secret", {"list"}); }},
        {"in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40, : as %3A and % as "
         "%25",
         [](stage& on) { return on.said_on("redis://ann:a#b@host", {"list"}); }},
        {"this is not a directory; name one, or remove the file",
         [](stage& on) { return on.said_on("local:/etc/passwd", {"list"}); }},
        {"the directory cannot be created (…",
         [](stage& on) {
             return on.said_on("local:/proc/holdfast", {"run", "job", "--", "true"});
         }},
        {"… permits of … can never be had",
         [](stage& on) {
             client store{on.local_store()};
             return thrown_by([&] { static_cast<void>(semaphore{store, "job", 2}.acquire(3)); });
         }},
        {"the name is not that of a latch: it holds a …",
         [](stage&) {
             const redis_server server;
             server.cli({"HSET", "job", "colour", "red"});
             client store{address_of(server)};
             return thrown_by([&] { static_cast<void>(latch{store, "job"}.count()); });
         }},
        {"is in use as a semaphore",
         [](stage& on) {
             client store{on.local_store()};
             const auto held = semaphore{store, "job", 2}.acquire();
             return thrown_by([&] { static_cast<void>(mutex{store, "job"}.try_lock()); });
         }},
        {"the name \"…\" is not for locks: a key that begins like this holds what is known about locks",
         [](stage& on) {
             const redis_server server;
             return on.said_on(address_of(server), {"run", "holdfast_cards:{x}", "--", "true"});
         }},
        {"a lock needs a name; this one is empty",
         [](stage& on) {
             client store{on.local_store()};
             return thrown_by([&] { mutex{store, ""}; });
         }},
        {"the name \"…\" has 2000 bytes; at most …",
         [](stage& on) {
             return on.said({"run", std::string(2000, 'x'), "--", "true"});
         }},
        {"a ttl of … is out of range; this store takes … to …",
         [](stage& on) { return thrown_by_lock_with(on, {.ttl = 0ms}); }},
        {"a safety margin of … does not fit a ttl of …; use at most half of it",
         [](stage& on) { return thrown_by_lock_with(on, {.safety_margin = 20s}); }},
        {"a max_hold of … is out of range; it may be …",
         [](stage& on) { return thrown_by_lock_with(on, {.max_hold = 0ms}); }},
        {"this store has no replicas that could confirm a lock",
         [](stage& on) { return thrown_by_lock_with(on, {.replicas = replica_policy::majority()}); }},
        {"client_options::request_timeout: it cannot be 0 ms",
         [](stage&) { return thrown_by([] { client("memory:", {.request_timeout = 0ms}); }); }},
        {"it cannot be kept taken for -1000 ms; from 0 to …",
         [](stage& on) {
             client store{on.local_store()};
             auto held = mutex{store, "job"}.acquire();
             return thrown_by([&] { static_cast<void>(held.release_after(-1s)); });
         }},
        {"this lease is empty", [](stage&) { return thrown_by([] { lease{}.check(); }); }},
        {"this thread's hold is over; unlock or release it first",
         [](stage& on) {
             client store{on.local_store()};
             recursive_mutex lock{store, "job", {.max_hold = 50ms}};
             lock.lock();
             std::string text;
             wait_until("the hold is over", [&] {
                 text = thrown_by([&] {
                     lock.lock();
                     lock.unlock();
                 });
                 return !text.empty();
             });
             lock.unlock();
             return text;
         }},
        {"which lock? write holdfast … NAME", [](stage& on) { return on.said({"inspect"}); }},
        {"which command? write holdfast run … -- COMMAND",
         [](stage& on) {
             return on.said({"run", "job"});
         }},
        {"\"…\" is no duration; write it like 250ms, 30s, 15m, 2h, 1d or 1h30m",
         [](stage& on) {
             return on.said({"run", "job", "--wait", "soon", "--", "true"});
         }},
        {"--wait needs a value: --wait …",
         [](stage& on) {
             return on.said({"run", "job", "--wait"});
         }},
        {"there is no command \"…\"; there are …", [](stage& on) { return on.said({"start"}); }},
        {"this command already runs under \"…\", so it would wait for itself",
         [](stage& on) {
             return on.said({"run", "job", "--", program_path(), "run", "job", "--", "true"});
         }},
        {"\"…\" is held by …, which may still be working; without a terminal to ask on, add …",
         [](stage& on) {
             const auto holder = on.holder_of_lock("job");
             return on.said({"release", "job"});
         }},
        {"\"…\" is not an SQL identifier",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             return thrown_by([&] { guard::fence(database, "my table"); });
         }},
        {"a guard's key has 1 to 255 bytes, not …",
         [](stage&) {
             return with_fence(
                 ":memory:", [](guard::fence& fence) { static_cast<void>(fence.announce("", {33})); });
         }},
        {"a claim of … ms is out of range; it lasts for 1 ms to 366 days",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             return thrown_by([&] { guard::once(database, {.claim = 0ms}); });
         }},
        {"not as many parameters as the statement has: …",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             return thrown_by([&] { static_cast<void>(database.run("SELECT $1", {})); });
         }},
        {"Connection refused; is the server up?",
         [](stage& on) { return on.said_on("redis://127.0.0.1:1", {"list"}); }},
        {"the server demands a password (NOAUTH …",
         [](stage& on) {
             const redis_server server{{.password = "secret"}};
             return on.said_on(address_of(server), {"list"});
         }},
        {"the server refused the user or the password (WRONGPASS …",
         [](stage& on) {
             const redis_server server;
             return on.said({"list"}, {.environment = {{"HOLDFAST_STORE", address_of(server)},
                                                       {"HOLDFAST_REDIS_USER", "alice"},
                                                       {"HOLDFAST_REDIS_PASSWORD", "wrong"}}});
         }},
        {"this user lacks a permission, …; docs/redis.md has the ACL line (…",
         [](stage& on) {
             const redis_server server{{.acl = "user alice on >secret ~* &* +@all -pexpire\n"}};
             return on.said({"run", "job", "--no-wait", "--", "true"},
                            {.environment = {{"HOLDFAST_STORE", address_of(server)},
                                             {"HOLDFAST_REDIS_USER", "alice"},
                                             {"HOLDFAST_REDIS_PASSWORD", "secret"}}});
         }},
        {"the server does not speak TLS there; write redis:// instead of rediss://",
         [](stage& on) {
             const redis_server server;
             return on.said_on("rediss://127.0.0.1:" + std::to_string(server.port()), {"list"});
         }},
        {"the server's certificate is not trusted: …",
         [](stage& on) {
             const redis_server server{{.tls = testing_support::tls_use::server_certificate}};
             return on.said_on("rediss://localhost:" + std::to_string(server.port()), {"list"});
         }},
        {"is a replica of …; locks must be taken at the master",
         [](stage& on) {
             const redis_server server;
             server.cli({"REPLICAOF", "127.0.0.1", "1"});
             return on.said_on(address_of(server), {"list"});
         }},
        {"is a server of a cluster; use redis+cluster://…",
         [](stage& on) {
             const redis_server server{{.arguments = {"--cluster-enabled", "yes"}}};
             return on.said_on(address_of(server), {"list"});
         }},
        {"no answer until the end of --wait",
         [](stage& on) {
             return on.said_on("redis://127.0.0.1:1", {"run", "job", "--wait", "100ms", "--", "true"});
         }},
        {"HOLDFAST_STORE is set, but empty; give it a value, or unset HOLDFAST_STORE",
         [](stage&) {
             program shell{{"/bin/sh", "-c", "HOLDFAST_STORE= exec \"$0\" list", program_path()},
                           {.input = ""}};
             shell.wait();
             return shell.errors();
         }},
        {"this means another store in every working directory; write the whole path: …",
         [](stage& on) { return on.said_on("local:locks", {"list"}); }},
        {"other users may write to this directory; name one that only you may write to: …",
         [](stage& on) { return on.said_on("local:/tmp", {"list"}); }},
        {"everybody may write to … and put another directory in place of this one; name one elsewhere: "
         "…",
         [](stage& on) {
             const auto open_to_all = on.local_file("open to all");
             std::filesystem::create_directories(open_to_all + "/store");
             std::filesystem::permissions(open_to_all, std::filesystem::perms::all);
             std::filesystem::permissions(open_to_all + "/store", std::filesystem::perms::owner_all);
             return on.said_on("local:" + open_to_all + "/store", {"list"});
         }},
        {"a file of the store was deleted, replaced or emptied while other programs have it open",
         [](stage& on) {
             const auto holder = on.holder_of_lock("job");
             std::filesystem::remove(on.local_store().substr(6) + "/locks.db-wal");
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"no quorum: 1 of 3 members answered, 2 needed",
         [](stage& on) {
             const redis_server server;
             const auto members = "quorum:redis://127.0.0.1:1 redis://127.0.0.1:2 ";
             return on.said_on(members + address_of(server), {"list"});
         }},
        {"its locks exclude this host only (…), but fleet is required",
         [](stage& on) {
             return on.said({"list", "--require", "fleet"});
         }},
        {"no engine for stores of kind \"…\"",
         [](stage& on) { return on.said_on("reddis://host", {"list"}); }},
        {"a host is missing; write …",
         [](stage& on) { return on.said_on("redis://:secret", {"list"}); }},
        {"option \"…\" is one of … only",
         [](stage& on) { return on.said_on("redis://host?sharded=on", {"list"}); }},
        {"option \"…\" is not known; known are …",
         [](stage& on) { return on.said_on("redis://host/?passwort_file=/x", {"list"}); }},
        {"the list is not complete: …",
         [](stage& on) {
             const redis_server server;
             server.cli({"EVAL", "for i = 1, 20000 do redis.call('HSET', i, ARGV[1], 1) end", "0",
                         "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47"});
             std::string text;
             for (int timeout = 100; timeout < 5000 && text.find("the list") == std::string::npos;
                  timeout *= 2) {
                 text = on.said_on(address_of(server),
                                   {"list", "--timeout", std::to_string(timeout) + "ms"});
             }
             return text;
         }},
        {"the server does not allow this (NOPERM …); run: ACL SETUSER … +…",
         [](stage& on) {
             const redis_server server{{.acl = "user alice on >secret ~* &* +@all -time\n"}};
             return on.said({"list"}, {.environment = {{"HOLDFAST_STORE", address_of(server)},
                                                       {"HOLDFAST_REDIS_USER", "alice"},
                                                       {"HOLDFAST_REDIS_PASSWORD", "secret"}}});
         }},
        {"a store's address is no name of a lock; write --store ADDRESS",
         [](stage& on) {
             return on.said({"list", "redis://:secret@host"});
         }},
        {"no answer in time: outcome unknown",
         [](stage&) {
             redis_server server;
             client store{address_of(server)};
             mutex lock{store, "job"};
             server.pause();
             const auto text = thrown_by([&] { static_cast<void>(lock.try_lock_for(100ms)); });
             server.resume();
             return text;
         }},
        {"\"…\" is held by … since …",
         [](stage& on) {
             const auto holder = on.holder_of_lock("job");
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"the name is not that of a lock: it holds a string",
         [](stage& on) {
             const redis_server server;
             server.cli({"SET", "job", "x"});
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the name is not that of a lock: its hash has other fields",
         [](stage& on) {
             const redis_server server;
             server.cli({"HSET", "job", "colour", "red"});
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the semaphore has 3 permits",
         [](stage&) {
             const redis_server server;
             client store{address_of(server)};
             const auto held = semaphore{store, "job", 3}.acquire();
             return thrown_by([&] { static_cast<void>(semaphore{store, "job", 4}.try_acquire()); });
         }},
        {"\"…\" already ran in the last …",
         [](stage& on) {
             const stage::words once{"run", "job", "--once-per", "1h", "--", "true"};
             static_cast<void>(on.said(once));
             return on.said(once);
         }},
        {"cannot execute …: No such file or directory",
         [](stage& on) {
             return on.said({"run", "job", "--", "./nowhere.sh"});
         }},
        {"this host has too few file descriptors",
         [](stage& on) {
             return on.said({"list"}, {.prepare = [] {
                                const rlimit limit{20, 20};
                                ::setrlimit(RLIMIT_NOFILE, &limit);
                            }});
         }},
        {"\"…\" is no name for a lock",
         [](stage& on) {
             return on.said({"run", "job:once-per", "--", "true"});
         }},
        {"put -- before the command",
         [](stage& on) {
             return on.said({"run", "job", "./backup.sh"});
         }},
        {"--max-hold … leaves the command no time",
         [](stage& on) {
             return on.said({"run", "job", "--max-hold", "1ms", "--", "true"});
         }},
        {"the name \"…\" holds a control character",
         [](stage& on) {
             return on.said({"run", "job\n", "--", "true"});
         }},
        {"this store keeps no line of waiters",
         [](stage& on) {
             client store{on.local_store()};
             return thrown_by([&] { fair_mutex{store, "job"}.lock(); });
         }},
        {"client used after fork",
         [](stage& on) {
             client store{on.local_store()};
             mutex lock{store, "job"};
             return said_by_child([&] { lock.lock(); });
         }},
        {"shutdown was called, or the client was destroyed",
         [](stage& on) {
             client store{on.local_store()};
             mutex lock{store, "job"};
             static_cast<void>(store.shutdown(2s));
             return thrown_by([&] { lock.lock(); });
         }},
        {"losing \"…\" (…): told the command to end, kill it in …",
         [](stage& on) { return on.said_after_forced_release(); }},
        {"--max-hold … is near, \"…\" has been held for …",
         [](stage& on) {
             return on.said({"run", "job", "--ttl", "2s", "--max-hold", "1s", "--", "sleep", "60"});
         }},
        {"\"…\" could not be released (…); it ends by itself within …",
         [](stage& on) {
             const redis_server server;
             return on.said_on(address_of(server),
                               {"run", "job", "--", "kill", "-9", std::to_string(server.pid())});
         }},
        {"the --once-per marker of \"…\" is missing (…): the command may run again sooner",
         [](stage& on) {
             const redis_server server;
             return on.said_on(address_of(server), {"run", "job", "--once-per", "1h", "--", "kill",
                                                    "-9", std::to_string(server.pid())});
         }},
        {"\"…\" was lost while the command ran (…)",
         [](stage& on) { return on.said_after_forced_release(); }},
        {"the store does not have it any more: somebody deleted it there, or the store lost its data",
         [](stage& on) {
             const redis_server server;
             const auto loser =
                 on.holder_of_lock("job", {"--store", address_of(server), "--ttl", "2s"});
             server.cli({"DEL", "job"});
             loser->wait();
             return loser->errors();
         }},
        {"\"…\" is free already",
         [](stage& on) {
             return on.said({"release", "job"});
         }},
        {"held by whom? give --token, --owner or both, or call it inside holdfast run",
         [](stage& on) {
             return on.said({"check", "job"});
         }},
        {"do not touch what it protects any more: lost",
         [](stage& on) {
             return loss_of(on.local_store(), {.ttl = 300ms, .renewal = renewal_mode::none});
         }},
        {"do not touch what it protects any more: held for longer than max_hold",
         [](stage& on) { return loss_of(on.local_store(), {.max_hold = 50ms}); }},
        {"holdfast: mutex::unlock without a lock",
         [](stage& on) {
             client store{on.local_store()};
             mutex lock{store, "job"};
             return said_by_child([&] { lock.unlock(); });
         }},
        {"holdfast: shared_mutex::unlock_shared without a lock",
         [](stage& on) {
             client store{on.local_store()};
             shared_mutex lock{store, "job"};
             return said_by_child([&] { lock.unlock_shared(); });
         }},
        {"holdfast: recursive_mutex::unlock by a thread that has not locked it",
         [](stage& on) {
             return said_by_child([&] {
                 client store{on.local_store()};
                 recursive_mutex{store, "job"}.unlock();
             });
         }},
        {"only a lease of a shared_mutex can be converted",
         [](stage& on) {
             client store{on.local_store()};
             auto held = mutex{store, "job"}.acquire();
             try {
                 static_cast<void>(held.downgrade());
             } catch (const std::system_error& error) {
                 return std::string{error.what()};
             }
             return std::string{};
         }},
        {"outside of a transaction: the check and the write would not be one step; begin one first",
         [](stage&) {
             return with_fence(":memory:", [](guard::fence& fence) {
                 static_cast<void>(fence.admit("stock", {33}));
             });
         }},
        {"inside a transaction: others would not see it before the commit",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             database.run("BEGIN", {});
             return thrown_by(
                 [&] { static_cast<void>(guard::fence{database}.announce("stock", {33})); });
         }},
        {"no such table: holdfast_fence",
         [](stage&) {
             return with_fence(":memory:", [](guard::fence& fence) {
                 static_cast<void>(fence.announce("stock", {33}));
             });
         }},
        {"database is locked: busy",
         [](stage& on) {
             const auto path = on.local_store().substr(6) + ".sqlite";
             const auto writer = open_database(path);
             ::sqlite3_exec(writer.get(), "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
             return with_fence(path, [](guard::fence& fence) { fence.create_table(); });
         }},
        {"a % in the user name or password is not followed by two hexadecimal digits; …",
         [](stage& on) { return on.said_on("redis://ann:50%@host", {"list"}); }},
        {"\"]\" is missing after an IPv6 address",
         [](stage& on) { return on.said_on("redis://[::1", {"list"}); }},
        {"the password is given in more than one way",
         [](stage& on) {
             return on.said_on("redis://:secret@127.0.0.1:1?password_env=HOME", {"list"});
         }},
        {"key is of no use without cert; give cert=FILE too",
         [](stage& on) { return on.said_on("rediss://127.0.0.1:1?key=/nowhere", {"list"}); }},
        {"it is protected by a pass phrase; remove that (openssl pkey)",
         [](stage& on) {
             const auto own = on.own_certificate();
             program locker{
                 {"/bin/sh", "-c",
                  "openssl pkey -aes256 -passout pass:secret -in \"$0.key\" -out \"$0.locked\"", own},
                 {.input = ""}};
             locker.wait();
             return on.said_on("rediss://127.0.0.1:1?cert=" + own + ".crt&key=" + own + ".locked",
                               {"list"});
         }},
        {"neither XDG_STATE_HOME nor HOME names a directory; write local:/path/of/a/directory",
         [](stage&) {
             program shell{
                 {"/bin/sh", "-c", "unset HOME XDG_STATE_HOME; HOLDFAST_STORE=local: exec \"$0\" list",
                  program_path()},
                 {.input = ""}};
             shell.wait();
             return shell.errors();
         }},
        {"this is a symbolic link; name the directory itself",
         [](stage& on) {
             const auto link = on.local_store().substr(6) + "-link";
             std::filesystem::create_symlink("/tmp", link);
             return on.said_on("local:" + link, {"list"});
         }},
        {"the store is damaged, or not a store of holdfast's; stop every program that uses it first, "
         "then delete …",
         [](stage& on) {
             on.use_local_store();
             std::ofstream{on.local_file("locks.db"), std::ios::trunc} << std::string(8192, 'x');
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"is not a file; delete it, or name another directory",
         [](stage& on) {
             std::filesystem::create_directories(on.local_file("locks.db"));
             return on.said({"run", "job", "--", "true"});
         }},
        {"cannot be read and written (…); make it yours (…), or name another directory: …",
         [](stage& on) {
             on.use_local_store();
             return on.said_without_access_to(on.local_file("locks.db"));
         }},
        {"is another program's database; name another directory, or move it away",
         [](stage& on) {
             on.use_local_store();
             std::filesystem::remove(on.local_file("locks.db-wal"));
             std::filesystem::remove(on.local_file("locks.db-shm"));
             std::filesystem::remove(on.local_file("locks.db"));
             ::sqlite3_exec(open_database(on.local_file("locks.db")).get(), "CREATE TABLE orders (id)",
                            nullptr, nullptr, nullptr);
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"was made by a newer holdfast (its format is …); update this program, or name another "
         "directory",
         [](stage& on) {
             on.use_local_store();
             ::sqlite3_exec(open_database(on.local_file("locks.db")).get(), "PRAGMA user_version = 99",
                            nullptr, nullptr, nullptr);
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"was made by an older holdfast (its format is …); stop every program that uses it and delete "
         "it, "
         "or name another directory",
         [](stage& on) {
             on.use_local_store();
             ::sqlite3_exec(open_database(on.local_file("locks.db")).get(), "PRAGMA user_version = 1",
                            nullptr, nullptr, nullptr);
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"has another name elsewhere (a hard link), under which others could use half of this store; …",
         [](stage& on) {
             on.use_local_store();
             std::filesystem::create_hard_link(on.local_file("locks.db"),
                                               on.local_store().substr(6) + "-other");
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"are the same server; it has one vote",
         [](stage& on) {
             const redis_server server;
             const auto port = std::to_string(server.port());
             return on.said_on(
                 "quorum:redis://127.0.0.1:" + port + " redis://localhost:" + port + " memory:x",
                 {"list"});
         }},
        {"there is no option \"…\"; there are member_timeout, drift and restart_grace",
         [](stage& on) { return on.said_on("quorum:?patience=3s memory:a", {"list"}); }},
        {"… ago and may have forgotten a lock; it votes again in …",
         [](stage& on) {
             const redis_server one;
             const redis_server two;
             return on.said_on("quorum:?restart_grace=10m " + address_of(one) + " " + address_of(two),
                               {"run", "job", "--no-wait", "--", "true"});
         }},
        {"a quorum cannot count permits: …",
         [](stage& on) {
             return on.said_on("quorum:memory:a memory:b memory:c",
                               {"run", "job", "--permits", "2", "--no-wait", "--", "true"});
         }},
        {"a quorum has no latches: …",
         [](stage&) {
             client store{"quorum:memory:a memory:b memory:c"};
             return thrown_by([&] { static_cast<void>(latch{store, "job"}.try_set(2)); });
         }},
        {"the password in --store can be read by everybody on this host; …",
         [](stage& on) {
             const redis_server server{{.password = "secret"}};
             return on.said({"run", "job", "--store",
                             "redis://:secret@127.0.0.1:" + std::to_string(server.port()), "--",
                             "true"});
         }},
        {"this runs inside holdfast run, which keeps the password unless it is called with "
         "--pass-store",
         [](stage& on) {
             const redis_server server{{.password = "secret"}};
             return on.said({"run", "job", "--", program_path(), "list"},
                            {.environment = {{"HOLDFAST_STORE", address_of(server)},
                                             {"HOLDFAST_REDIS_PASSWORD", "secret"}}});
         }},
        {"the name is in use as a read/write lock",
         [](stage&) {
             const redis_server server;
             client store{address_of(server)};
             shared_mutex lock{store, "job"};
             const auto held = lock.acquire_shared();
             return thrown_by([&] { static_cast<void>(mutex{store, "job"}.try_lock()); });
         }},
        {"the name is in use as a lock without readers",
         [](stage&) {
             const redis_server server;
             client store{address_of(server)};
             const auto held = mutex{store, "job"}.acquire();
             return thrown_by([&] { static_cast<void>(shared_mutex{store, "job"}.try_lock_shared()); });
         }},
        {"the name is in use as a latch",
         [](stage&) {
             const redis_server server;
             client store{address_of(server)};
             static_cast<void>(latch{store, "job"}.try_set(2));
             return thrown_by([&] { static_cast<void>(semaphore{store, "job", 2}.try_acquire()); });
         }},
        {"the name is not that of a semaphore: the key beside it that ends in :timeout holds no "
         "permits",
         [](stage& on) {
             const redis_server server;
             server.cli({"ZADD", "{job}:timeout", "1", "precious"});
             return on.said_on(address_of(server),
                               {"run", "job", "--permits", "2", "--no-wait", "--", "true"});
         }},
        {"one of the keys of this name holds what locks do not keep there; remove it, or take another "
         "name (…",
         [](stage&) {
             const redis_server server;
             server.cli({"RPUSH", "holdfast_turn:{job}", "precious"});
             client store{address_of(server)};
             return thrown_by([&] { static_cast<void>(mutex{store, "job"}.try_lock()); });
         }},
        {"the key … holds something else than the number of the last token; remove it: DEL …",
         [](stage& on) {
             const redis_server server;
             server.cli({"SET", "holdfast_token", "precious"});
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the key … beside the lock holds something else than its holders; remove it: DEL …",
         [](stage& on) {
             const redis_server server;
             server.cli({"SET", "holdfast_holds:{job}", "precious"});
             return on.said_on(address_of(server), {"run", "job", "--no-wait", "--", "true"});
         }},
        {"the braces in \"…\" make a cluster keep parts of this lock on different servers; …",
         [](stage& on) {
             testing_support::redis_cluster cluster{{.masters = 2, .replicas_each = 0}};
             return on.said_on("redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port()),
                               {"run", "a{b", "--no-wait", "--", "true"});
         }},
        {"only … replicas confirmed the lock in time",
         [](stage&) {
             const redis_server server;
             client store{address_of(server)};
             mutex lock{store, "job", {.replicas = replica_policy::at_least(1)}};
             return thrown_by([&] { static_cast<void>(lock.try_acquire()); });
         }},
        {"no permit of \"…\" is free, and nobody who is known holds one",
         [](stage& on) {
             const redis_server server;
             server.cli({"SET", "job", "0"});
             return on.said_on(address_of(server),
                               {"run", "job", "--permits", "2", "--no-wait", "--", "true"});
         }},
        {"\"…\" is kept for another … after … held it",
         [](stage& on) {
             static_cast<void>(on.said({"run", "job", "--min-hold", "1h", "--", "true"}));
             return on.said({"run", "job", "--no-wait", "--", "true"});
         }},
        {"this command runs under \"…\", not under \"…\"; give --token, --owner or both to say who "
         "should hold \"…\"",
         [](stage& on) {
             return on.said({"run", "job", "--", program_path(), "check", "other"});
         }},
        {"\"…\" is no longer held: stop, and undo what is not finished",
         [](stage& on) {
             return on.said({"check", "job", "--token", "1"});
         }},
        {"HOLDFAST_TOKEN: \"…\" is no token; it is a number",
         [](stage& on) {
             return on.said({"check", "job"},
                            {.environment = {{"HOLDFAST_TOKEN", "many"}, {"HOLDFAST_NAME", "job"}}});
         }},
        {"\"…\" has … holders; say which with --owner (holdfast inspect shows them)",
         [](stage& on) {
             const auto one = on.holder_of_lock("job", {"--shared"});
             const auto two = on.holder_of_lock("job", {"--shared"});
             return on.said({"release", "job"});
         }},
        {"nobody holds anything of \"…\", which is …; left alone",
         [](stage& on) {
             const redis_server server;
             server.cli({"SET", "job", "5"});
             return on.said_on(address_of(server), {"release", "job"});
         }},
        {"--grace … does not fit --ttl …: when renewals fail, at most … are left to end the command "
         "before its lease ends; …",
         [](stage& on) {
             return on.said({"run", "job", "--ttl", "2s", "--grace", "10s", "--", "true"});
         }},
        {"--no-wait and --wait exclude each other",
         [](stage& on) {
             return on.said({"run", "job", "--no-wait", "--wait", "1s", "--", "true"});
         }},
        {"it counted, and is gone without having opened: …",
         [](stage& on) {
             client store{on.local_store()};
             latch done{store, "job"};
             static_cast<void>(done.try_set(2, 300ms));
             return thrown_by([&] { done.wait(); });
         }},
        {"more than one statement in one text; run them one by one: …",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             return thrown_by([&] { database.run("BEGIN; SELECT 1", {}); });
         }},
        {"the user's table … is not there; create it with the columns …",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             return thrown_by([&] {
                 static_cast<void>(
                     guard::storage_lease(database, {.table = "stock", .key = "id"}).read("7"));
             });
         }},
        {"the sequence is NULL; set it to 0, and its column NOT NULL",
         [](stage&) {
             const auto handle = open_database(":memory:");
             guard::sqlite_database database{handle.get()};
             database.run("CREATE TABLE stock (id, lease_seq)", {});
             database.run("INSERT INTO stock VALUES ('7', NULL)", {});
             return thrown_by([&] {
                 static_cast<void>(
                     guard::storage_lease(database, {.table = "stock", .key = "id"}).read("7"));
             });
         }},
        {"the connection is null; connect first",
         [](stage&) { return thrown_by([] { guard::sqlite_database{nullptr}; }); }},
    };
    return all;
}

/// The texts that the page explains: its headings in code.
[[nodiscard]] std::vector<std::string> texts_of_the_page() {
    const auto page = read_file(std::filesystem::path{HOLDFAST_SOURCE_DIR} / "docs/troubleshooting.md");
    const std::regex heading{"### `([^\n]*)`\n"};
    std::vector<std::string> texts;
    for (std::sregex_iterator each{page.begin(), page.end(), heading}, end; each != end; ++each) {
        texts.push_back((*each)[1]);
    }
    return texts;
}

/// `…` stands for anything.
[[nodiscard]] std::string pattern_of(const std::string& text) {
    const auto escaped = std::regex_replace(text, std::regex{R"([.^$|()\[\]{}*+?\\])"}, R"(\$&)");
    return std::regex_replace(escaped, std::regex{"…"}, "[^\n]*");
}

class troubleshooting : public ::testing::TestWithParam<std::string> {};

TEST(troubleshooting_page, has_a_production_for_every_text_and_no_other) {
    std::vector<std::string> produced;
    for (const auto& [text, how] : productions()) {
        produced.push_back(text);
    }
    EXPECT_THAT(texts_of_the_page(), ::testing::UnorderedElementsAreArray(produced));
}

TEST_P(troubleshooting, text_is_really_produced) {
    stage on;
    const auto produced = productions().at(GetParam())(on);
    EXPECT_TRUE(std::regex_search(produced, std::regex{pattern_of(GetParam())})) << produced;
}

std::vector<std::string> all_texts() {
    std::vector<std::string> texts;
    for (const auto& [text, how] : productions()) {
        texts.push_back(text);
    }
    return texts;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& text) {
    std::string name;
    for (const char c : text.param) {
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    return name;
}

INSTANTIATE_TEST_SUITE_P(page, troubleshooting, ::testing::ValuesIn(all_texts()), test_name);

}  // namespace
}  // namespace holdfast::cli::testing
