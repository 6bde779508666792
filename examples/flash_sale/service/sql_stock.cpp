#include "sql_stock.hpp"

#include <array>
#include <string>

#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>

#include "pool.hpp"

namespace flash_sale {

namespace {

namespace guard = holdfast::guard;
using guard::dialect;
using guard::parameter;

std::array<std::string, 2> schema(dialect kind) {
    // MariaDB wants to know how long a key can be, and compares text without regard to case.
    const std::string text = kind == dialect::mysql ? "VARBINARY(255)" : "TEXT";
    const std::string end = kind == dialect::mysql    ? ") ENGINE=InnoDB"
                            : kind == dialect::sqlite ? ") WITHOUT ROWID"
                                                      : ")";
    return {"CREATE TABLE IF NOT EXISTS stock (segment " + text +
                " PRIMARY KEY, units BIGINT NOT NULL, lease_seq BIGINT NOT NULL DEFAULT 0" + end,
            "CREATE TABLE IF NOT EXISTS orders (id " + text + " PRIMARY KEY, request " + text +
                " NOT NULL, segment " + text + " NOT NULL" + end};
}

/// A session and the guards that work on it.
struct desk {
    explicit desk(const sql_opener& open) : session{open()} {
        for (const auto& statement : schema(database.speaks())) {
            database.run(statement, {});
        }
        tokens.create_table();
        once.create_table();
    }

    std::unique_ptr<sql_session> session;
    guard::database& database{session->database()};
    guard::fence tokens{database};
    guard::storage_lease sequence{database, {.table = "stock", .key = "segment"}};
    guard::once once{database};
};

class connection {
public:
    explicit connection(const sql_opener& open) : open_{open}, desk_{std::make_unique<desk>(open)} {}

    /// Opened again when it broke, as when the server was away for a while.
    [[nodiscard]] desk& sound() {
        if (desk_->session->is_broken()) {
            desk_ = std::make_unique<desk>(open_);
        }
        return *desk_;
    }

private:
    const sql_opener& open_;
    std::unique_ptr<desk> desk_;
};

/// Rolled back unless it was committed.
class transaction {
public:
    explicit transaction(guard::database& database) : database_{database} {
        // After a plain BEGIN, SQLite would start as a reader, and refuse to write if somebody else has
        // written meanwhile.
        database_.run(database_.speaks() == dialect::sqlite ? "BEGIN IMMEDIATE" : "BEGIN", {});
    }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (!ended_) {
            end_quietly();
        }
    }
    void commit() {
        database_.run("COMMIT", {});
        ended_ = true;
    }

private:
    void end_quietly() noexcept {
        try {
            database_.run("ROLLBACK", {});
        } catch (...) {
            // The database has rolled back by itself, or the connection is broken.
        }
    }

    guard::database& database_;
    bool ended_{};
};

std::string key_of(std::size_t segment) {
    return std::to_string(segment);
}

std::int64_t read_units(guard::database& database, const std::string& key) {
    const std::array<parameter, 1> parameters{parameter::of(key)};
    const auto said = database.run("SELECT units FROM stock WHERE segment = $1", parameters);
    return said.row.empty() ? 0 : said.number(0);
}

void record(guard::database& database, const std::string& key, const order& taken) {
    const std::array<parameter, 3> parameters{parameter::of(taken.id), parameter::of(taken.request),
                                              parameter::of(key)};
    database.run("INSERT INTO orders (id, request, segment) VALUES ($1, $2, $3)", parameters);
}

void write(guard::database& database, const std::string& key, std::int64_t remaining,
           std::span<const order> orders) {
    const std::array<parameter, 2> parameters{parameter::of(remaining), parameter::of(key)};
    database.run("UPDATE stock SET units = $1 WHERE segment = $2", parameters);
    for (const auto& taken : orders) {
        record(database, key, taken);
    }
}

/// What is left afterwards, or empty when there was nothing. The row stays ours until the commit.
std::optional<std::int64_t> take_one(guard::database& database, const std::string& key) {
    const std::string take = "UPDATE stock SET units = units - 1 WHERE segment = $1 AND units > 0";
    const std::array<parameter, 1> parameters{parameter::of(key)};
    if (database.speaks() == dialect::mysql) {
        // MariaDB cannot return what an update wrote.
        const bool taken = database.run(take, parameters).changed == 1;
        return taken ? std::optional{read_units(database, key)} : std::nullopt;
    }
    const auto said = database.run(take + " RETURNING units", parameters);
    return said.row.empty() ? std::nullopt : std::optional{said.number(0)};
}

class sql_stock final : public stock {
public:
    sql_stock(sql_opener open, std::size_t connections)
        : open_{std::move(open)}, connections_{connections, [&] {
                                                   return std::make_unique<connection>(open_);
                                               }} {}

    std::int64_t units(std::size_t segment) override {
        return read_units(connections_.borrow()->sound().database, key_of(segment));
    }

    void book(std::size_t segment, std::int64_t remaining, std::span<const order> orders) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        transaction writing{store.database};
        write(store.database, key_of(segment), remaining, orders);
        writing.commit();
    }

    std::optional<std::int64_t> units_under(std::size_t segment,
                                            holdfast::fencing_token token) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        // The token first: a late writer must be refused before the number is read, not after.
        transaction announcing{store.database};
        if (store.tokens.admit(key, token) == guard::admission::stale) {
            return std::nullopt;
        }
        const auto there = read_units(store.database, key);
        announcing.commit();
        return there;
    }

    verdict book_under(std::size_t segment, holdfast::fencing_token token, std::int64_t remaining,
                       std::span<const order> orders) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        transaction writing{store.database};
        if (store.tokens.admit(key, token) == guard::admission::stale) {
            return verdict::refused;
        }
        write(store.database, key, remaining, orders);
        writing.commit();
        return verdict::booked;
    }

    version units_and_sequence(std::size_t segment) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        const auto sequence = store.sequence.read(key);
        return {sequence.value_or(guard::lease_sequence{}), read_units(store.database, key)};
    }

    verdict book_if_unchanged(std::size_t segment, const version& seen, const order& taken) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        transaction writing{store.database};
        if (store.sequence.advance(key, seen.sequence) == guard::contest::lost) {
            return verdict::refused;
        }
        write(store.database, key, seen.units - 1, {&taken, 1});
        writing.commit();
        return verdict::booked;
    }

    once_booking book_once(std::size_t segment, holdfast::fencing_token token, std::int64_t seen,
                           const order& wanted) override {
        using result = once_booking::result;
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        // Claim, sale and outcome are one transaction: a crash leaves all of them or none.
        transaction writing{store.database};
        if (store.tokens.admit(key, token) == guard::admission::stale) {
            return {result::refused, {}};
        }
        const auto claim = store.once.claim(wanted.request);
        if (claim.result == guard::once_reply::verdict::done) {
            return {result::already_booked, claim.outcome};
        }
        if (claim.result == guard::once_reply::verdict::running) {
            return {result::refused, {}};
        }
        if (seen <= 0) {
            return {result::sold_out, {}};
        }
        write(store.database, key, seen - 1, {&wanted, 1});
        if (store.once.complete(claim.ticket, wanted.id) == guard::completion::superseded) {
            return {result::refused, {}};
        }
        writing.commit();
        return {result::booked, wanted.id};
    }

    std::optional<std::int64_t> book_if_any(std::size_t segment, const order& wanted) override {
        const auto lent = connections_.borrow();
        auto& store = lent->sound();
        const auto key = key_of(segment);
        transaction writing{store.database};
        const auto left = take_one(store.database, key);
        if (left) {
            record(store.database, key, wanted);
            writing.commit();
        }
        return left;
    }

private:
    sql_opener open_;
    pool<connection> connections_;
};

}  // namespace

std::unique_ptr<stock> make_sql_stock(sql_opener open, std::size_t connections) {
    return std::make_unique<sql_stock>(std::move(open), connections);
}

}  // namespace flash_sale
