// Links with the guards and needs no header of the database's: a connection that is none is refused.
#include <holdfast/guard/redis.hpp>

#include <system_error>

int main() {
    redisContext* none = nullptr;
    try {
        holdfast::guard::redis_fence fence{none};
        return fence.newest("stock").value == 0 ? 2 : 3;
    } catch (const std::system_error& refused) {
        return refused.code() == std::errc::invalid_argument ? 0 : 1;
    }
}
