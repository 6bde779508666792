#include "../naive/fenced_lock.hpp"
#include "../naive/owned_locks.hpp"
#include "../resource.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// The two tables of what a token can do: a holder that is late, and two masters.
namespace lab::scenarios {

namespace {

constexpr std::chrono::milliseconds short_ttl{150};
constexpr std::chrono::milliseconds long_ttl{30000};

std::string written_or_refused(bool written, int amount) {
    const auto text = "writes stock " + std::to_string(amount);
    return written ? text : text + ": refused, the token is too small";
}

}  // namespace

ending late_write_naive(story& told) {
    const redis_server server;
    server.cli({"SET", stock_name, "10"});
    auto store = server.connect();
    naive::script_lock a{store, lock_name, "A"};
    naive::script_lock b{store, lock_name, "B"};
    told.begin();
    const bool a_was_in = a.try_lock(short_ttl);
    const int seen_by_a = plain_stock(server);
    told.tell("A",
              "takes the lock for " + in_ms(short_ttl) + ", reads stock " + std::to_string(seen_by_a));
    told.tell("A", "stands still");
    wait_until("B's turn", [&] { return b.try_lock(long_ttl); });
    const int seen_by_b = plain_stock(server);
    told.tell("B", "takes the lock, reads stock " + std::to_string(seen_by_b));
    server.cli({"SET", stock_name, std::to_string(seen_by_b - 3)});
    told.tell("B", "sells three, writes stock " + std::to_string(seen_by_b - 3));
    server.cli({"SET", stock_name, std::to_string(seen_by_a - 1)});
    told.tell("A", "goes on: sells one, writes stock " + std::to_string(seen_by_a - 1));
    const int left = plain_stock(server);
    return broken_if(a_was_in && left == 9, "four sold, the stock says " + std::to_string(left) +
                                                " of 10: the late write erased B's");
}

ending late_write_holdfast(story& told) {
    const redis_server server;
    const redis_server database;
    fenced_stock stock{database.port()};
    stock.fill(10);
    holdfast::client of_a{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::mutex a{of_a, lock_name, {.ttl = short_ttl, .renewal = holdfast::renewal_mode::none}};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    const auto held_by_a = a.acquire();
    const auto seen_by_a = stock.enter(held_by_a.token()).value();
    told.tell("A", "takes the lock, shows its token, reads stock " + std::to_string(seen_by_a),
              held_by_a.token());
    const bool in_time = stock.write(held_by_a.token(), seen_by_a);
    told.tell("A", written_or_refused(in_time, seen_by_a), held_by_a.token());
    told.tell("A", "stands still");
    const auto held_by_b = b.acquire();
    const auto seen_by_b = stock.enter(held_by_b.token()).value();
    told.tell("B", "takes the lock, shows its token, reads stock " + std::to_string(seen_by_b),
              held_by_b.token());
    const bool late = stock.write(held_by_a.token(), seen_by_a - 1);
    told.tell("A", "goes on: " + written_or_refused(late, seen_by_a - 1), held_by_a.token());
    const bool next = stock.write(held_by_b.token(), seen_by_b - 3);
    told.tell("B", written_or_refused(next, seen_by_b - 3), held_by_b.token());
    return safe_if(in_time && !late && next && stock.amount() == 7,
                   "the stock knows the largest token and refuses whoever is late");
}

ending two_masters_naive(story& told) {
    pair_of_servers servers;
    const redis_server database;
    database.cli({"HSET", stock_name, "amount", "10", "last_token", "200"});
    database.cli({"SET", std::string{"token:"} + lock_name, "200"});
    auto counter = database.connect();
    auto old_master = servers.master().connect();
    naive::strictly_rising_stock stock{counter};
    naive::fenced_lock a{old_master, counter, lock_name, "A"};
    told.begin();
    servers.cut_link();
    told.tell("network", "the link between master and replica breaks");
    const auto token_of_a = a.try_lock(long_ttl).value();
    const int seen_by_a = stock.read();
    told.tell("A", "takes the lock on the master, reads stock " + std::to_string(seen_by_a),
              token_of_a);
    servers.promote();
    told.tell("redis", "the master dies; the replica, which has no lock, is promoted");
    auto new_master = servers.replica().connect();
    naive::fenced_lock b{new_master, counter, lock_name, "B"};
    const auto token_of_b = b.try_lock(long_ttl).value();
    const int seen_by_b = stock.read();
    told.tell("B", "takes the lock on the new master, reads stock " + std::to_string(seen_by_b),
              token_of_b);
    const bool first = stock.write(token_of_a, seen_by_a - 1);
    told.tell("A", written_or_refused(first, seen_by_a - 1), token_of_a);
    const bool second = stock.write(token_of_b, seen_by_b - 1);
    told.tell("B", written_or_refused(second, seen_by_b - 1), token_of_b);
    return broken_if(first && second && stock.read() == 9,
                     "two sold, stock fell by one: both tokens rose, both writes passed");
}

ending two_masters_holdfast(story& told) {
    pair_of_servers servers;
    const redis_server database;
    fenced_stock stock{database.port()};
    stock.fill(10);
    holdfast::client of_a{address_of(servers.master()), {.request_timeout = 100ms}};
    // A will release to a server that is dead.
    holdfast::mutex a{of_a, lock_name, {.release_timeout = 50ms}};
    told.begin();
    servers.cut_link();
    told.tell("network", "the link between master and replica breaks");
    const auto held_by_a = a.acquire();
    const auto seen_by_a = stock.enter(held_by_a.token()).value();
    told.tell("A", "takes the lock, shows its token, reads stock " + std::to_string(seen_by_a),
              held_by_a.token());
    servers.promote();
    told.tell("redis", "the master dies; the replica, which has no lock, is promoted");
    holdfast::client of_b{address_of(servers.replica())};
    holdfast::mutex b{of_b, lock_name};
    const auto held_by_b = b.acquire();
    const auto seen_by_b = stock.enter(held_by_b.token()).value();
    told.tell("B", "takes the lock, shows its token, reads stock " + std::to_string(seen_by_b),
              held_by_b.token());
    const bool both = held_by_a && held_by_b;
    const bool first = stock.write(held_by_a.token(), seen_by_a - 1);
    told.tell("A", written_or_refused(first, seen_by_a - 1), held_by_a.token());
    const bool second = stock.write(held_by_b.token(), seen_by_b - 1);
    told.tell("B", written_or_refused(second, seen_by_b - 1), held_by_b.token());
    // Nobody is there to take A's lock back.
    static_cast<void>(of_a.shutdown(50ms));
    return limit_if(
        both && !first && second && stock.amount() == 9,
        "two holders, as every lock on a replicated Redis can have; the token was shown before "
        "reading, so A's write was refused: one sold, stock fell by one");
}

}  // namespace lab::scenarios
