#include <redis/net/foreign.hpp>

#include <string>

namespace holdfast::engines::redis {

namespace {

/// The first packet of MySQL and MariaDB: its length, the number 0, and the version of the protocol or
/// the mark of an error. The length may be a letter that begins an answer of Redis'.
[[nodiscard]] bool greets_like_mysql(std::string_view words) {
    return words.size() > 4 && words.substr(1, 3) == std::string_view{"\0\0\0", 3} &&
           (words[4] == '\x0a' || words[4] == '\xff');
}

}  // namespace

failure expects_tls() {
    return {errc::bad_configuration, "the server expects TLS; use rediss:// instead of redis://"};
}

failure foreign_protocol(std::string_view first_words) {
    std::string_view found;
    if (first_words.starts_with("\x15\x03") || first_words.starts_with("\x16\x03")) {
        return expects_tls();
    }
    if (first_words.starts_with("HTTP/") || first_words.starts_with("<!DOCTYPE") ||
        first_words.starts_with("<html")) {
        found = "an HTTP server";
    } else if (first_words.starts_with("SSH-")) {
        found = "an SSH server";
    } else if (first_words.starts_with("220")) {
        found = "a mail or FTP server";
    } else if (greets_like_mysql(first_words)) {
        found = "a MySQL or MariaDB server";
    }
    if (found.empty()) {
        return {};
    }
    return {errc::bad_configuration,
            "this is not a Redis server: " + std::string{found} + " answers there; is the port right?"};
}

}  // namespace holdfast::engines::redis
