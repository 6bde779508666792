#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <common/net/descriptor.hpp>
#include <common/net/io.hpp>
#include <common/net/lookup.hpp>
#include <common/net/node_address.hpp>
#include <common/net/tls.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>

namespace holdfast::engines::net {

/// What must be known of a protocol to explain why a server does not answer a TLS handshake. A server
/// without TLS takes the handshake for the beginning of a request, and waits in silence for the rest.
struct plain_protocol {
    /// A request that the server answers at once if it speaks without TLS.
    std::string_view request;
    /// The characters that its answer may begin with.
    std::string_view first_characters;
    /// What the user should do to connect without TLS.
    std::string_view advice;
};

/// A connected socket, with or without TLS.
///
/// Thread safety: one thread may read while another writes; `shut` may be called from any thread.
class stream {
public:
    struct opened {
        std::unique_ptr<stream> connected;
        failure error;
    };

    /// The longest wait of one read. The reader then checks deadlines and health, and reads again.
    static constexpr std::chrono::milliseconds longest_read{250};

    /// Looks the name up, tries its addresses in turn, and does the TLS handshake.
    [[nodiscard]] static opened open(const node_address& server, const std::optional<tls_settings>& tls,
                                     const plain_protocol& plain, clock::time_point deadline,
                                     const waiting& wait);

    /// Whether the server answers a TLS handshake. Explains why a server did not answer without TLS.
    [[nodiscard]] static bool answers_tls(const node_address& server, clock::time_point deadline,
                                          const waiting& wait);

    stream(descriptor connected, std::string name);
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;

    /// Reads what is there, after waiting for it until `until` or for `longest_read`.
    [[nodiscard]] io_result read_some(std::span<char> into, clock::time_point until,
                                      clock::time_point now);
    /// Reads what is there.
    [[nodiscard]] io_result read_now(std::span<char> into);
    /// Writes what can be written at once.
    [[nodiscard]] io_result write_now(std::span<const char> from);

    /// Whether an idle connection was closed by the other end, or has received data that nobody asked
    /// for.
    [[nodiscard]] bool stale();
    /// Ends all reads and writes, also those that wait in other threads. The descriptor stays open
    /// until destruction, so that no thread reads from another connection by mistake.
    void shut() noexcept;
    /// Does the same, and discards the bytes that the other end has not acknowledged. Otherwise the
    /// system would go on sending them for minutes.
    void discard() noexcept;

    [[nodiscard]] int socket() const noexcept { return socket_.get(); }

private:
    [[nodiscard]] failure shake_hands(const plain_protocol& plain, clock::time_point deadline,
                                      const waiting& wait);
    [[nodiscard]] io_result read_plain(std::span<char> into, int flags);
    [[nodiscard]] io_result named(io_result result) const;

    descriptor socket_;
    std::string name_;
    /// OpenSSL cannot read and write one session at the same time.
    std::mutex tls_mutex_;
    std::unique_ptr<tls_session> tls_;
};

}  // namespace holdfast::engines::net
