// The tutorials' inventory service: it sells inventory001 over HTTP, in a dozen ways.

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <optional>

#include <holdfast/client.hpp>

#include "counter.hpp"
#include "server.hpp"
#include "stock.hpp"
#include "strategy.hpp"

namespace {

struct settings {
    flash_sale::server_options server{};
    std::string strategy{"holdfast"};
    std::string stock{"sqlite"};
    std::string sqlite;
    std::string mariadb;
    std::string postgresql;
    std::string stock_redis;
    std::string locks;
    std::string quorum;
    std::string spin;
    std::size_t connections{8};
    std::int64_t ttl_ms{10'000};
    std::int64_t patience_ms{60'000};
    std::int64_t work_us{1000};
    std::size_t segments{5};
};

void describe(CLI::App& program, settings& into) {
    program.set_config("--config", "", "a file with any of these, as `port = 3786`");
    program.add_option("--port", into.server.port, "where to listen, on 127.0.0.1")
        ->capture_default_str();
    program.add_option("--threads", into.server.threads, "requests worked on at a time")
        ->capture_default_str();
    program.add_option("--strategy", into.strategy, "for /sale without a name")->capture_default_str();
    program.add_option("--stock", into.stock, "where most strategies keep the stock")
        ->check(CLI::IsMember({"sqlite", "mariadb", "postgresql", "redis"}))
        ->capture_default_str();
    program.add_option("--sqlite", into.sqlite, "the stock's file, shared by all instances");
    program.add_option("--mariadb", into.mariadb,
                       "the stock's database: mariadb://user[:password]@host:port/database");
    program.add_option("--postgresql", into.postgresql,
                       "the stock's database: postgresql://user[:password]@host:port/database");
    program.add_option("--stock-redis", into.stock_redis, "the stock's Redis: redis://host:port");
    program.add_option("--connections", into.connections, "to each store of the stock")
        ->capture_default_str();
    program.add_option("--locks", into.locks, "holdfast's store: redis://…, redis+sentinel://…, …");
    program.add_option("--quorum", into.quorum, "holdfast's stores for redlock: quorum:redis://… …");
    program.add_option("--spin", into.spin, "where the tutorial's lock lives: redis://host:port");
    program.add_option("--ttl", into.ttl_ms, "of holdfast's leases, in ms")->capture_default_str();
    program.add_option("--patience", into.patience_ms, "the longest wait for a lock, in ms")
        ->capture_default_str();
    program.add_option("--work", into.work_us, "what a sale takes besides the stock, in µs")
        ->capture_default_str();
    program.add_option("--segments", into.segments, "of the segmented stock")->capture_default_str();
}

std::unique_ptr<holdfast::client> connect(const std::string& store, const settings& config,
                                          const std::shared_ptr<flash_sale::metrics>& figures) {
    if (store.empty()) {
        return nullptr;
    }
    holdfast::client_options options{.label = "flash sale " + std::to_string(config.server.port)};
    options.events = figures;
    return std::make_unique<holdfast::client>(store, options);
}

void give_back(holdfast::client* client) {
    if (client == nullptr) {
        return;
    }
    for (const auto& left : client->shutdown(std::chrono::seconds{2})) {
        std::cerr << "not given back: " << left.name << ": " << left.error.detail << '\n';
    }
}

[[noreturn]] void say_left_out(const std::string& stock, const std::string& package) {
    throw std::runtime_error{"this flash_sale was built without --stock " + stock + ": install " +
                             package + " and build it again"};
}

/// The SQL stock of this configuration (SQLite where the units are counted in Redis); null if there is
/// none.
std::unique_ptr<flash_sale::stock> open_sql_stock(const settings& config) {
    if (config.stock == "mariadb") {
        if constexpr (FLASH_SALE_WITH_MARIADB) {
            return config.mariadb.empty()
                       ? nullptr
                       : flash_sale::open_mariadb_stock(config.mariadb, config.connections);
        }
        say_left_out(config.stock, "libmariadb-dev");
    }
    if (config.stock == "postgresql") {
        if constexpr (FLASH_SALE_WITH_POSTGRESQL) {
            return config.postgresql.empty()
                       ? nullptr
                       : flash_sale::open_postgresql_stock(config.postgresql, config.connections);
        }
        say_left_out(config.stock, "libpq-dev");
    }
    return config.sqlite.empty() ? nullptr
                                 : flash_sale::open_sqlite_stock(config.sqlite, config.connections);
}

void serve(const settings& config) {
    const auto figures = std::make_shared<flash_sale::metrics>();
    const auto sql = open_sql_stock(config);
    const auto redis = config.stock_redis.empty()
                           ? nullptr
                           : flash_sale::open_redis_stock(config.stock_redis, config.connections);
    const auto locks = connect(config.locks, config, figures);
    const auto quorum = connect(config.quorum, config, figures);
    flash_sale::order_numbers numbers{config.server.port};
    const flash_sale::shop shop{.goods = config.stock == "redis" ? redis.get() : sql.get(),
                                .sql_goods = sql.get(),
                                .redis_goods = redis.get(),
                                .locks = locks.get(),
                                .quorum = quorum.get(),
                                .numbers = &numbers,
                                .spin_address = config.spin,
                                .spin_connections = config.server.threads,
                                .lease = {.ttl = std::chrono::milliseconds{config.ttl_ms}},
                                .patience = std::chrono::milliseconds{config.patience_ms},
                                .work = std::chrono::microseconds{config.work_us},
                                .segments = config.segments};
    if (shop.goods == nullptr) {
        throw std::runtime_error{"--stock " + config.stock + " needs --" +
                                 (config.stock == "redis" ? "stock-redis" : config.stock)};
    }
    flash_sale::counter counter{{config.server.port, config.strategy}, make_strategies(shop), *figures};
    flash_sale::server server{config.server,
                              [&](const std::string& target) { return counter.answer(target); }};
    std::cout << "ready on 127.0.0.1:" << config.server.port << std::endl;
    server.run();
    give_back(locks.get());
    give_back(quorum.get());
}

}  // namespace

int main(int count, char** words) {
    CLI::App program{"Sells inventory001 over HTTP, with or without a lock."};
    settings config;
    describe(program, config);
    CLI11_PARSE(program, count, words);
    try {
        serve(config);
    } catch (const std::exception& error) {
        std::cerr << "flash_sale: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
