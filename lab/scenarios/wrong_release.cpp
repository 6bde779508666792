#include "../naive/key_locks.hpp"
#include "../naive/owned_locks.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Versions 3 and 4: releasing what belongs to somebody else.
namespace lab::scenarios {

namespace {

constexpr std::chrono::milliseconds short_ttl{200};
constexpr std::chrono::milliseconds long_ttl{30000};

void expires(story& told, const redis_server& server) {
    wait_until_gone(server, lock_name);
    told.tell("redis", "the lock's time is over");
}

/// What A does before its time is over.
enum class manner : std::uint8_t { works_on, looks_first };

/// A's lease is over and B has the lock: A releases, C asks.
ending holdfast_after_expiry(story& told, manner of_a_holder) {
    const redis_server server;
    const bool looks_first = of_a_holder == manner::looks_first;
    holdfast::client of_a{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::client of_c{address_of(server)};
    holdfast::mutex a{of_a, lock_name, {.ttl = short_ttl, .renewal = holdfast::renewal_mode::none}};
    holdfast::mutex b{of_b, lock_name};
    holdfast::mutex c{of_c, lock_name};
    told.begin();
    auto held_by_a = a.acquire();
    told.tell("A", "takes the lock for " + in_ms(short_ttl), held_by_a.token());
    if (looks_first) {
        held_by_a.check();
        told.tell("A", "looks: still mine; is slow to go on", held_by_a.token());
    } else {
        told.tell("A", "works longer than that");
    }
    expires(told, server);
    const auto held_by_b = b.acquire();
    told.tell("B", "takes the lock", held_by_b.token());
    const auto outcome = held_by_a.release();
    told.tell("A", "releases; is told: " + std::string{to_string(outcome)});
    const bool c_is_in = c.try_acquire().has_value();
    told.tell("C", c_is_in ? "takes the lock while B is in" : "is refused: B has the lock");
    return safe_if(outcome == holdfast::release_outcome::already_lost && !c_is_in && held_by_b,
                   looks_first
                       ? "whose lock it is, and its end, are one step in the server; B kept its lock"
                       : "A could not release what was not its own; B kept its lock");
}

}  // namespace

ending v3_naive(story& told) {
    const redis_server server;
    auto store = server.connect();
    naive::expiring_lock a{store, lock_name};
    naive::expiring_lock b{store, lock_name};
    naive::expiring_lock c{store, lock_name};
    told.begin();
    a.try_lock(short_ttl);
    told.tell("A", "takes the lock for " + in_ms(short_ttl));
    told.tell("A", "works longer than that");
    expires(told, server);
    const bool b_is_in = b.try_lock(long_ttl);
    told.tell("B", b_is_in ? "takes the lock" : "is refused");
    a.unlock();
    told.tell("A", "is done: DEL " + std::string{lock_name});
    const bool c_is_in = c.try_lock(long_ttl);
    told.tell("C", c_is_in ? "takes the lock while B is in" : "is refused");
    return broken_if(b_is_in && c_is_in, "A deleted B's lock: B and C are in at the same time");
}

ending v3_holdfast(story& told) {
    return holdfast_after_expiry(told, manner::works_on);
}

ending v4_naive(story& told) {
    const redis_server server;
    auto store = server.connect();
    naive::checking_lock a{store, lock_name, "A"};
    naive::checking_lock b{store, lock_name, "B"};
    naive::checking_lock c{store, lock_name, "C"};
    bool b_is_in = false;
    told.begin();
    a.try_lock(short_ttl);
    told.tell("A", "takes the lock for " + in_ms(short_ttl));
    a.unlock([&] {
        told.tell("A", "is done: GET says it is A's; is slow to go on");
        expires(told, server);
        b_is_in = b.try_lock(long_ttl);
        told.tell("B", b_is_in ? "takes the lock" : "is refused");
    });
    told.tell("A", "goes on: DEL " + std::string{lock_name});
    const bool c_is_in = c.try_lock(long_ttl);
    told.tell("C", c_is_in ? "takes the lock while B is in" : "is refused");
    return broken_if(b_is_in && c_is_in,
                     "the lock changed hands between GET and DEL: B and C are in at the same time");
}

ending v4_holdfast(story& told) {
    return holdfast_after_expiry(told, manner::looks_first);
}

}  // namespace lab::scenarios
