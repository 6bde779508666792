#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include <nodes/outbox.hpp>

namespace holdfast::engines::nodes {

using claim_id = std::uint64_t;
using session_key = std::uint64_t;

/// A session with the store, under which claims have their nodes.
struct session_record {
    session_id id{};
    /// As it was asked for, and as it was granted.
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds granted{};
    bool open{};
    /// An open or a keep-alive is under way, since then.
    bool asking{};
    clock::time_point sent_at;
    /// When the last one left that was answered.
    clock::time_point confirmed_at;
    clock::time_point valid_until;
    clock::time_point next_keep_alive{clock::time_point::max()};
    clock::time_point used_at;
    std::set<claim_id> claims;
    /// Only for a linger: when that is over.
    std::optional<clock::time_point> ends_at;

    /// Enough of it is left to grant a lock without another keep-alive.
    [[nodiscard]] bool fresh(clock::time_point now) const { return valid_until - now >= granted / 2; }
    /// The ttl as replies say it: zero for as asked. Empty if nothing is left.
    [[nodiscard]] std::optional<std::chrono::milliseconds> granted_ttl(std::chrono::milliseconds asked,
                                                                       clock::time_point since) const;
};

/// The sessions of one client: opens them, keeps them alive and closes them.
///
/// A session counts as ended when the store says so, or when its ttl has passed since the last
/// keep-alive *left*.
///
/// Thread safety: none.
class session_pool {
public:
    session_pool(outbox& outbox, const recipe_settings& settings)
        : outbox_{outbox}, settings_{settings} {}

    /// One session for all claims with the same ttl.
    [[nodiscard]] session_key for_ttl(std::chrono::milliseconds ttl, clock::time_point now);
    [[nodiscard]] session_key make(std::chrono::milliseconds ttl, clock::time_point now);
    [[nodiscard]] session_record& at(session_key key) { return sessions_.at(key); }
    [[nodiscard]] session_record* find(session_key key);
    [[nodiscard]] session_key find_open(session_id id) const;

    /// Opens the session or keeps it alive, unless that is under way.
    void ask(session_key key, clock::time_point now);

    enum class session_change : std::uint8_t {
        none,  ///< the session is not needed any more
        confirmed,
        troubled,  ///< it may live on: see the error of the reply
        refused,   ///< it is not there, or not any more
        too_late,  ///< it was confirmed, but has ended by our clock
    };
    struct news {
        session_key key{};
        session_change change{session_change::none};
    };
    [[nodiscard]] news on_reply(request_id id, const session_reply& reply, clock::time_point now);
    void on_closed(request_id id, const remove_reply& reply, clock::time_point now);

    /// Sessions that have ended by our clock, whatever the store may still say.
    [[nodiscard]] std::vector<session_key> ended(clock::time_point now) const;
    /// Keeps sessions alive and closes those that nobody uses.
    void on_time(clock::time_point now);
    [[nodiscard]] clock::time_point next_wake() const;

    /// It is not used any more. The store may still have it: see `close`.
    [[nodiscard]] session_record take(session_key key) {
        return std::move(sessions_.extract(key).mapped());
    }
    /// Closes a session that was taken, if it was open.
    void close(const session_record& session, clock::time_point now);
    /// Neither kept alive nor closed any more.
    void abandon(session_key key) { sessions_.erase(key); }
    void close_all(clock::time_point now);
    /// Whether sessions are still being closed.
    [[nodiscard]] bool closing() const noexcept { return !closing_.empty(); }

private:
    /// A session that is not used any more, while the store may still have it.
    struct closing_session {
        session_id id{};
        clock::time_point gone_at;
        clock::time_point wakes{clock::time_point::max()};
        clock::duration pause{};
    };

    [[nodiscard]] bool confirm(session_record& session, const session_reply& reply,
                               clock::time_point now);
    void start_closing(session_id id, std::chrono::milliseconds ttl, clock::time_point now);
    void send_closing(std::uint64_t key, closing_session& session, clock::time_point now);
    [[nodiscard]] std::chrono::milliseconds rounded_ttl(std::chrono::milliseconds ttl) const;

    outbox& outbox_;
    const recipe_settings& settings_;
    std::map<session_key, session_record> sessions_;
    std::map<std::uint64_t, closing_session> closing_;
};

}  // namespace holdfast::engines::nodes
