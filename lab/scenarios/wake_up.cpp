#include <thread>

#include "../naive/notified_lock.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// A message that comes before anybody listens.
namespace lab::scenarios {

ending wake_up_naive(story& told) {
    const redis_server server;
    auto of_a = server.connect();
    auto of_b = server.connect();
    naive::notified_lock a{of_a, lock_name};
    naive::notified_lock b{of_b, lock_name};
    told.begin();
    a.try_lock();
    told.tell("A", "takes the lock");
    std::jthread waiter{[&] {
        int refusals = 0;
        b.lock([&] {
            if (++refusals == 1) {
                told.tell("B", "asks: busy; is about to subscribe");
                a.unlock();
                told.tell("A", "releases and publishes; nobody listens yet");
            }
        });
    }};
    const std::string channel = std::string{"released:"} + lock_name;
    wait_until("the subscription", [&] {
        return server.ask({"PUBSUB", "NUMSUB", channel}).items.at(1).integer == 1;
    });
    told.tell("B", "subscribes, and sleeps until the next message");
    const bool free = !is_there(server, lock_name);
    told.tell("redis", free ? "the lock is free" : "the lock is taken");
    server.cli({"PUBLISH", channel, "the lab wakes it, to end the story"});
    waiter.join();
    told.tell("lab", "sends a message, so that this ends");
    return broken_if(free, "the lock was free and its only waiter asleep; no message was to come");
}

ending wake_up_holdfast(story& told) {
    const redis_server server;
    holdfast::client of_a{address_of(server)};
    holdfast::client of_b{address_of(server)};
    holdfast::mutex a{of_a, lock_name};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    const auto held = a.acquire();
    told.tell("A", "takes the lock", held.token());
    std::chrono::milliseconds woke{};
    bool b_is_in = false;
    std::jthread waiter{[&] {
        const auto next = b.try_acquire_for(10s);
        woke = told.now();
        b_is_in = next.has_value();
        told.tell("B", next ? "asked again by itself, and has the lock" : "is refused",
                  next ? next->token().value : 0);
    }};
    wait_for_waiter(of_a);
    told.tell("B", "asks: busy; subscribes, asks again, sleeps");
    // The worst case: no message at all. DEL is what a server does to a lock whose time is over.
    server.cli({"DEL", lock_name});
    const auto freed = told.now();
    told.tell("redis", "the lock is free, and no message is sent at all");
    waiter.join();
    const auto waited = woke - freed;
    return safe_if(b_is_in && waited < 2s,
                   "subscribed before asking, so no message is missed; and without one B asks again "
                   "after about a second (here " +
                       in_ms(waited) + ")");
}

}  // namespace lab::scenarios
