#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/engine.hpp>
#include <local/database.hpp>
#include <local/process.hpp>
#include <local/store_files.hpp>
#include <records/rules.hpp>

namespace holdfast::engines::local {

/// A hold, its owner's card and its owner's process, as far as the owner left them.
struct seen_hold {
    std::string name;
    records::hold hold;
    std::optional<holder_card> card;
    process_ref process;
};

/// The requests of the contract as SQL, on one connection. Knows nothing of waiting and waking, nor
/// which processes are alive. Requests have passed `check_request`. Every function throws
/// `database_error` when SQLite fails, and has then changed nothing (unless it says
/// `outcome_unknown`).
///
/// Thread safety: one thread at a time.
class store_connection {
public:
    store_connection(const store_files& files, database::opening mode, clock::time_point deadline,
                     const std::atomic<bool>& stopping)
        : files_{files}, database_{files.database(), mode, deadline, stopping} {}
    store_connection(const store_connection&) = delete;
    store_connection& operator=(const store_connection&) = delete;
    ~store_connection();

    [[nodiscard]] database& raw() noexcept { return database_; }

    struct acquired {
        acquire_reply reply;
        /// Others may have become able to get their share.
        bool downgraded{};
    };
    /// Holds of the clients in `dead` count as expired.
    [[nodiscard]] acquired acquire(const acquire_request& request, std::span<const owner_id> dead);
    /// Only looks: the answer if the request had to be refused or told "busy", else nothing.
    [[nodiscard]] std::optional<acquire_reply> look_before_acquire(const acquire_request& request);
    void renew(std::span<const renew_request> batch, std::span<renew_reply> replies);
    [[nodiscard]] release_reply release(const release_request& request);
    [[nodiscard]] revoke_reply revoke(const revoke_request& request);
    [[nodiscard]] latch_reply latch(const latch_request& request);
    /// Its count and whether it is known.
    [[nodiscard]] latch_reply read_latch(std::string_view name);

    /// The holds of one name that have not expired, in the order of their tokens.
    [[nodiscard]] std::vector<seen_hold> holders(std::string_view name);
    /// All holds from the name `first` on whose names begin with `prefix`, in the order of names, for
    /// as long as `more` says so.
    void scan(std::string_view first, std::string_view prefix,
              const std::function<bool(seen_hold&&)>& more);
    [[nodiscard]] std::optional<revocation_info> last_revocation(std::string_view name);

    /// For a client that opens the store: leaves its card, and raises the token counter to the wall
    /// clock, at no cost to grants.
    void enter(const client_identity& identity, const process_ref& process);
    /// Unless something of the client's is still there.
    void take_card_back(const owner_id& client);
    /// Forgets what expired, and the cards of processes that ended and left nothing.
    void sweep(const process_ref& observer);

private:
    [[nodiscard]] bool lingers(const release_request& request, clock::time_point now);
    /// Into `holds_` and `last_token_`.
    void read_holds(std::string_view name);
    /// Of names that begin like this one, in the table of `select_torn`.
    void check_long_names(statement& select_torn, std::string_view name);
    [[noreturn]] void fail_damaged() const;
    void delete_hold(std::string_view name, const owner_id& owner);
    void forget_expired_and_dead(const acquire_request& request, clock::time_point now,
                                 std::span<const owner_id> dead);
    [[noreturn]] void fail_without_counter() const;
    void insert(std::string_view name, const records::hold& hold);
    void update(std::string_view name, const records::hold& hold);
    [[nodiscard]] seen_hold read_seen_hold(const statement& row) const;
    [[nodiscard]] std::vector<std::int64_t> superfluous_cards(const process_ref& observer);
    void raise_counter();
    void leave_card(const client_identity& identity, const process_ref& process);
    [[nodiscard]] bool is_marked(const latch_request& request);
    void mark(const latch_request& request);
    void write_latch(std::string_view name, const latch_reply& state, clock::time_point expires);
    void open_latch(std::string_view name, const latch_reply& state);

    const store_files& files_;
    database database_;
    /// Kept between calls for its memory.
    std::vector<records::hold> holds_;
    std::optional<std::uint64_t> last_token_;

    /// The token counter first, by the way: so it costs no statement of its own.
    statement select_holds_{
        database_,
        "SELECT owner, mode, permits, permit_limit, token, token_count, since, expires, lingering "
        "FROM hold WHERE name = x'' AND owner = x'' UNION ALL "
        "SELECT owner, mode, permits, permit_limit, token, token_count, since, expires, lingering "
        "FROM hold WHERE name = ?1"};
    statement select_torn_hold_{
        database_, "SELECT 1 FROM hold WHERE name >= ?1 AND name < ?2 AND expires & 65535 = 0 LIMIT 1"};
    statement select_torn_latch_{
        database_,
        "SELECT 1 FROM latch WHERE name >= ?1 AND name < ?2 AND expires & 65535 = 0 LIMIT 1"};
    statement delete_hold_{database_, "DELETE FROM hold WHERE name = ?1 AND owner = ?2"};
    statement set_counter_{database_, "UPDATE hold SET token = ?1 WHERE name = x'' AND owner = x''"};
    statement insert_hold_{database_, "INSERT INTO hold VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)"};
    statement update_hold_{database_,
                           "UPDATE hold SET mode = ?3, token = ?4, token_count = ?5, expires = ?6 "
                           "WHERE name = ?1 AND owner = ?2"};
    statement renew_{database_,
                     "UPDATE hold SET expires = max(expires, ?3) WHERE name = ?1 AND owner = ?2 "
                     "AND lingering = 0 AND expires > ?4 AND (mode = ?5 OR mode = 0 AND ?5 = 1)"};
    statement release_{
        database_,
        "DELETE FROM hold WHERE name = ?1 AND owner = ?2 AND lingering = 0 AND expires > ?3"};
    statement linger_{database_,
                      "UPDATE hold SET lingering = 1, expires = ?4 WHERE name = ?1 AND owner = ?2 "
                      "AND lingering = 0 AND expires > ?3"};
    statement revoke_{
        database_, "DELETE FROM hold WHERE name = ?1 AND owner = ?2 AND token = ?3 AND expires > ?4"};
    statement insert_revocation_{
        database_,
        "INSERT OR REPLACE INTO revocation(name, owner, token, actor, reason, at) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6)"};
    statement trim_revocations_{database_, "DELETE FROM revocation WHERE sequence <= ?1"};
    statement select_revocation_{
        database_, "SELECT owner, token, actor, reason, at FROM revocation WHERE name = ?1"};
    statement select_seen_{
        database_,
        "SELECT h.name, h.owner, h.mode, h.permits, h.permit_limit, h.token, h.token_count, "
        "h.since, h.expires, h.lingering, c.host, c.card_pid, c.program, c.label, c.pid, "
        "c.start_time, c.pid_namespace FROM hold h "
        "LEFT JOIN client c ON c.id = substr(h.owner, 1, 16) "
        "WHERE h.name >= ?1 AND h.expires > ?2 ORDER BY h.name, h.owner"};
    statement select_latch_{database_,
                            "SELECT count, line, openings FROM latch WHERE name = ?1 AND expires > ?2"};
    statement set_latch_{database_, "INSERT OR REPLACE INTO latch VALUES(?1, ?2, ?3, ?4, ?5)"};
    statement count_latch_{database_, "UPDATE latch SET count = ?2 WHERE name = ?1"};
    statement forget_latches_{database_,
                              "DELETE FROM latch WHERE expires <= ?1 AND expires & 65535 <> 0"};
    statement select_mark_{database_, "SELECT 1 FROM latch_mark WHERE request = ?1 AND name = ?2"};
    statement insert_mark_{database_, "INSERT INTO latch_mark(request, name) VALUES(?1, ?2)"};
    statement trim_marks_{database_, "DELETE FROM latch_mark WHERE sequence <= ?1"};
};

}  // namespace holdfast::engines::local
