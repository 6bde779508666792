#include <algorithm>
#include <array>
#include <common/check.hpp>
#include <limits>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/owner.hpp>

namespace holdfast::guard {
inline namespace v0 {

namespace {

using namespace std::chrono_literals;

/// `taken_until`: a claim's end while it is not finished, and when it may be forgotten afterwards. In
/// both cases somebody else may claim the operation from then on.
std::string claiming(dialect which, const std::string& table, const std::string& now) {
    const auto values =
        " (operation, attempt, claimant, finished, outcome, taken_until) VALUES ($1, 1, "
        "$2, 0, NULL, " +
        now + " + $3) ";
    if (which == dialect::mysql) {
        const auto over = "taken_until <= " + now;
        // Assignments are made from left to right: what the condition looks at is last.
        return "INSERT INTO " + table + values + "ON DUPLICATE KEY UPDATE attempt = attempt + (" +
               over + "), claimant = IF(" + over + ", VALUES(claimant), claimant), finished = IF(" +
               over + ", 0, finished), outcome = IF(" + over + ", NULL, outcome), taken_until = IF(" +
               over + ", VALUES(taken_until), taken_until)";
    }
    return "INSERT INTO " + table + " AS held" + values +
           "ON CONFLICT (operation) DO UPDATE SET attempt = held.attempt + 1, claimant = "
           "excluded.claimant, finished = 0, outcome = NULL, taken_until = excluded.taken_until WHERE "
           "held.taken_until <= " +
           now + " RETURNING attempt, claimant";
}

std::string forgetting(dialect which, const std::string& table, const std::string& now) {
    const auto over =
        "taken_until <= " + now + " AND (finished = 1 OR taken_until <= " + now + " - $1)";
    if (which == dialect::mysql) {
        return "DELETE FROM " + table + " WHERE " + over + " LIMIT $2";
    }
    // The condition stands twice: where PostgreSQL had to wait for a row it looks at the outer one
    // again, but not at the inner one, and the row may have been claimed or completed meanwhile.
    return "DELETE FROM " + table + " WHERE operation IN (SELECT operation FROM " + table + " WHERE " +
           over + " LIMIT $2) AND " + over;
}

std::string once_table(dialect which, const std::string& table) {
    const auto create = "CREATE TABLE IF NOT EXISTS " + table;
    switch (which) {
        case dialect::sqlite:
            return create +
                   " (operation TEXT PRIMARY KEY, attempt INTEGER NOT NULL, claimant TEXT NOT NULL,"
                   " finished INTEGER NOT NULL, outcome BLOB, taken_until INTEGER NOT NULL)";
        case dialect::postgres:
            return create +
                   " (operation bytea PRIMARY KEY, attempt bigint NOT NULL, claimant text NOT NULL,"
                   " finished smallint NOT NULL, outcome bytea, taken_until bigint NOT NULL)";
        case dialect::mysql:
            break;
    }
    return create +
           " (operation VARBINARY(255) PRIMARY KEY, attempt BIGINT NOT NULL,"
           " claimant VARBINARY(36) NOT NULL, finished TINYINT NOT NULL, outcome LONGBLOB,"
           " taken_until BIGINT NOT NULL, INDEX (taken_until)) ENGINE=InnoDB";
}

/// For `forget`; MySQL's table has it from the beginning. An index lies in its table's schema: SQLite
/// wants to hear that at the index, PostgreSQL at the table.
std::string indexing(dialect which, const std::string& table) {
    const auto dot = table.rfind('.') + 1;
    const auto schema = table.substr(0, dot);
    const auto name = table.substr(dot);
    const auto create = [](const std::string& index, const std::string& on) {
        return "CREATE INDEX IF NOT EXISTS " + index + "_taken_until ON " + on + " (taken_until)";
    };
    return which == dialect::sqlite ? create(table, name) : create(name, schema + name);
}

/// The row of a ticket. PostgreSQL computes what it writes before it waits for the row, so it locks the
/// row first: a sub-select that locks is done before everything else.
std::string of_the_ticket(dialect which, const std::string& table) {
    std::string ours = " WHERE operation = $1 AND claimant = $2";
    if (which != dialect::postgres) {
        return ours;
    }
    return " WHERE operation = (SELECT operation FROM " + table + ours +
           " FOR NO KEY UPDATE) AND claimant = $2";
}

/// Whether a statement took so long that the claim which it wrote may be nearly over. Whoever has the
/// claim counts from the answer.
bool came_late(clock::time_point sent, std::chrono::milliseconds lasts) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - sent) > lasts / 10;
}

}  // namespace

std::string_view to_string(once_reply::verdict result) noexcept {
    switch (result) {
        case once_reply::verdict::claimed:
            return "claimed";
        case once_reply::verdict::running:
            return "running";
        case once_reply::verdict::done:
            break;
    }
    return "done";
}

std::string_view to_string(completion result) noexcept {
    return result == completion::recorded ? "recorded" : "superseded";
}

once::once(database& connection, once_terms terms, std::string_view table)
    : database_{connection}, terms_{terms}, table_{table} {
    detail::check_terms(terms, "once");
    detail::check_identifier(table);
    const auto speaks = connection.speaks();
    const std::string now{detail::now_of(speaks)};
    const auto ours = of_the_ticket(speaks, table_);
    const std::string written{detail::now_at_the_row(speaks)};
    claim_ = claiming(speaks, table_, now);
    // MySQL would otherwise show what was there when the transaction began.
    read_ = "SELECT attempt, claimant, finished, outcome, taken_until - " + now + " FROM " + table_ +
            " WHERE operation = $1" + (speaks == dialect::mysql ? " FOR UPDATE" : "");
    // An outcome that others may have been given is never replaced.
    complete_ = "UPDATE " + table_ + " SET finished = 1, outcome = $3, taken_until = " + written +
                " + $4" + ours + " AND (finished = 0 OR outcome = $3)";
    extend_ =
        "UPDATE " + table_ + " SET taken_until = " + written + " + $3" + ours + " AND finished = 0";
    abandon_ = "UPDATE " + table_ + " SET taken_until = " + now + ours + " AND finished = 0";
    forget_ = forgetting(speaks, table_, now);
}

void once::create_table() {
    detail::before_creating_table(database_);
    detail::create(database_, table_, once_table(database_.speaks(), table_));
    if (database_.speaks() != dialect::mysql) {
        detail::after_a_change([&] {
            detail::create(database_, table_ + "_taken_until", indexing(database_.speaks(), table_));
        });
    }
}

once_reply once::claim(std::string_view operation) {
    detail::check_key(operation);
    // Between two statements the row may be forgotten or taken over, or the claim in our way may end:
    // then the name is asked for anew.
    constexpr int attempts = 3;
    std::optional<once_reply> reply;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        reply = try_claim(operation);
        if (reply && (reply->result != once_reply::verdict::running || reply->retry_after > 0ms)) {
            return *std::move(reply);
        }
    }
    if (!reply) {
        failure{errc::busy, "others claim and forget it all the time"}.raise("once::claim");
    }
    return *std::move(reply);
}

std::optional<once_reply> once::try_claim(std::string_view operation) {
    const auto claimant = owner_id::random_client().client_text();
    const std::array parameters{detail::key_of(database_.speaks(), operation), parameter::of(claimant),
                                parameter::of(terms_.claim.count())};
    const auto sent = clock::now();
    auto found = database_.run(claim_, parameters);
    // A row only where the database can return what it wrote, and only if it did.
    if (found.row.empty()) {
        found = detail::after_a_change(
            [&] { return database_.run(read_, std::span{parameters}.first(1)); });
    }
    if (found.row.empty()) {
        return std::nullopt;
    }
    if (found.row[1] == claimant) {
        once_ticket ticket{.operation = std::string{operation},
                           .claimant = claimant,
                           .attempt = static_cast<std::uint64_t>(found.number(0))};
        if (came_late(sent, terms_.claim) &&
            detail::after_a_change([&] { return extend(ticket); }) == completion::superseded) {
            return std::nullopt;
        }
        return once_reply{.result = once_reply::verdict::claimed, .ticket = std::move(ticket)};
    }
    if (found.number(2) == 1) {
        return once_reply{.result = once_reply::verdict::done, .outcome = found.row[3].value_or("")};
    }
    return once_reply{
        .result = once_reply::verdict::running,
        .retry_after = std::chrono::milliseconds{std::max<std::int64_t>(found.number(4), 0)}};
}

completion once::complete(const once_ticket& ticket, std::string_view outcome) {
    const std::array parameters{detail::key_of(database_.speaks(), ticket.operation),
                                parameter::of(ticket.claimant), parameter::of_bytes(outcome),
                                parameter::of(terms_.keep.count())};
    // Once only, however late: what was recorded may be over by now, and claimed by somebody else.
    return settle(complete_, parameters, stage::finished);
}

completion once::extend(const once_ticket& ticket) {
    const std::array parameters{detail::key_of(database_.speaks(), ticket.operation),
                                parameter::of(ticket.claimant), parameter::of(terms_.claim.count())};
    constexpr int attempts = 3;
    for (int attempt = 1;; ++attempt) {
        const auto sent = clock::now();
        const auto run = [&] { return settle(extend_, parameters, stage::claimed); };
        const auto result = attempt == 1 ? run() : detail::after_a_change(run);
        if (result == completion::superseded || !came_late(sent, terms_.claim) || attempt == attempts) {
            return result;
        }
    }
}

completion once::abandon(const once_ticket& ticket) {
    const std::array parameters{detail::key_of(database_.speaks(), ticket.operation),
                                parameter::of(ticket.claimant)};
    return settle(abandon_, parameters, stage::claimed);
}

/// MySQL does not count a row that is set to what it was: then only a look can tell.
completion once::settle(const std::string& statement, std::span<const parameter> parameters,
                        stage expected) {
    if (database_.run(statement, parameters).changed != 0) {
        return completion::recorded;
    }
    if (database_.speaks() != dialect::mysql) {
        return completion::superseded;
    }
    const auto found =
        detail::after_a_change([&] { return database_.run(read_, parameters.first(1)); });
    if (found.row.empty() || found.row[1] != parameters[1].content) {
        return completion::superseded;
    }
    const auto reached = found.number(2) == 1 ? stage::finished : stage::claimed;
    if (reached != expected) {
        return completion::superseded;
    }
    // Only `complete` has an outcome among its parameters.
    const bool same_outcome = expected == stage::claimed || found.row[3] == parameters[2].content;
    return same_outcome ? completion::recorded : completion::superseded;
}

std::size_t once::forget(std::size_t limit) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    const std::array parameters{parameter::of(terms_.keep.count()),
                                parameter::of(static_cast<std::int64_t>(std::min(limit, most)))};
    return database_.run(forget_, parameters).changed;
}

}  // namespace v0
}  // namespace holdfast::guard
