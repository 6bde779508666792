#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <support/redis_client.hpp>
#include <support/server_process.hpp>

/// Real Redis servers for tests, alone and together: on the loopback interface, on free ports, in
/// temporary directories; gone at the end of the test whatever happens. Constructors return when the
/// servers are ready for use, and throw `std::runtime_error` with their logs when they do not get
/// ready. The environment variable HOLDFAST_TEST_REDIS_SERVER names another program than redis-server:
/// Valkey's, or another version's.
namespace holdfast::testing_support {

/// Files in PEM form, made once per test program.
struct tls_files {
    std::filesystem::path ca;
    /// For the names localhost and 127.0.0.1.
    std::filesystem::path server_certificate;
    std::filesystem::path server_key;
    std::filesystem::path client_certificate;
    std::filesystem::path client_key;
    /// An authority that signed none of these.
    std::filesystem::path other_ca;
};
[[nodiscard]] const tls_files& test_certificates();

enum class tls_use : std::uint8_t {
    none,
    /// The server listens only with TLS, and shows `test_certificates().server_certificate`.
    server_certificate,
    /// It also asks clients for a certificate.
    both_certificates,
};

/// What a server finds in its directory when it starts again.
enum class data_files : std::uint8_t { kept, removed };

struct redis_server_options {
    /// Put after ours on the command line, so that these win: {"--maxmemory", "1mb"}.
    std::vector<std::string> arguments{};
    /// Of the default user.
    std::string password{};
    /// Lines of an ACL file: "user alice on >secret ~* &* +@all".
    std::string acl{};
    tls_use tls{tls_use::none};
    /// The content of a configuration file of the server's own, which it may rewrite.
    std::string configuration{};
};

/// One server. Does not save by itself; `cli({"SAVE"})` does.
///
/// Thread safety: none, except that `cli` may be called from any thread while the server runs.
class redis_server {
public:
    explicit redis_server(redis_server_options options = {});
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;
    ~redis_server();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] pid_t pid() const;
    /// Every server listens here as well, whatever else its options say.
    [[nodiscard]] std::filesystem::path unix_socket() const;
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return files_.path(); }
    [[nodiscard]] std::string log() const;
    [[nodiscard]] bool running();

    /// Runs a command as somebody who may do everything, and gives the answer as redis-cli would write
    /// it: errors too, elements of arrays on lines of their own.
    std::string cli(const std::vector<std::string>& words) const;
    /// The same, unchanged.
    redis_reply ask(const std::vector<std::string>& words) const;
    /// One line of INFO: `info("connected_clients")`.
    [[nodiscard]] std::string info(std::string_view field) const;
    /// A connection of one's own, logged in.
    [[nodiscard]] redis_client connect() const;

    /// Asks the server to end, and waits for it.
    void stop();
    /// SIGKILL.
    void kill_hard();
    /// The same port and directory as before.
    void start_again(data_files data = data_files::kept);
    /// The server is there and does nothing: connections are accepted by the system, no answer comes.
    void pause();
    void resume();
    /// `type`: "normal", "pubsub", "master" or "replica". Ends these connections.
    void client_kill(const std::string& type) const;

private:
    [[nodiscard]] std::vector<std::string> command_line() const;
    [[nodiscard]] bool try_to_start();
    [[nodiscard]] std::string complaint() const;

    temporary_directory files_;
    redis_server_options options_;
    std::uint16_t port_{};
    std::unique_ptr<server_process> process_;
};

/// A master with replicas that are online.
class redis_replicas {
public:
    explicit redis_replicas(std::size_t count, const redis_server_options& options = {});

    [[nodiscard]] redis_server& master() noexcept { return *servers_.front(); }
    [[nodiscard]] redis_server& replica(std::size_t index) { return *servers_.at(index + 1); }
    [[nodiscard]] std::size_t replica_count() const noexcept { return servers_.size() - 1; }
    /// Until so many replicas are connected and in step.
    void wait_for_replicas(std::size_t count);

private:
    std::vector<std::unique_ptr<redis_server>> servers_;
};

/// A master, two replicas and three sentinels that watch over them under the name `service()`.
/// After the master's end the sentinels agree on a new one within about two seconds.
class redis_sentinels {
public:
    /// With TLS they speak so among themselves, too.
    explicit redis_sentinels(tls_use tls = tls_use::none);

    [[nodiscard]] static std::string service() { return "holdfast"; }
    [[nodiscard]] std::vector<std::uint16_t> sentinel_ports() const;
    [[nodiscard]] redis_server& sentinel(std::size_t index) { return *sentinels_.at(index); }
    [[nodiscard]] redis_server& server(std::uint16_t port);
    /// Whom the first sentinel that runs calls the master.
    [[nodiscard]] redis_server& master();
    /// SIGKILL; returns its port.
    std::uint16_t kill_master();
    /// Until all sentinels that run agree on another master, and it takes writes. Returns its port.
    std::uint16_t wait_for_new_master(std::uint16_t old_port,
                                      std::chrono::milliseconds limit = server_patience);

private:
    [[nodiscard]] std::uint16_t named_master(const redis_server& sentinel) const;

    redis_replicas servers_;
    std::vector<std::unique_ptr<redis_server>> sentinels_;
};

struct redis_cluster_options {
    std::size_t masters{3};
    std::size_t replicas_each{1};
    /// After this long a node that does not answer counts as failed.
    std::chrono::milliseconds node_timeout{1000};
    redis_server_options server{};
};

/// A cluster in which every node says that all is well.
class redis_cluster {
public:
    explicit redis_cluster(redis_cluster_options options = {});

    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    [[nodiscard]] redis_server& node(std::size_t index) { return *nodes_.at(index); }
    [[nodiscard]] redis_server& server(std::uint16_t port);
    [[nodiscard]] std::vector<std::uint16_t> ports() const;

    /// The master that serves a slot, as most of the running nodes see it.
    [[nodiscard]] redis_server& node_of_slot(std::uint16_t slot);
    /// A master that does not serve it.
    [[nodiscard]] redis_server& node_without_slot(std::uint16_t slot);

    /// Moves a slot with its keys. The same in three steps, to see what happens in between.
    void migrate_slot(std::uint16_t slot, redis_server& to);
    void begin_migration(std::uint16_t slot, redis_server& to);
    void migrate_keys(std::uint16_t slot, redis_server& to);
    void finish_migration(std::uint16_t slot, redis_server& to);

    /// SIGKILL; returns its port.
    std::uint16_t kill_master_of(std::uint16_t slot);
    /// Until the nodes that run agree on another master for the slot and the cluster is well again.
    std::uint16_t wait_for_new_master(std::uint16_t slot, std::uint16_t old_port,
                                      std::chrono::milliseconds limit = server_patience);
    /// Makes a replica the master of a slot while the old one lives. Returns the new one's port.
    std::uint16_t failover(std::uint16_t slot);
    /// Until every node that runs says so.
    void wait_until_well(std::chrono::milliseconds limit = server_patience);

private:
    [[nodiscard]] std::string id_of(const redis_server& node) const;
    [[nodiscard]] std::vector<redis_server*> running();
    [[nodiscard]] std::optional<std::uint16_t> agreed_master(std::uint16_t slot);
    void build(const redis_server_options& of_a_node);
    void assign_slots();
    void introduce();
    void attach_replicas();

    redis_cluster_options options_;
    std::vector<std::unique_ptr<redis_server>> nodes_;
};

}  // namespace holdfast::testing_support
