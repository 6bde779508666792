#include <stdexcept>
#include <thread>

#include "../naive/renewing_lock.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Version 7: renewal for an owner that is gone.
namespace lab::scenarios {

namespace {

constexpr std::chrono::milliseconds ttl{150};

/// Runs `work` on a thread that ends with an exception, as threads of a pool do.
template <class Work>
std::string failure_of(const Work& work) {
    std::string reason;
    std::jthread thread{[&] {
        try {
            work();
        } catch (const std::exception& error) {
            reason = error.what();
        }
    }};
    thread.join();
    return reason;
}

[[noreturn]] void fail_in_the_middle() {
    throw std::runtime_error{"no route to the payment service"};
}

/// An owner that keeps its lease and never comes back.
bool ends_with_max_hold(story& told, const redis_server& server, holdfast::mutex& b) {
    constexpr std::chrono::milliseconds longest{300};
    holdfast::client of_c{address_of(server)};
    holdfast::mutex c{of_c, lock_name, {.ttl = ttl, .max_hold = longest}};
    const auto forgotten = c.acquire();
    told.tell("C", "takes the lock with max_hold " + in_ms(longest) + ", and hangs", forgotten.token());
    const auto next = b.try_acquire_for(10s);
    told.tell("B", next ? "takes the lock" : "is refused",
              next ? std::optional{next->token().value} : std::nullopt);
    const bool told_so = forgotten.lost().stop_requested();
    told.tell("C",
              told_so ? "has been told: " + forgotten.loss_reason().message() : "was told nothing");
    return next && told_so;
}

}  // namespace

ending v7_naive(story& told) {
    const redis_server server;
    naive::timers of_the_process;
    told.begin();
    const auto reason = failure_of([&] {
        naive::renewing_lock lock{server.port(), lock_name, "A"};
        static_cast<void>(lock.try_lock(ttl, of_the_process));
        told.tell("A", "takes the lock for " + in_ms(ttl) + "; a timer renews it");
        fail_in_the_middle();
    });
    told.tell("A", "is gone: " + reason);
    const auto before = calls_of(server, "pexpire");
    const auto gone_at = told.now();
    constexpr std::int64_t enough = 6;
    wait_until("renewals", [&] { return calls_of(server, "pexpire") - before >= enough; });
    told.tell("timer", "has renewed the lock " + std::to_string(enough) + " times since");
    naive::renewing_lock other{server.port(), lock_name, "B"};
    const bool refused = !other.try_lock(ttl, of_the_process);
    const auto since = told.now() - gone_at;
    told.tell("B", refused ? "is refused" : "takes the lock");
    server.cli({"DEL", lock_name});
    of_the_process.clear();
    return broken_if(refused && since > ttl, "the owner has been gone for " + in_ms(since) +
                                                 ", its lock of " + in_ms(ttl) +
                                                 " lives on for as long as the process does");
}

ending v7_holdfast(story& told) {
    const redis_server server;
    holdfast::client of_a{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::mutex a{of_a, lock_name, {.ttl = ttl}};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    const auto reason = failure_of([&] {
        const auto held = a.acquire();
        told.tell("A", "takes the lock for " + in_ms(ttl) + "; the client renews it", held.token());
        fail_in_the_middle();
    });
    told.tell("A", "is gone: " + reason);
    bool at_once = false;
    if (const auto next = b.try_acquire()) {
        at_once = true;
        told.tell("B", "takes the lock at once: the lease went out of scope", next->token());
    }
    const bool ended = ends_with_max_hold(told, server, b);
    return safe_if(at_once && ended,
                   "the lock ended with its owner's scope, and a hanging owner's with max_hold");
}

}  // namespace lab::scenarios
