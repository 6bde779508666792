#include "renewing_lock.hpp"

#include <condition_variable>
#include <mutex>

namespace naive {

namespace {

constexpr auto renew_if_there =
    "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then "
    "return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

}  // namespace

bool renewing_lock::try_lock(std::chrono::milliseconds ttl, timers& of_the_process) {
    constexpr auto script =
        "if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then "
        "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 "
        "end return 0";
    const auto life = std::to_string(ttl.count());
    if (store_.command({"EVAL", script, "1", name_, owner_, life}).integer != 1) {
        return false;
    }
    const auto renew = [port = port_, name = name_, owner = owner_, ttl, life](std::stop_token stop) {
        redis_client store{port};
        std::mutex guard;
        std::condition_variable_any ticks;
        std::unique_lock lock{guard};
        while (!ticks.wait_for(lock, stop, ttl / 3, [&] { return stop.stop_requested(); })) {
            if (store.command({"EVAL", renew_if_there, "1", name, owner, life}).integer == 0) {
                return;
            }
        }
    };
    of_the_process.emplace_back(renew);
    return true;
}

void renewing_lock::unlock() {
    constexpr auto script =
        "if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) == 0 then redis.call('DEL', KEYS[1]) end";
    store_.command({"EVAL", script, "1", name_, owner_});
}

}  // namespace naive
