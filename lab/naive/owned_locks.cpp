#include "owned_locks.hpp"

namespace naive {

namespace {

bool set_if_absent(redis_client& store, const std::string& name, const std::string& owner,
                   std::chrono::milliseconds ttl) {
    return !store.command({"SET", name, owner, "NX", "PX", std::to_string(ttl.count())}).is_nil();
}

}  // namespace

bool checking_lock::try_lock(std::chrono::milliseconds ttl) {
    return set_if_absent(store_, name_, owner_, ttl);
}

void checking_lock::unlock(const hook& between) {
    if (store_.command({"GET", name_}).text == owner_) {
        between();
        store_.command({"DEL", name_});
    }
}

bool script_lock::try_lock(std::chrono::milliseconds ttl) {
    return set_if_absent(store_, name_, owner_, ttl);
}

void script_lock::unlock() {
    constexpr auto script =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
        "return 0";
    store_.command({"EVAL", script, "1", name_, owner_});
}

bool reentrant_lock::try_lock(std::chrono::milliseconds ttl) {
    constexpr auto script =
        "if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then "
        "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 "
        "end return 0";
    return store_.command({"EVAL", script, "1", name_, owner_, std::to_string(ttl.count())}).integer ==
           1;
}

void reentrant_lock::unlock() {
    constexpr auto script =
        "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return nil end "
        "if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) == 0 then return redis.call('DEL', KEYS[1]) "
        "end "
        "return 0";
    store_.command({"EVAL", script, "1", name_, owner_});
}

}  // namespace naive
