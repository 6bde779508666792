#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>

/// Answers as a server would give them.
namespace holdfast::engines::redis {

inline value text(std::string words) {
    return {value::kind::text, 0, std::move(words), {}};
}

inline value number(std::int64_t count) {
    return {value::kind::integer, count, {}, {}};
}

inline value error(std::string words) {
    return {value::kind::error, 0, std::move(words), {}};
}

inline value list(std::vector<value> items) {
    return {value::kind::array, 0, {}, std::move(items)};
}

inline node_address at(std::string host, std::uint16_t port) {
    return {std::move(host), port, {}};
}

}  // namespace holdfast::engines::redis
