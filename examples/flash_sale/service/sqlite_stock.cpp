#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/sqlite.hpp>

#include "pool.hpp"
#include "stock.hpp"

namespace flash_sale {

namespace {

namespace guard = holdfast::guard;
using guard::parameter;

constexpr auto schema = R"(
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS stock (
        segment TEXT PRIMARY KEY, units INTEGER NOT NULL, lease_seq INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY, request TEXT NOT NULL, segment TEXT NOT NULL) WITHOUT ROWID;
)";

struct close {
    void operator()(sqlite3* handle) const noexcept { ::sqlite3_close(handle); }
};
using handle = std::unique_ptr<sqlite3, close>;

/// A writer keeps others out for some ten microseconds: SQLite's own pauses, which soon reach 100 ms,
/// would measure themselves.
int wait_for_the_writer(void* /*unused*/, int attempts) {
    constexpr int most_attempts = 50'000;
    constexpr useconds_t longest = 1000;
    if (attempts > most_attempts) {
        return 0;
    }
    ::usleep(attempts < 10 ? 50 : longest / 2);  // not a guess: asked again, not relied upon
    return 1;
}

handle open(const std::string& file) {
    sqlite3* raw = nullptr;
    const int result = ::sqlite3_open_v2(
        file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    handle opened{raw};
    if (result != SQLITE_OK) {
        throw std::runtime_error{"cannot open " + file + ": " + ::sqlite3_errstr(result)};
    }
    ::sqlite3_busy_handler(raw, wait_for_the_writer, nullptr);
    // In a WAL this survives every crash but the machine's.
    if (::sqlite3_exec(raw, schema, nullptr, nullptr, nullptr) != SQLITE_OK ||
        ::sqlite3_exec(raw, "PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr) != SQLITE_OK) {
        throw std::runtime_error{"cannot use " + file + ": " + ::sqlite3_errmsg(raw)};
    }
    return opened;
}

struct connection {
    explicit connection(const std::string& file) : opened{open(file)} {
        tokens.create_table();
        once.create_table();
    }

    handle opened;
    guard::sqlite_database database{opened.get()};
    guard::fence tokens{database};
    guard::storage_lease sequence{database, {.table = "stock", .key = "segment"}};
    guard::once once{database};
};

/// Rolled back unless it was committed.
class transaction {
public:
    explicit transaction(guard::database& database) : database_{database} {
        database_.run("BEGIN IMMEDIATE", {});
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
            // SQLite has rolled back by itself, or the connection is of no use any more.
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

class sqlite_stock final : public stock {
public:
    sqlite_stock(const std::string& file, std::size_t connections)
        : connections_{connections, [&] { return std::make_unique<connection>(file); }} {}

    std::int64_t units(std::size_t segment) override {
        return read_units(connections_.borrow()->database, key_of(segment));
    }

    void book(std::size_t segment, std::int64_t remaining, std::span<const order> orders) override {
        const auto store = connections_.borrow();
        transaction writing{store->database};
        write(store->database, key_of(segment), remaining, orders);
        writing.commit();
    }

    std::optional<std::int64_t> units_under(std::size_t segment,
                                            holdfast::fencing_token token) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        // The token first: a late writer must be refused before the number is read, not after.
        transaction announcing{store->database};
        if (store->tokens.admit(key, token) == guard::admission::stale) {
            return std::nullopt;
        }
        const auto there = read_units(store->database, key);
        announcing.commit();
        return there;
    }

    verdict book_under(std::size_t segment, holdfast::fencing_token token, std::int64_t remaining,
                       std::span<const order> orders) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        transaction writing{store->database};
        if (store->tokens.admit(key, token) == guard::admission::stale) {
            return verdict::refused;
        }
        write(store->database, key, remaining, orders);
        writing.commit();
        return verdict::booked;
    }

    version units_and_sequence(std::size_t segment) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        const auto sequence = store->sequence.read(key);
        return {sequence.value_or(guard::lease_sequence{}), read_units(store->database, key)};
    }

    verdict book_if_unchanged(std::size_t segment, const version& seen, const order& taken) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        transaction writing{store->database};
        if (store->sequence.advance(key, seen.sequence) == guard::contest::lost) {
            return verdict::refused;
        }
        write(store->database, key, seen.units - 1, {&taken, 1});
        writing.commit();
        return verdict::booked;
    }

    once_booking book_once(std::size_t segment, holdfast::fencing_token token, std::int64_t seen,
                           const order& wanted) override {
        using result = once_booking::result;
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        // Claim, sale and outcome are one transaction: a crash leaves all of them or none.
        transaction writing{store->database};
        if (store->tokens.admit(key, token) == guard::admission::stale) {
            return {result::refused, {}};
        }
        const auto claim = store->once.claim(wanted.request);
        if (claim.result == guard::once_reply::verdict::done) {
            return {result::already_booked, claim.outcome};
        }
        if (claim.result == guard::once_reply::verdict::running) {
            return {result::refused, {}};
        }
        if (seen <= 0) {
            return {result::sold_out, {}};
        }
        write(store->database, key, seen - 1, {&wanted, 1});
        if (store->once.complete(claim.ticket, wanted.id) == guard::completion::superseded) {
            return {result::refused, {}};
        }
        writing.commit();
        return {result::booked, wanted.id};
    }

    std::optional<std::int64_t> book_if_any(std::size_t segment, const order& wanted) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        const std::array<parameter, 1> parameters{parameter::of(key)};
        transaction writing{store->database};
        const auto said = store->database.run(
            "UPDATE stock SET units = units - 1 WHERE segment = $1 AND units > 0 RETURNING units",
            parameters);
        if (said.row.empty()) {
            return std::nullopt;
        }
        record(store->database, key, wanted);
        writing.commit();
        return said.number(0);
    }

private:
    pool<connection> connections_;
};

}  // namespace

std::unique_ptr<stock> open_sqlite_stock(const std::string& file, std::size_t connections) {
    return std::make_unique<sqlite_stock>(file, connections);
}

}  // namespace flash_sale
