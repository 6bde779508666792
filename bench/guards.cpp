#include "measure.hpp"

#include <array>
#include <memory>
#include <stdexcept>

#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/sqlite.hpp>
#include <holdfast/guard/storage_lease.hpp>

#include <sqlite3.h>

#ifdef HOLDFAST_BENCH_GUARD_POSTGRES
#include <libpq-fe.h>
#include <holdfast/guard/postgres.hpp>
#include <support/postgres_server.hpp>
#endif
#ifdef HOLDFAST_BENCH_GUARD_MYSQL
#include <mysql.h>
#include <holdfast/guard/mysql.hpp>
#include <support/mariadb_server.hpp>
#endif
#ifdef HOLDFAST_BENCH_GUARD_REDIS
#include <hiredis/hiredis.h>
#include <holdfast/guard/redis.hpp>
#include "bare_redis.hpp"
#endif

namespace bench {

namespace {

namespace guard = holdfast::guard;

constexpr std::size_t rounds = 31;
constexpr std::size_t operations = 50;
constexpr holdfast::fencing_token token{1'000'000};

void repeat(const std::function<void()>& work) {
    for (std::size_t i = 0; i < operations; ++i) {
        work();
    }
}

[[nodiscard]] figure versus(const std::string& subject, const std::function<void()>& guarded,
                            const std::function<void()>& bare) {
    const auto result = compare(
        rounds, operations, [&] { repeat(guarded); }, [&] { repeat(bare); });
    return {subject,
            microseconds(result.ours) + " : " + microseconds(result.theirs) + " = " +
                text(result.ratio(), 2) + " ×",
            "", true};
}

/// A user's transaction with one write; what `first` does comes before it.
void transaction(guard::database& database, const std::function<void()>& first) {
    database.run("BEGIN", {});
    first();
    database.run("UPDATE product_stock SET stock = stock - 1 WHERE id = 1", {});
    database.run("COMMIT", {});
}

void expect(bool condition) {
    if (!condition) {
        throw std::runtime_error{"a guard refused what it must not refuse"};
    }
}

[[nodiscard]] std::vector<figure> sql_guards(const std::string& store, guard::database& database) {
    guard::fence fence{database};
    guard::storage_lease lease{database, {.table = "product_stock", .key = "id"}};
    guard::once once{database};
    fence.create_table();
    once.create_table();
    database.run(
        "CREATE TABLE product_stock (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL,"
        " lease_seq BIGINT NOT NULL)",
        {});
    database.run("CREATE TABLE done (operation VARCHAR(64) PRIMARY KEY)", {});
    database.run("INSERT INTO product_stock VALUES (1, 1000000, 0)", {});
    const auto bare = [&] { transaction(database, [] {}); };
    std::vector<figure> result;
    result.push_back(versus(
        store + ": a transaction with one write, fenced, against bare",
        [&] {
            transaction(database,
                        [&] { expect(fence.admit("stock:1", token) == guard::admission::admitted); });
        },
        bare));
    result.push_back(versus(
        store + ": … with a storage lease (read and advance)",
        [&] {
            const auto seen = lease.read("1").value();
            transaction(database, [&] { expect(lease.advance("1", seen) == guard::contest::won); });
        },
        bare));
    std::size_t number = 0;
    result.push_back(versus(
        store + ": an operation claimed and completed, against an INSERT of its key",
        [&] {
            const auto claimed = once.claim("guarded:" + std::to_string(++number));
            expect(once.complete(claimed.ticket, "done") == guard::completion::recorded);
        },
        [&] {
            const auto name = "bare:" + std::to_string(++number);
            const std::array parameters{guard::parameter::of(std::string_view{name})};
            database.run("INSERT INTO done VALUES ($1)", parameters);
        }));
    return result;
}

[[nodiscard]] std::vector<figure> on_sqlite() {
    const temporary_directory directory;
    sqlite3* opened = nullptr;
    ::sqlite3_open((directory.path() / "stock.db").c_str(), &opened);
    const std::unique_ptr<sqlite3, decltype(&::sqlite3_close)> connection{opened, &::sqlite3_close};
    ::sqlite3_exec(opened, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", nullptr, nullptr,
                   nullptr);
    guard::sqlite_database database{opened};
    return sql_guards("sqlite", database);
}

#ifdef HOLDFAST_BENCH_GUARD_POSTGRES
[[nodiscard]] std::vector<figure> on_postgres() {
    const holdfast::testing_support::postgres_server server;
    const std::unique_ptr<PGconn, decltype(&::PQfinish)> connection{
        ::PQconnectdb(server.connection_text().c_str()), &::PQfinish};
    ::PQsetNoticeProcessor(
        connection.get(), [](void*, const char*) {}, nullptr);
    guard::postgres_database database{connection.get()};
    return sql_guards("postgres", database);
}
#endif

#ifdef HOLDFAST_BENCH_GUARD_MYSQL
[[nodiscard]] std::vector<figure> on_mysql() {
    const holdfast::testing_support::mariadb_server server;
    const std::unique_ptr<MYSQL, decltype(&::mysql_close)> connection{::mysql_init(nullptr),
                                                                      &::mysql_close};
    ::mysql_real_connect(connection.get(), nullptr, "root", "", "test", 0, server.unix_socket().c_str(),
                         0);
    guard::mysql_database database{connection.get()};
    return sql_guards("mariadb", database);
}
#endif

#ifdef HOLDFAST_BENCH_GUARD_REDIS
[[nodiscard]] std::vector<figure> on_redis() {
    const redis_process server;
    const std::unique_ptr<redisContext, decltype(&::redisFree)> connection{
        ::redisConnect("127.0.0.1", server.port()), &::redisFree};
    guard::redis_fence fence{connection.get()};
    return {versus(
        "redis: SET, fenced, against bare",
        [&] { expect(fence.set("stock", token, "99") == guard::admission::admitted); },
        [&] { ::freeReplyObject(::redisCommand(connection.get(), "SET bare 99")); })};
}
#endif

}  // namespace

std::vector<figure> guards() {
    std::vector<figure> result;
    const auto add = [&](std::vector<figure> more) {
        result.insert(result.end(), more.begin(), more.end());
    };
    add(on_sqlite());
#ifdef HOLDFAST_BENCH_GUARD_POSTGRES
    add(on_postgres());
#endif
#ifdef HOLDFAST_BENCH_GUARD_MYSQL
    add(on_mysql());
#endif
#ifdef HOLDFAST_BENCH_GUARD_REDIS
    add(on_redis());
#endif
    return result;
}

}  // namespace bench
