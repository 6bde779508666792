#include <mutex>
#include <thread>

#include "../naive/owned_locks.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Versions 5 and 6: a holder that enters again, and one that is slow.
namespace lab::scenarios {

namespace {

constexpr std::chrono::milliseconds short_ttl{300};
constexpr std::chrono::milliseconds long_ttl{30000};

[[nodiscard]] int stock_of(redis_client& store) {
    return std::stoi(store.command({"GET", stock_name}).text);
}

void write_stock(redis_client& store, int amount) {
    store.command({"SET", stock_name, std::to_string(amount)});
}

}  // namespace

ending v5_naive(story& told) {
    const redis_server server;
    auto store = server.connect();
    naive::script_lock lock{store, lock_name, "A"};
    told.begin();
    lock.try_lock(long_ttl);
    told.tell("A", "takes the lock in sell()");
    told.tell("A", "sell() calls audit(), which takes the same lock");
    constexpr int attempts = 100;
    int refused = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        refused += lock.try_lock(long_ttl) ? 0 : 1;
    }
    const auto holder = store.command({"GET", lock_name}).text;
    told.tell("A", "asks " + std::to_string(attempts) + " times, is refused " +
                       std::to_string(refused) + "; the holder is " + holder);
    lock.unlock();
    return broken_if(refused == attempts && holder == "A",
                     "A waits for A, and would until its own lock expires under it");
}

ending v5_holdfast(story& told) {
    const redis_server server;
    holdfast::client client{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::recursive_mutex lock{client, lock_name};
    holdfast::mutex other{of_b, lock_name};
    told.begin();
    std::unique_lock sell{lock};
    told.tell("A", "takes the lock in sell()", lock.token());
    const auto requests = client.requests();
    std::unique_lock audit{lock};
    const auto depth = lock.depth();
    told.tell("A",
              "audit() takes it again: depth " + std::to_string(depth) +
                  ", requests sent: " + std::to_string(client.requests() - requests),
              lock.token());
    audit.unlock();
    const bool kept = !other.try_acquire().has_value();
    told.tell("A", "audit() returns: depth " + std::to_string(lock.depth()), lock.token());
    told.tell("B", kept ? "is refused: sell() is not done" : "takes the lock");
    sell.unlock();
    const bool free = other.try_acquire().has_value();
    told.tell("A", "sell() returns: released");
    told.tell("B", free ? "takes the lock" : "is refused");
    return safe_if(depth == 2 && kept && free,
                   "recursive_mutex counts; only the first lock and the last unlock reach the store");
}

ending v6_naive(story& told) {
    const redis_server server;
    server.cli({"SET", stock_name, "10"});
    auto store = server.connect();
    naive::reentrant_lock a{store, lock_name, "A"};
    naive::reentrant_lock b{store, lock_name, "B"};
    told.begin();
    a.try_lock(short_ttl);
    const int seen_by_a = stock_of(store);
    told.tell("A",
              "takes the lock for " + in_ms(short_ttl) + ", reads stock " + std::to_string(seen_by_a));
    told.tell("A", "calls a slow service");
    wait_until("B's turn", [&] { return b.try_lock(long_ttl); });
    const int seen_by_b = stock_of(store);
    told.tell("B", "takes the lock: A's time is over; reads stock " + std::to_string(seen_by_b));
    write_stock(store, seen_by_a - 1);
    told.tell("A", "sells one, writes stock " + std::to_string(seen_by_a - 1));
    write_stock(store, seen_by_b - 1);
    told.tell("B", "sells one, writes stock " + std::to_string(seen_by_b - 1));
    return broken_if(stock_of(store) == 9, "two sold, stock fell by one; nobody was told anything");
}

ending v6_holdfast(story& told) {
    const redis_server server;
    server.cli({"SET", stock_name, "10"});
    auto store = server.connect();
    const auto renewals = std::make_shared<event_count>(holdfast::event_kind::renewed);
    holdfast::client of_a{address_of(server), {.events = renewals}};
    holdfast::client of_b{address_of(server)};
    holdfast::mutex a{of_a, lock_name, {.ttl = short_ttl}};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    auto held = a.acquire();
    const int seen_by_a = stock_of(store);
    told.tell("A",
              "takes the lock for " + in_ms(short_ttl) + ", reads stock " + std::to_string(seen_by_a),
              held.token());
    told.tell("A", "calls a slow service");
    std::jthread of_other{[&] {
        const auto next = b.acquire();
        const int seen = stock_of(store);
        told.tell("B", "takes the lock, reads stock " + std::to_string(seen), next.token());
        write_stock(store, seen - 1);
        told.tell("B", "sells one, writes stock " + std::to_string(seen - 1), next.token());
    }};
    wait_for_waiter(of_a);
    told.tell("B", "asks, and waits");
    constexpr std::uint32_t enough = 7;
    wait_until("renewals", [&] { return renewals->value() >= enough; });
    told.tell(
        "A",
        "the service answers; the lease was renewed " + std::to_string(renewals->value()) + " times",
        held.token());
    const auto held_for = told.now();
    held.check();
    write_stock(store, seen_by_a - 1);
    told.tell("A", "sells one, writes stock " + std::to_string(seen_by_a - 1), held.token());
    const bool released = held.release() == holdfast::release_outcome::released;
    of_other.join();
    return safe_if(released && stock_of(store) == 8 && held_for > 2 * short_ttl,
                   "A held its lock of " + in_ms(short_ttl) + " for " + in_ms(held_for) +
                       ", B came after it; two sold, stock fell by two");
}

}  // namespace lab::scenarios
