// Links with the guards and needs no header of the database's.
#include <holdfast/guard/redis.hpp>

int main(int count, char**) {
    redisContext* none = nullptr;
    holdfast::guard::redis_fence fence{none};
    return count > 1 && fence.newest("stock").value != 0 ? 1 : 0;
}
