#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <redis/net/descriptor.hpp>
#include <redis/net/io.hpp>
#include <redis/net/lookup.hpp>
#include <redis/net/settings.hpp>
#include <redis/net/tls.hpp>

namespace holdfast::engines::redis {

/// A connected socket, with or without TLS.
///
/// Thread safety: one thread may read while another writes; `shut` may be called from any thread.
class stream {
public:
    struct opened {
        std::unique_ptr<stream> connected;
        failure error;
    };

    /// No read waits longer than this before it comes back for its caller to look around.
    static constexpr std::chrono::milliseconds longest_read{250};

    /// Looks the name up, connects (to each of its addresses in turn) and does the TLS handshake.
    [[nodiscard]] static opened open(const node_address& where, const std::optional<tls_settings>& tls,
                                     clock::time_point deadline, const waiting& wait);

    /// Whether the server answers a TLS handshake: for those who have spoken without TLS in vain.
    [[nodiscard]] static bool answers_tls(const node_address& where, clock::time_point deadline,
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

    /// Whether an idle connection was closed by the other end, or got what nobody asked for.
    [[nodiscard]] bool stale();
    /// Ends every read and write, also those that wait in other threads. The descriptor stays taken
    /// until destruction, so that none of them touches another's.
    void shut() noexcept;
    /// The same, and bytes that the other end has not acknowledged yet are thrown away: otherwise the
    /// system would go on sending them for minutes.
    void discard() noexcept;

    [[nodiscard]] int socket() const noexcept { return socket_.get(); }

private:
    [[nodiscard]] failure shake_hands(clock::time_point deadline, const waiting& wait);
    [[nodiscard]] io_result read_plain(std::span<char> into, int flags);
    [[nodiscard]] io_result named(io_result result) const;

    descriptor socket_;
    std::string name_;
    /// OpenSSL cannot read and write one session at the same time.
    std::mutex tls_mutex_;
    std::unique_ptr<tls_session> tls_;
};

}  // namespace holdfast::engines::redis
