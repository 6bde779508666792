#include "fenced_lock.hpp"

namespace naive {

std::optional<std::uint64_t> fenced_lock::try_lock(std::chrono::milliseconds ttl) {
    if (store_.command({"SET", name_, owner_, "NX", "PX", std::to_string(ttl.count())}).is_nil()) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(counter_.command({"INCR", "token:" + name_}).integer);
}

int strictly_rising_stock::read() {
    return std::stoi(database_.command({"HGET", "stock:101", "amount"}).text);
}

bool strictly_rising_stock::write(std::uint64_t token, int amount) {
    constexpr auto script =
        "if tonumber(ARGV[1]) <= tonumber(redis.call('HGET', KEYS[1], 'last_token')) then return 0 end "
        "redis.call('HSET', KEYS[1], 'last_token', ARGV[1], 'amount', ARGV[2]) return 1";
    return database_
               .command(
                   {"EVAL", script, "1", "stock:101", std::to_string(token), std::to_string(amount)})
               .integer == 1;
}

}  // namespace naive
