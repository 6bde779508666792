#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <common/net/io.hpp>
#include <holdfast/error.hpp>

struct ssl_st;
struct ssl_ctx_st;

namespace holdfast::engines::net {

struct tls_settings {
    /// Files in PEM form. An empty `ca_file` means the system's certificate store.
    std::string ca_file;
    std::string certificate_file;
    std::string key_file;
    /// The name the certificate must carry; empty: the host we connect to.
    std::string server_name;
    /// Only ever off when the address says so.
    bool verify{true};
};

/// A TLS conversation over a connected socket that it does not own. Nothing here waits, and nothing
/// here raises SIGPIPE.
///
/// Thread safety: none; one thread at a time.
class tls_session {
public:
    static constexpr std::string_view no_tls_there = "the server does not speak TLS there";

    /// Reads the files. The certificate must be for `host`, unless the settings give another name.
    tls_session(const tls_settings& settings, const std::string& host);
    tls_session(const tls_session&) = delete;
    tls_session& operator=(const tls_session&) = delete;
    ~tls_session();

    /// Set if the settings cannot be used.
    [[nodiscard]] const failure& unusable() const noexcept { return unusable_; }
    /// Must be called before all functions below.
    void attach(int socket);

    [[nodiscard]] io_result handshake();
    [[nodiscard]] io_result read(std::span<char> into);
    [[nodiscard]] io_result write(std::span<const char> from);
    /// Whether an idle conversation has ended, or has received data that nobody asked for.
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

    tls_settings settings_;
    std::string expected_name_;
    std::unique_ptr<ssl_ctx_st, context_deleter> context_;
    std::unique_ptr<ssl_st, session_deleter> session_;
    failure unusable_;
};

}  // namespace holdfast::engines::net
