#include "key_locks.hpp"

#include <thread>

namespace naive {

std::size_t recursive_lock::lock(std::chrono::milliseconds pause) {
    const auto reply = store_.command({"SETNX", name_, "taken"});
    if (reply.integer == 1) {
        return 1;
    }
    std::this_thread::sleep_for(pause);
    return 1 + lock(pause);
}

bool spin_lock::try_lock() {
    return store_.command({"SETNX", name_, "taken"}).integer == 1;
}

void spin_lock::unlock() {
    store_.command({"DEL", name_});
}

bool torn_lock::try_lock(std::chrono::milliseconds ttl, const hook& between) {
    if (store_.command({"SETNX", name_, "taken"}).integer != 1) {
        return false;
    }
    between();
    store_.command({"PEXPIRE", name_, std::to_string(ttl.count())});
    return true;
}

bool expiring_lock::try_lock(std::chrono::milliseconds ttl) {
    return !store_.command({"SET", name_, "taken", "NX", "PX", std::to_string(ttl.count())}).is_nil();
}

void expiring_lock::unlock() {
    store_.command({"DEL", name_});
}

}  // namespace naive
