#include <algorithm>
#include <cerrno>
#include <common/net/descriptor.hpp>
#include <common/net/tls.hpp>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace holdfast::engines::net {

namespace {

int socket_of(::BIO* bio) noexcept {
    return static_cast<int>(reinterpret_cast<std::intptr_t>(::BIO_get_data(bio)));
}

bool would_block() noexcept {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int bio_write(::BIO* bio, const char* data, int size) noexcept {
    ::BIO_clear_retry_flags(bio);
    const auto sent =
        ::send(socket_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && would_block()) {
        ::BIO_set_retry_write(bio);
    }
    return static_cast<int>(sent);
}

int bio_read(::BIO* bio, char* data, int size) noexcept {
    ::BIO_clear_retry_flags(bio);
    const auto got = ::recv(socket_of(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
    if (got < 0 && would_block()) {
        ::BIO_set_retry_read(bio);
    }
    if (got == 0) {
        ::BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    return static_cast<int>(got);
}

long bio_control(::BIO* bio, int command, long, void*) noexcept {
    switch (command) {
        case BIO_CTRL_FLUSH:
            return 1;
        case BIO_CTRL_EOF:
            return ::BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
        default:
            return 0;
    }
}

/// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE.
::BIO* make_bio(int socket) {
    static ::BIO_METHOD* const method = [] {
        ::BIO_METHOD* made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast");
        ::BIO_meth_set_write(made, &bio_write);
        ::BIO_meth_set_read(made, &bio_read);
        ::BIO_meth_set_ctrl(made, &bio_control);
        return made;
    }();
    ::BIO* bio = ::BIO_new(method);
    ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
    ::BIO_set_init(bio, 1);
    return bio;
}

std::string last_words() {
    const unsigned long error = ::ERR_peek_last_error();
    const char* reason = error == 0 ? nullptr : ::ERR_reason_error_string(error);
    return reason == nullptr ? "no reason given" : reason;
}

/// The options carry the paths the user wrote, so the words may name them.
failure bad_file(const std::string& option, const std::string& path, const std::string& reason) {
    return {errc::bad_configuration, option + "=" + path + " cannot be used: " + reason};
}

/// The system's reason why the file cannot be read. Empty if it can be.
std::string unreadable(const std::string& path) {
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct ::stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) {
        return std::generic_category().message(errno);
    }
    return S_ISDIR(facts.st_mode) ? std::generic_category().message(EISDIR) : std::string{};
}

/// The reason why OpenSSL refused a file that should hold `content`. Its own words ("PEM lib") do not
/// help.
std::string refusal(const std::string& path, const std::string& content) {
    const std::string reason = unreadable(path);
    return reason.empty() ? "it is not a " + content + " in PEM form" : reason;
}

/// Replaces OpenSSL's function, which asks at the terminal.
int no_pass_phrase(char*, int, int, void* asked) noexcept {
    *static_cast<bool*>(asked) = true;
    return -1;
}

/// The reason why a server ended the handshake with this alert. Empty for other alerts.
std::string meaning_of_alert(int reason) {
    switch (reason) {
        case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
            return "it demands a client certificate, or other ciphers";
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
            return "it does not take our certificate";
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
            return "our certificate has expired";
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
            return "our certificate was revoked";
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
            return "it does not trust the authority that issued our certificate";
        case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
            return "our certificate does not allow this";
        default:
            return {};
    }
}

int size_of(std::size_t size) noexcept {
    return static_cast<int>(std::min<std::size_t>(size, 1 << 30));
}

}  // namespace

void tls_session::context_deleter::operator()(ssl_ctx_st* context) const noexcept {
    ::SSL_CTX_free(context);
}

void tls_session::session_deleter::operator()(ssl_st* session) const noexcept {
    ::SSL_free(session);
}

tls_session::tls_session(const tls_settings& settings, const std::string& host) : settings_{settings} {
    ::ERR_clear_error();
    context_.reset(::SSL_CTX_new(::TLS_client_method()));
    if (!context_) {
        unusable_ = {errc::bad_configuration, "TLS cannot be used: " + last_words()};
        return;
    }
    ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_read_ahead(context_.get(), 1);
    ::SSL_CTX_set_mode(context_.get(),
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_CTX_set_verify(context_.get(), settings_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    unusable_ = load_files();
    if (!unusable_) {
        unusable_ = prepare(host);
    }
}

tls_session::~tls_session() {
    if (session_) {
        // Sent only if the socket takes it at once. The server can then tell an end from an accident.
        ::ERR_clear_error();
        ::SSL_shutdown(session_.get());
        ::ERR_clear_error();
    }
}

failure tls_session::load_files() {
    ::SSL_CTX* context = context_.get();
    if (settings_.ca_file.empty()) {
        ::SSL_CTX_set_default_verify_paths(context);
    } else if (::SSL_CTX_load_verify_locations(context, settings_.ca_file.c_str(), nullptr) != 1) {
        return bad_file("ca", settings_.ca_file, refusal(settings_.ca_file, "certificate"));
    }
    return settings_.certificate_file.empty() ? failure{} : load_own_certificate();
}

failure tls_session::load_own_certificate() {
    ::SSL_CTX* context = context_.get();
    const std::string& certificate = settings_.certificate_file;
    if (::SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
        return bad_file("cert", certificate, refusal(certificate, "certificate"));
    }
    const std::string& key = settings_.key_file.empty() ? certificate : settings_.key_file;
    bool asked = false;
    ::SSL_CTX_set_default_passwd_cb(context, &no_pass_phrase);
    ::SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
    ::ERR_clear_error();
    const bool taken = ::SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                       ::SSL_CTX_check_private_key(context) == 1;
    ::SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (taken) {
        return {};
    }
    if (asked) {
        return bad_file("key", key, "it is protected by a pass phrase; remove that (openssl pkey)");
    }
    if (ERR_GET_LIB(::ERR_peek_last_error()) == ERR_LIB_X509) {
        return bad_file("key", key, "it is not the key of the certificate cert=" + certificate);
    }
    if (settings_.key_file.empty()) {
        return bad_file("cert", certificate, "it holds no private key in PEM form; give key=FILE, too");
    }
    return bad_file("key", key, refusal(key, "private key"));
}

failure tls_session::prepare(const std::string& host) {
    session_.reset(::SSL_new(context_.get()));
    if (!session_) {
        return {errc::bad_configuration, "TLS cannot be used: " + last_words()};
    }
    ::SSL_set_connect_state(session_.get());
    return expect_name(settings_.server_name.empty() ? host : settings_.server_name);
}

void tls_session::attach(int socket) {
    ::BIO* bio = make_bio(socket);
    ::SSL_set_bio(session_.get(), bio, bio);
}

failure tls_session::expect_name(const std::string& name) {
    expected_name_ = name;
    ::X509_VERIFY_PARAM* rules = ::SSL_get0_param(session_.get());
    if (::X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1) {
        return {};
    }
    ::ERR_clear_error();
    if (name.empty() || ::SSL_set1_host(session_.get(), name.c_str()) != 1 ||
        ::SSL_set_tlsext_host_name(session_.get(), name.c_str()) != 1) {
        return {errc::bad_configuration,
                "\"" + name + "\" cannot be a server's name; give server_name=NAME"};
    }
    return {};
}

io_result tls_session::handshake() {
    ::ERR_clear_error();
    return outcome_of(::SSL_do_handshake(session_.get()));
}

io_result tls_session::read(std::span<char> into) {
    ::ERR_clear_error();
    return outcome_of(::SSL_read(session_.get(), into.data(), size_of(into.size())));
}

io_result tls_session::write(std::span<const char> from) {
    ::ERR_clear_error();
    return outcome_of(::SSL_write(session_.get(), from.data(), size_of(from.size())));
}

bool tls_session::ended_or_data() {
    char one{};
    ::ERR_clear_error();
    return outcome_of(::SSL_peek(session_.get(), &one, 1)).outcome != io_result::status::again;
}

io_result tls_session::outcome_of(int returned) {
    using status = io_result::status;
    if (returned > 0) {
        return {.outcome = status::done, .bytes = static_cast<std::size_t>(returned), .error = {}};
    }
    const int system_error = errno;
    switch (::SSL_get_error(session_.get(), returned)) {
        case SSL_ERROR_WANT_READ:
            return {.outcome = status::again, .events = POLLIN, .error = {}};
        case SSL_ERROR_WANT_WRITE:
            return {.outcome = status::again, .events = POLLOUT, .error = {}};
        case SSL_ERROR_ZERO_RETURN:
            return {.outcome = status::closed,
                    .error = {errc::store_unavailable, "the server closed the connection"}};
        case SSL_ERROR_SYSCALL: {
            const bool broken = system_error != 0;
            const std::string words = broken ? std::generic_category().message(system_error)
                                             : "the server closed the connection";
            return {.outcome = status::closed, .error = {errc::store_unavailable, words}};
        }
        default:
            return {.outcome = status::failed, .error = explain()};
    }
}

failure tls_session::explain() const {
    if (const long verdict = ::SSL_get_verify_result(session_.get());
        settings_.verify && verdict != X509_V_OK) {
        return explain_verification(verdict);
    }
    const unsigned long error = ::ERR_peek_error();
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
        return {errc::store_unavailable, "TLS failed: " + last_words()};
    }
    switch (ERR_GET_REASON(error)) {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return {errc::store_unavailable, "the server closed the connection"};
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_PACKET_LENGTH_TOO_LONG:
        case SSL_R_HTTP_REQUEST:
            return {errc::bad_configuration, std::string{no_tls_there}};
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
            return {errc::bad_configuration,
                    "the server demands a client certificate; give cert=FILE&key=FILE"};
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            return {
                errc::bad_configuration,
                "the server does not speak TLS 1.2 or later; allow it in the server's configuration"};
        default:
            break;
    }
    if (const auto words = meaning_of_alert(ERR_GET_REASON(error)); !words.empty()) {
        return {errc::bad_configuration,
                "the server refused the TLS handshake: " + words + "; look at cert=FILE and key=FILE"};
    }
    return {errc::store_unavailable, "TLS failed: " + last_words()};
}

failure tls_session::explain_verification(long verdict) const {
    const std::string words = ::X509_verify_cert_error_string(verdict);
    switch (verdict) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return {errc::bad_configuration, "the server's certificate is not for \"" + expected_name_ +
                                                 "\" (" + words +
                                                 "); give server_name=NAME with the name it is for"};
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return {errc::bad_configuration, "the server's certificate is not valid now: " + words +
                                                 "; renew it, or set the clock"};
        default:
            return {errc::bad_configuration,
                    "the server's certificate is not trusted: " + words +
                        "; give ca=FILE with the certificate of the authority that issued it" +
                        (settings_.ca_file.empty() ? "" : " (it is not in " + settings_.ca_file + ")")};
    }
}

}  // namespace holdfast::engines::net
