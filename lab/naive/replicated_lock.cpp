#include "replicated_lock.hpp"

namespace naive {

holdfast::testing_support::redis_reply replicated_lock::try_lock(std::chrono::milliseconds ttl,
                                                                 std::chrono::milliseconds wait) {
    constexpr auto script =
        "local got = redis.call('SET', KEYS[1], 'taken', 'NX', 'PX', ARGV[1]); "
        "redis.call('WAIT', 1, ARGV[2]); "
        "return got";
    return store_.command(
        {"EVAL", script, "1", name_, std::to_string(ttl.count()), std::to_string(wait.count())});
}

}  // namespace naive
