#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/guarantees.hpp>
#include <holdfast/info.hpp>
#include <holdfast/options.hpp>

namespace holdfast::engines {
inline namespace v0 {
class engine;
struct client_identity;
}  // namespace v0
}  // namespace holdfast::engines

namespace holdfast::detail {
class session;
struct access;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

struct quorum;

/// A lock that `client::shutdown` could not give back for certain.
struct unreleased {
    std::string name;
    fencing_token token;
    failure error;
};

/// A page of `client::list`. It may have few locks, or none, and not be the last.
struct lock_page {
    std::vector<lock_info> locks;
    /// Pass it on to get the next page; empty when there is none.
    std::string next;
    /// Set when a part of the store does not answer: its locks are not in this page.
    failure missing{};
};

/// A connection to a store, shared by any number of locks and threads.
///
/// Errors: `std::system_error` from whatever fails.
/// Lifetime: mutexes and leases keep what they need of it alive. But once the client is gone, every
/// lease is lost and every call fails with `errc::shut_down`.
/// After `fork`, the child must make a client of its own: calls on the parent's fail with
/// `errc::forked`, and destructors in the child leave the parent's locks alone.
/// Thread safety: all functions may be called from any thread.
class HOLDFAST_EXPORT client {
public:
    /// The store named by `HOLDFAST_STORE`, or else `local:`, the embedded store of this host and
    /// user. A variable that is set but empty is refused (`errc::bad_configuration`).
    client();
    /// The same store.
    explicit client(const client_options& options);
    /// `memory:[name]` (this process), `local:[path]` (this host), `redis://…` (every host that uses
    /// it), `quorum:` and several of them.
    /// Throws `std::system_error` with an `errc` when the store cannot be used; see also
    /// `client_options::opening_patience`.
    explicit client(const std::string& store, const client_options& options = {});
    /// Several stores that hold locks together; see `holdfast/quorum.hpp`.
    explicit client(const quorum& stores, const client_options& options = {});
    /// Over an engine made elsewhere. Null: `errc::invalid_argument`.
    explicit client(std::unique_ptr<engines::engine> engine, const engines::client_identity& identity,
                    const client_options& options = {});
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    /// `shutdown` with two seconds.
    ~client();

    /// What the store promises.
    [[nodiscard]] const engines::guarantees& promises() const noexcept;
    /// The store's address without secrets.
    [[nodiscard]] const std::string& store() const noexcept;

    /// How many requests this client has sent to the store so far.
    [[nodiscard]] std::uint64_t requests() const noexcept;
    /// How many events the observer was not told of: too many waited for it, or `shutdown` dropped
    /// them.
    [[nodiscard]] std::uint64_t dropped_events() const noexcept;

    /// Takes at most `timeout` (more than zero; default: the client's `request_timeout`).
    [[nodiscard]] lock_info inspect(std::string_view name,
                                    std::optional<std::chrono::milliseconds> timeout = {});
    /// Each page takes at most `timeout` (more than zero; default: the client's `request_timeout`).
    [[nodiscard]] lock_page list(std::string_view prefix = {}, std::string_view from = {},
                                 std::size_t limit = 1000,
                                 std::optional<std::chrono::milliseconds> timeout = {});
    /// Takes the lock from a holder: only from the one named by owner and token, so a lock that went
    /// to another process since it was looked at is left alone. False: it did. Threads of one process
    /// that hand the lock over among themselves have one owner, and the store knows the first of their
    /// tokens only: any of them names the thread that has the lock now.
    bool revoke(std::string_view name, const owner_id& owner, fencing_token token,
                const std::string& reason);

    /// What is known of the store's set-up, and what of it endangers locks.
    [[nodiscard]] std::vector<finding> examine();

    /// Ends all waiting with `errc::shut_down`, tells every lease (`lost()`), gives everything back.
    /// Returns what could not be given back by then; ttls will free that. A thread whose request the
    /// store does not answer returns when its request times out, possibly after this call.
    /// With a `timeout` of zero or less it waits for nothing. The second time it does nothing.
    std::vector<unreleased> shutdown(std::chrono::milliseconds timeout);

private:
    friend struct detail::access;

    std::shared_ptr<detail::session> session_;
};

}  // namespace v0
}  // namespace holdfast
