#include "resource.hpp"

namespace lab {

namespace {

// KEYS[1] a hash with amount and fence; ARGV[1] the token, ARGV[2] the new amount or nothing.
// Lua's numbers hold 53 bits, which is enough for tokens that are microseconds.
constexpr auto guarded = R"lua(
local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[1]) < fence then return false end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
if ARGV[2] then redis.call('HSET', KEYS[1], 'amount', ARGV[2]) end
return redis.call('HGET', KEYS[1], 'amount')
)lua";

}  // namespace

void fenced_stock::fill(int amount) {
    store_.command({"HSET", stock_name, "amount", std::to_string(amount)});
}

int fenced_stock::amount() {
    return std::stoi(store_.command({"HGET", stock_name, "amount"}).text);
}

std::optional<int> fenced_stock::enter(holdfast::fencing_token token) {
    const auto reply = store_.command({"EVAL", guarded, "1", stock_name, std::to_string(token.value)});
    return reply.is_nil() ? std::nullopt : std::optional{std::stoi(reply.text)};
}

bool fenced_stock::write(holdfast::fencing_token token, int amount) {
    const auto reply = store_.command(
        {"EVAL", guarded, "1", stock_name, std::to_string(token.value), std::to_string(amount)});
    return !reply.is_nil();
}

}  // namespace lab
