#include <commands.hpp>
#include <common/check.hpp>
#include <scripts.hpp>

#include <holdfast/error.hpp>

#include <hiredis/hiredis.h>

namespace holdfast::guard {

namespace {

constexpr std::string_view prefix = "holdfast_fence:";

std::string around(std::string_view script) {
    static constexpr std::string_view place = "@HOLDFAST_SCRIPT@";
    const auto at = scripts::fenced.find(place);
    std::string text{scripts::fenced.substr(0, at)};
    return text.append(script).append(scripts::fenced.substr(at + place.size()));
}

}  // namespace

redis_fence::redis_fence(redisContext* connection)
    : connection_{detail::not_null(connection, "redis_fence")} {}

redis_fence::script_reply redis_fence::run(std::string_view script, fencing_token token,
                                           std::span<const std::string_view> keys,
                                           std::span<const std::string_view> arguments) {
    if (keys.empty()) {
        failure{errc::invalid_argument, "the first key is what is fenced; there is none"}.raise(
            "redis_fence::run");
    }
    const auto fence = detail::companion(prefix, keys.front());
    const auto number = std::to_string(detail::checked(token));
    detail::words all_keys{fence};
    all_keys.insert(all_keys.end(), keys.begin(), keys.end());
    detail::words all_arguments{number};
    all_arguments.insert(all_arguments.end(), arguments.begin(), arguments.end());
    auto reply = detail::eval(connection_, around(script), all_keys, all_arguments);
    if (reply->elements < 1 || reply->element[0]->integer != 1) {
        return {};
    }
    return {admission::admitted, std::move(reply)};
}

admission redis_fence::set(std::string_view key, fencing_token token, std::string_view value) {
    return run("return redis.call('SET', KEYS[1], ARGV[1])", token, {&key, 1}, {&value, 1}).verdict;
}

admission redis_fence::set_fields(
    std::string_view key, fencing_token token,
    std::span<const std::pair<std::string_view, std::string_view>> fields) {
    detail::words arguments;
    for (const auto& [field, value] : fields) {
        arguments.insert(arguments.end(), {field, value});
    }
    constexpr std::string_view script =
        "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end";
    return run(script, token, {&key, 1}, arguments).verdict;
}

admission redis_fence::announce(std::string_view key, fencing_token token) {
    return run("", token, {&key, 1}, {}).verdict;
}

fencing_token redis_fence::newest(std::string_view key) {
    const auto reply = detail::command(connection_, {"GET", detail::companion(prefix, key)});
    return {static_cast<std::uint64_t>(detail::number_of(*reply))};
}

}  // namespace holdfast::guard
