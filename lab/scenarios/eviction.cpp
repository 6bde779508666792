#include <algorithm>

#include "../naive/owned_locks.hpp"
#include "../resource.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// A server that is full makes room, and takes the lock for it.
namespace lab::scenarios {

namespace {

/// Of the keys with an end, the one that ends soonest is evicted first: here, the lock.
const holdfast::testing_support::redis_server_options small_and_forgetful{
    .arguments = {"--maxmemory", "4mb", "--maxmemory-policy", "volatile-ttl"}};

/// Others store what they like, until the lock is gone.
void fill_up(story& told, const redis_server& server) {
    constexpr int most = 2000;
    const std::string page(8UL * 1024, 'x');
    int pages = 0;
    while (is_there(server, lock_name) && pages < most) {
        server.cli({"SET", "page:" + std::to_string(pages++), page});
    }
    told.tell("others", "store " + std::to_string(pages) + " pages of 8 KiB: the server is full");
    told.tell("redis", is_there(server, lock_name) ? "still has the lock" : "evicts the lock");
}

[[nodiscard]] bool warned_of(const std::vector<holdfast::finding>& findings) {
    return std::any_of(findings.begin(), findings.end(), [](const auto& each) {
        return each.level == holdfast::finding::severity::warning &&
               each.text.find("volatile-ttl") != std::string::npos;
    });
}

}  // namespace

ending eviction_naive(story& told) {
    const redis_server server{small_and_forgetful};
    auto store = server.connect();
    naive::script_lock a{store, lock_name, "A"};
    naive::script_lock b{store, lock_name, "B"};
    told.begin();
    const bool a_is_in = a.try_lock(30s);
    told.tell("A", "takes the lock for 30 s");
    fill_up(told, server);
    const bool b_is_in = b.try_lock(30s);
    told.tell("B", b_is_in ? "takes the lock while A is in" : "is refused");
    return broken_if(a_is_in && b_is_in, "A and B are in at the same time, and A is told nothing");
}

ending eviction_holdfast(story& told) {
    const redis_server server{small_and_forgetful};
    const redis_server database;
    fenced_stock stock{database.port()};
    stock.fill(10);
    constexpr std::chrono::milliseconds ttl{600};
    holdfast::client of_a{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::mutex a{of_a, lock_name, {.ttl = ttl}};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    const bool warned = warned_of(of_a.examine());
    told.tell("A", warned ? "examine() warns: volatile-ttl may evict locks" : "is not warned");
    const auto held_by_a = a.acquire();
    const auto seen = stock.enter(held_by_a.token());
    told.tell("A",
              "takes the lock for " + in_ms(ttl) + ", to be renewed; reads stock " +
                  std::to_string(seen.value_or(0)),
              held_by_a.token());
    fill_up(told, server);
    const auto held_by_b = b.acquire();
    const auto both_since = told.now();
    const auto seen_by_b = stock.enter(held_by_b.token());
    const bool sold = stock.write(held_by_b.token(), seen_by_b.value_or(0) - 1);
    told.tell("B", sold ? "takes the lock; sells one, writes stock 9" : "is refused by the stock",
              held_by_b.token());
    wait_until("A's loss", [&] { return held_by_a.lost().stop_requested(); });
    const auto both = told.now() - both_since;
    told.tell("A", "is told: " + held_by_a.loss_reason().message());
    const bool late = stock.write(held_by_a.token(), seen.value_or(0) - 1);
    told.tell("A", late ? "writes stock 9" : "writes all the same: the stock refuses it",
              held_by_a.token());
    return limit_if(warned && !late && both < ttl && stock.amount() == 9,
                    "two holders for " + in_ms(both) +
                        ", until A's next renewal; the token refused the late "
                        "write. With noeviction, as examine() advises, it does not happen");
}

}  // namespace lab::scenarios
