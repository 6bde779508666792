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
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE IF NOT EXISTS record("
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
class statement {
public:
    statement(sqlite3* database, const char* text, const auto&... values) {
        sqlite3_stmt* made{};
        sqlite3_prepare_v2(database, text, -1, &made, nullptr);
        statement_.reset(made);
        int place = 0;
        (bind(++place, values), ...);
    }
    /// Whether there is a row; otherwise `result` says why not.
    bool step() { return (result = sqlite3_step(statement_.get())) == SQLITE_ROW; }
    [[nodiscard]] std::uint64_t number(int column) const {
        return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column));
    }
    [[nodiscard]] std::string bytes(int column) const {
        const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
        return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
    }
    int result{SQLITE_OK};

private:
    void bind(int place, const std::string& bytes) {
        const auto size = static_cast<int>(bytes.size());
        sqlite3_bind_blob(statement_.get(), place, bytes.data(), size, SQLITE_STATIC);
    }
    void bind(int place, std::uint64_t number) {
        sqlite3_bind_int64(statement_.get(), place, static_cast<std::int64_t>(number));
    }

    std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement_{nullptr, sqlite3_finalize};
};

class sqlite_records final : public record_store, public record_listing {
public:
    explicit sqlite_records(std::string_view path) : address_{"sqlite-records:" + std::string{path}} {
        sqlite3_open(std::string{path}.c_str(), &database_);
        sqlite3_busy_timeout(database_, 10'000);
        if (sqlite3_exec(database_, setup, nullptr, nullptr, nullptr) != SQLITE_OK) {
            const std::string reason = sqlite3_errmsg(database_);
            sqlite3_close(database_);
            holdfast::failure{errc::bad_configuration, reason}.raise(address_);
        }
    }
    ~sqlite_records() override { sqlite3_close(database_); }

    const guarantees& promises() const noexcept override { return promises_; }
    const std::string& address() const noexcept override { return address_; }
    record_listing* listing() noexcept override { return this; }

    record_reply read(const std::string& name, clock::time_point deadline) override {
        const auto lock = prepare(deadline);
        return look(name, outcome::done);
    }

    record_reply replace(const record_change& change, clock::time_point deadline) override {
        const auto lock = prepare(deadline);
        if (++replaced_ % 1000 == 0) {
            statement{database_, remove_old, std::uint64_t(now().count())}.step();
        }
        statement write{database_,     change.version == 0 ? insert : update,
                        change.name,   std::uint64_t(now().count()),
                        change.bytes,  std::uint64_t(change.needed_until.count()),
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
        statement rows{database_, select_page, prefix, after, std::uint64_t{limit}};
        while (rows.step()) {
            found.entries.push_back({rows.bytes(2), {rows.number(0), rows.bytes(1)}});
        }
        found.error = rows.result == SQLITE_DONE ? holdfast::failure{} : failed(rows).error;
        return found;
    }

private:
    record_reply look(const std::string& name, outcome result) {
        statement row{database_, select, name};
        if (row.step()) {
            return {result, {row.number(0), row.bytes(1)}, now(), {}};
        }
        return row.result == SQLITE_DONE ? record_reply{result, {}, now(), {}} : failed(row);
    }
    /// SQLite changes nothing when it is busy. Of everything else we do not know.
    record_reply failed(const statement& asked) {
        const bool busy = asked.result == SQLITE_BUSY || asked.result == SQLITE_LOCKED;
        const auto code = busy ? errc::store_unavailable : errc::outcome_unknown;
        return {outcome::failed, {}, {}, {code, sqlite3_errmsg(database_)}};
    }
    std::unique_lock<std::mutex> prepare(clock::time_point deadline) {
        std::unique_lock lock{mutex_};
        const std::chrono::duration<double, std::milli> left = deadline - clock::now();
        sqlite3_busy_timeout(database_, static_cast<int>(std::clamp(left.count(), 0.0, 60'000.0)));
        return lock;
    }

    const std::string address_;
    const guarantees promises_{.reach = holdfast::scope::host,
                               .reach_text = "all who can open this file on this host",
                               .tokens = fencing::strict,
                               .minimum_ttl = std::chrono::milliseconds{20}};
    std::mutex mutex_;  // of the connection
    sqlite3* database_{};
    std::uint64_t replaced_{};
};

}  // namespace

std::unique_ptr<engine> open_sqlite_records(std::string_view path, const client_identity& identity) {
    return make_records_engine(std::make_unique<sqlite_records>(path), identity);
}
