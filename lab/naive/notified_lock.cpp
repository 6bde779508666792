#include "notified_lock.hpp"

namespace naive {

bool notified_lock::try_lock() {
    return !store_.command({"SET", name_, "taken", "NX", "PX", "30000"}).is_nil();
}

void notified_lock::lock(const hook& between) {
    while (!try_lock()) {
        between();
        store_.command({"SUBSCRIBE", "released:" + name_});
        store_.next_message();
        store_.command({"UNSUBSCRIBE", "released:" + name_});
    }
}

void notified_lock::unlock() {
    store_.command({"DEL", name_});
    store_.command({"PUBLISH", "released:" + name_, "free"});
}

}  // namespace naive
