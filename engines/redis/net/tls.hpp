#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <redis/net/io.hpp>
#include <redis/net/settings.hpp>

struct ssl_st;
struct ssl_ctx_st;

namespace holdfast::engines::redis {

/// A TLS conversation over a connected socket that it does not own. Nothing here waits, and nothing
/// here raises SIGPIPE.
///
/// Thread safety: none; one thread at a time.
class tls_session {
public:
    static constexpr std::string_view no_tls_there =
        "the server does not speak TLS there; write redis:// instead of rediss://, or give the port "
        "that it listens on with TLS";

    /// Reads the files. `host` is what the certificate must be for, unless the settings name something
    /// else.
    tls_session(const tls_settings& how, const std::string& host);
    tls_session(const tls_session&) = delete;
    tls_session& operator=(const tls_session&) = delete;
    ~tls_session();

    /// Why the settings cannot be used, if so.
    [[nodiscard]] const failure& unusable() const noexcept { return unusable_; }
    /// Before all that follows.
    void attach(int socket);

    [[nodiscard]] io_result handshake();
    [[nodiscard]] io_result read(std::span<char> into);
    [[nodiscard]] io_result write(std::span<const char> from);
    /// Whether there is anything but silence: the end of the conversation, or unasked-for data.
    [[nodiscard]] bool ended_or_data();

private:
    struct context_deleter {
        void operator()(ssl_ctx_st* context) const noexcept;
    };
    struct session_deleter {
        void operator()(ssl_st* session) const noexcept;
    };

    [[nodiscard]] failure load_files();
    [[nodiscard]] failure load_own_certificate();
    [[nodiscard]] failure prepare(const std::string& host);
    [[nodiscard]] failure expect_name(const std::string& name);
    [[nodiscard]] io_result outcome_of(int returned);
    [[nodiscard]] failure explain() const;
    [[nodiscard]] failure explain_verification(long verdict) const;

    tls_settings how_;
    std::string expected_name_;
    std::unique_ptr<ssl_ctx_st, context_deleter> context_;
    std::unique_ptr<ssl_st, session_deleter> session_;
    failure unusable_;
};

}  // namespace holdfast::engines::redis
