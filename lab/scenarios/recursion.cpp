#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>
#include <stdexcept>

#include "../naive/key_locks.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Version 1: every attempt is a call inside the last one.
namespace lab::scenarios {

namespace {

constexpr std::size_t small_stack = 128UL * 1024;
/// A thread's usual stack, and the tutorial's pause.
constexpr std::size_t usual_stack = 8UL * 1024 * 1024;
constexpr std::chrono::milliseconds usual_pause{20};

/// Runs `work` on a thread with little stack, as servers with many threads give them.
void on_small_stack(void (*work)(script&), script& lines) {
    struct call {
        void (*work)(script&);
        script& lines;
    } request{work, lines};
    pthread_attr_t attributes{};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, small_stack);
    pthread_t thread{};
    const auto run = [](void* argument) -> void* {
        const auto& asked = *static_cast<call*>(argument);
        asked.work(asked.lines);
        return nullptr;
    };
    if (pthread_create(&thread, &attributes, run, &request) != 0) {
        throw std::runtime_error{"no thread with a small stack"};
    }
    pthread_attr_destroy(&attributes);
    pthread_join(thread, nullptr);
}

}  // namespace

void v1_naive_waiter(script& lines) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    on_small_stack(
        [](script& own_lines) {
            redis_client store{own_lines.port()};
            naive::recursive_lock lock{store, lock_name};
            own_lines.say("waits, with a stack of 128 KiB");
            lock.lock(0ms);
            own_lines.say("has the lock");
        },
        lines);
}

ending v1_naive(story& told) {
    const redis_server server;
    auto store = server.connect();
    told.begin();
    naive::spin_lock held{store, lock_name};
    held.try_lock();
    told.tell("A", "takes the lock and works");
    const auto before = calls_of(server, "setnx");
    actor b{server, "v1-naive-waiter", "B"};
    told.tell("B", b.hear().text);
    const int signal = b.end();
    const auto depth = calls_of(server, "setnx") - before;
    told.tell("B", "is killed by the system at depth " + std::to_string(depth) + ": signal " +
                       std::to_string(signal));
    const auto patience = static_cast<std::int64_t>(usual_stack / small_stack) * depth * usual_pause;
    return broken_if(
        signal == SIGSEGV,
        "the stack overflowed after " + std::to_string(depth) +
            " attempts. With 8 MiB and the tutorial's pause of 20 ms it takes about " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
            " s of waiting");
}

void v1_holdfast_waiter(script& lines) {
    on_small_stack(
        [](script& own_lines) {
            holdfast::client client{address_of(own_lines.port())};
            holdfast::mutex lock{client, lock_name};
            own_lines.say("waits, with a stack of 128 KiB");
            lock.lock();
            own_lines.say("has the lock; requests sent: " + std::to_string(client.requests()),
                          lock.token().value);
            lock.unlock();
        },
        lines);
}

ending v1_holdfast(story& told) {
    const redis_server server;
    holdfast::client client{address_of(server)};
    holdfast::mutex lock{client, lock_name};
    told.begin();
    auto held = lock.acquire();
    told.tell("A", "takes the lock and works", held.token());
    actor b{server, "v1-holdfast-waiter", "B"};
    told.tell("B", b.hear().text);
    wait_for_waiter(client);
    told.tell("B", "has asked, has subscribed, sleeps until it is told");
    const bool released = held.release() == holdfast::release_outcome::released;
    told.tell("A", "releases the lock");
    const auto said = b.hear();
    told.tell("B", said.text, said.token);
    const int signal = b.end();
    return safe_if(released && said.token && signal == 0,
                   "waiting is neither recursion nor a loop; B was told, and got the lock");
}

}  // namespace lab::scenarios
