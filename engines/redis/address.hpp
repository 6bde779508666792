#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <redis/net/settings.hpp>

namespace holdfast::engines::redis {

enum class topology_kind : std::uint8_t { standalone, sentinel, cluster };

/// A store address, taken apart.
///
///     redis://[user[:password]@]host[:port][/database][?option=value&…]
///     rediss://…                                 the same, with TLS
///     redis+unix:///path/to/socket[?…]           options: database
///     redis+sentinel://host[:port],…/service[/database][?…]    default port 26379
///     redis+cluster://host[:port],…[?…]
///     rediss+sentinel://…  rediss+cluster://…
///
/// Options: ca=FILE, cert=FILE, key=FILE, server_name=NAME, verify=no (TLS); user=NAME,
/// password_file=FILE, password_env=VARIABLE; sentinel_user=NAME, sentinel_password_file=FILE,
/// sentinel_password_env=VARIABLE; connect_timeout=MS; prefix=TEXT (put before every lock name, as a
/// Redisson NameMapper would); sharded=auto|on|off (cluster); fenced=redisson (tokens from
/// `redisson_lock_token:{name}`). Unknown options are an error.
/// Without a password in the address, HOLDFAST_REDIS_PASSWORD and HOLDFAST_REDIS_USER are used,
/// and refused if they are set but empty.
struct address {
    topology_kind topology{};
    std::vector<node_address> nodes;
    std::string service;
    connection_settings connection;
    credentials sentinel_login;
    std::string prefix;
    enum class sharding : std::uint8_t { automatic, on, off } sharded{};
    bool redisson_tokens{};
    /// Without secrets, for errors and `inspect`. Of the options only those that make it another store.
    std::string text;
    /// Where the locks are: servers (in any order), service, database and prefix. See
    /// `engine::store_identity`.
    std::string identity;
};

/// Whether files and environment variables with passwords are read.
enum class passwords : std::uint8_t { read, ignored };

/// Throws `std::system_error` with `errc::bad_configuration` and a text with the correct form;
/// never with the password in them, nor with anything that may be one in an address that is not
/// understood. The absolute path of a password file is no password.
[[nodiscard]] address parse_address(std::string_view scheme, std::string_view rest,
                                    passwords wanted = passwords::read);

/// `address::text` and `address::identity`, from the rest of it.
[[nodiscard]] std::string shown_text(std::string_view scheme, const address& store);
[[nodiscard]] std::string identity_text(std::string_view scheme, const address& store);

}  // namespace holdfast::engines::redis
