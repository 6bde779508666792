#include "../naive/key_locks.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Holders that die: version 2, and the two torn commands.
namespace lab::scenarios {

namespace {

/// B waits for what a dead holder left, which ends by itself.
ending waits_for_the_dead(story& told, const redis_server& server, std::chrono::milliseconds ttl,
                          const std::string& promise) {
    const auto left = ttl_of(server, lock_name);
    told.tell("redis", left > 0 ? "ends the lock in " + std::to_string(left) + " ms by itself"
                                : "PTTL " + std::string{lock_name} + " = " + std::to_string(left));
    const auto asked = told.now();
    holdfast::client client{address_of(server)};
    holdfast::mutex lock{client, lock_name};
    const auto held = lock.try_acquire_for(10s);
    if (!held) {
        return safe_if(false, "B gets the lock");
    }
    told.tell("B", "has the lock", held->token());
    return safe_if(left != -1 && left <= ttl.count(),
                   promise + "; B waited " + in_ms(told.now() - asked));
}

}  // namespace

void v2_naive_holder(script& lines) {
    redis_client store{lines.port()};
    naive::spin_lock lock{store, lock_name};
    lock.try_lock();
    lines.say("takes the lock");
    lines.wait_for_cue();
    lock.unlock();
}

ending v2_naive(story& told) {
    const redis_server server;
    told.begin();
    actor a{server, "v2-naive-holder", "A"};
    told.tell("A", a.hear().text);
    a.kill();
    told.tell("A", "is killed (SIGKILL); its finally block never runs");
    auto store = server.connect();
    naive::spin_lock lock{store, lock_name};
    constexpr int attempts = 100;
    int refused = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        refused += lock.try_lock() ? 0 : 1;
    }
    told.tell("B",
              "asks " + std::to_string(attempts) + " times, is refused " + std::to_string(refused));
    const auto left = ttl_of(server, lock_name);
    told.tell("redis", "PTTL " + std::string{lock_name} + " = " + std::to_string(left));
    return broken_if(refused == attempts && left == -1,
                     "the holder is dead, its lock has no end: nobody will ever get in");
}

void holdfast_holder(script& lines) {
    holdfast::client client{address_of(lines.port())};
    holdfast::mutex lock{
        client, lock_name, {.ttl = std::chrono::milliseconds{std::stoll(lines.more(0))}}};
    const auto held = lock.acquire();
    lines.say("takes the lock for " + lines.more(0) + " ms, to be renewed", held.token().value);
    lines.wait_for_cue();
}

ending v2_holdfast(story& told) {
    const redis_server server;
    told.begin();
    actor a{server, "holdfast-holder", "A", {"400"}};
    const auto said = a.hear();
    told.tell("A", said.text, said.token);
    a.kill();
    told.tell("A", "is killed (SIGKILL)");
    return waits_for_the_dead(told, server, 400ms, "the lock ended with its ttl");
}

void torn_naive_holder(script& lines) {
    redis_client store{lines.port()};
    naive::torn_lock lock{store, lock_name};
    static_cast<void>(lock.try_lock(400ms, [&] {
        lines.say("SETNX: takes the lock; PEXPIRE comes next");
        lines.wait_for_cue();
    }));
}

ending torn_naive(story& told) {
    const redis_server server;
    told.begin();
    actor a{server, "torn-naive-holder", "A"};
    told.tell("A", a.hear().text);
    a.kill();
    told.tell("A", "is killed (SIGKILL) between the two commands");
    auto store = server.connect();
    naive::torn_lock lock{store, lock_name};
    const bool taken = lock.try_lock(400ms, [] {});
    told.tell("B", taken ? "takes the lock" : "is refused");
    const auto left = ttl_of(server, lock_name);
    told.tell("redis", "PTTL " + std::string{lock_name} + " = " + std::to_string(left));
    return broken_if(!taken && left == -1, "a lock that was to end after 400 ms never ends");
}

ending torn_holdfast(story& told) {
    const redis_server server;
    told.begin();
    actor a{server, "holdfast-holder", "A", {"400"}};
    // Killed the moment the lock is seen: before A itself has heard of it, if possible.
    wait_until("the lock", [&] { return is_there(server, lock_name); });
    a.kill();
    told.tell("redis", "has A's lock");
    told.tell("A", "is killed (SIGKILL) that very moment");
    return waits_for_the_dead(told, server, 400ms, "a lock and its end are one step");
}

}  // namespace lab::scenarios
