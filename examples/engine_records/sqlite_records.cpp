#include "sqlite_records.hpp"

#include <algorithm>
#include <holdfast/records.hpp>
#include <mutex>
#include <string>

#include <sqlite3.h>

namespace {

using namespace holdfast::engines;
using holdfast::clock;
using holdfast::errc;
using outcome = record_reply::outcome;

// Names and records are bytes. Versions rise with the clock, so a name that was removed never has an
// old one again.
constexpr const char* setup =
    "PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE IF "
    "NOT EXISTS record("
    "name BLOB PRIMARY KEY, version INT NOT NULL, bytes BLOB NOT NULL, needed_until INT NOT NULL)";
constexpr const char* select = "SELECT version, bytes FROM record WHERE name = ?1";
constexpr const char* insert =
    "INSERT INTO record VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING RETURNING version";
constexpr const char* update =
    "UPDATE record SET version = max(version + 1, ?2), bytes = ?3, needed_until = ?4 "
    "WHERE name = ?1 AND version = ?5 RETURNING version";
constexpr const char* remove_old = "DELETE FROM record WHERE needed_until < ?1";
constexpr const char* select_page =
    "SELECT version, bytes, name FROM record WHERE name >= ?1 AND name > ?2 "
    "AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?3";

/// All who open the file are on this host.
std::chrono::microseconds now() {
    return std::chrono::floor<std::chrono::microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

/// A statement for one use, with the values of its parameters.
struct statement {
    statement(sqlite3* database, const char* text, const auto&... values) {
        sqlite3_stmt* made{};
        sqlite3_prepare_v2(database, text, -1, &made, nullptr);
        handle.reset(made);
        int place = 0;
        (bind(++place, values), ...);
    }
    /// Whether there is a row; otherwise `result` says why not.
    bool step() { return (result = sqlite3_step(handle.get())) == SQLITE_ROW; }
    std::uint64_t number(int column) {
        return std::uint64_t(sqlite3_column_int64(handle.get(), column));
    }
    std::string bytes(int column) {
        const auto* data = static_cast<const char*>(sqlite3_column_blob(handle.get(), column));
        return {data, std::size_t(sqlite3_column_bytes(handle.get(), column))};
    }
    void bind(int place, const std::string& bytes) {
        sqlite3_bind_blob(handle.get(), place, bytes.data(), int(bytes.size()), SQLITE_STATIC);
    }
    void bind(int place, std::uint64_t number) {
        sqlite3_bind_int64(handle.get(), place, std::int64_t(number));
    }
    void bind(int place, std::chrono::microseconds time) { bind(place, std::uint64_t(time.count())); }

    std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> handle{nullptr, sqlite3_finalize};
    int result{};
};

class sqlite_records final : public record_store, public record_listing {
public:
    explicit sqlite_records(std::string_view path) : address_{"sqlite-records:" + std::string{path}} {
        sqlite3* opened{};
        sqlite3_open(std::string{path}.c_str(), &opened);
        database_.reset(opened);
        if (sqlite3_exec(opened, setup, nullptr, nullptr, nullptr) != SQLITE_OK) {
            holdfast::failure{errc::bad_configuration, sqlite3_errmsg(opened)}.raise(address_);
        }
        statement{opened, remove_old, now()}.step();
    }
    const guarantees& promises() const noexcept override { return promises_; }
    const std::string& address() const noexcept override { return address_; }
    record_listing* listing() noexcept override { return this; }

    record_reply read(const std::string& name, clock::time_point deadline) override {
        const auto lock = prepare(deadline);
        return look(name, outcome::done);
    }
    record_reply replace(const record_change& change, clock::time_point deadline) override {
        const auto lock = prepare(deadline);
        statement write{database_.get(), change.version == 0 ? insert : update,
                        change.name,     now(),
                        change.bytes,    change.needed_until,
                        change.version};
        if (!write.step()) {
            return write.result == SQLITE_DONE ? look(change.name, outcome::conflict) : failed(write);
        }
        const auto version = write.number(0);
        if (write.step() || write.result != SQLITE_DONE) {  // It is committed when the statement ends.
            return failed(write);
        }
        return {outcome::done, {version, {}}, now(), {}};
    }
    page scan(const std::string& prefix, const std::string& after, std::size_t limit,
              clock::time_point deadline) override {
        const auto lock = prepare(deadline);
        page found{{}, now(), {}};
        statement rows{database_.get(), select_page, prefix, after, std::uint64_t{limit}};
        while (rows.step()) {
            found.entries.push_back({rows.bytes(2), {rows.number(0), rows.bytes(1)}});
        }
        found.error = rows.result == SQLITE_DONE ? holdfast::failure{} : failed(rows).error;
        return found;
    }

private:
    record_reply look(const std::string& name, outcome result) {
        statement row{database_.get(), select, name};
        if (row.step()) {
            return {result, {row.number(0), row.bytes(1)}, now(), {}};
        }
        return row.result == SQLITE_DONE ? record_reply{result, {}, now(), {}} : failed(row);
    }
    /// SQLite changes nothing when it is busy. Of everything else we do not know.
    record_reply failed(const statement& asked) {
        const auto code = asked.result == SQLITE_BUSY ? errc::store_unavailable : errc::outcome_unknown;
        return {outcome::failed, {}, {}, {code, sqlite3_errmsg(database_.get())}};
    }
    std::unique_lock<std::mutex> prepare(clock::time_point deadline) {
        std::unique_lock lock{mutex_};
        const std::chrono::duration<double, std::milli> left = deadline - clock::now();
        sqlite3_busy_timeout(database_.get(),
                             static_cast<int>(std::clamp(left.count(), 0.0, 60'000.0)));
        return lock;
    }

    const std::string address_;
    const guarantees promises_{.reach = holdfast::scope::host,
                               .reach_text = "all who can open this file on this host",
                               .tokens = fencing::strict,
                               .minimum_ttl = std::chrono::milliseconds{20}};
    std::mutex mutex_;  // of the connection
    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database_{nullptr, sqlite3_close};
};

}  // namespace

std::unique_ptr<engine> open_sqlite_records(std::string_view path, const client_identity& identity) {
    return make_records_engine(std::make_unique<sqlite_records>(path), identity);
}
