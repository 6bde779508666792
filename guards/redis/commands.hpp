#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/guard/redis.hpp>

namespace holdfast::guard::detail {

using reply_handle = redis_fence::reply_handle;
using words = std::vector<std::string_view>;

/// Never a null reply, never an error: those are thrown.
[[nodiscard]] reply_handle command(redisContext* connection, const words& sent);
[[nodiscard]] reply_handle eval(redisContext* connection, std::string_view script, const words& keys,
                                const words& arguments);

/// The key that keeps something about another one, in the same slot of a cluster: `prefix{key}`, or
/// `prefix:key` for one with a tag of its own. No two keys share one. Throws `invalid_name` when there
/// can be none.
[[nodiscard]] std::string companion(std::string_view prefix, std::string_view key);

[[nodiscard]] std::string_view text_of(const redisReply& reply) noexcept;
/// Zero for nil. Throws `store_error` for what is not a number.
[[nodiscard]] std::int64_t number_of(const redisReply& reply);

}  // namespace holdfast::guard::detail
