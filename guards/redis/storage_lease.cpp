#include <commands.hpp>
#include <common/check.hpp>
#include <scripts.hpp>

#include <holdfast/error.hpp>

#include <hiredis/hiredis.h>

namespace holdfast::guard {

redis_storage_lease::redis_storage_lease(redisContext* connection)
    : connection_{detail::not_null(connection, "redis_storage_lease")} {}

lease_sequence redis_storage_lease::read(std::string_view key) {
    const auto reply = detail::command(connection_, {"HGET", key, "lease_seq"});
    return {detail::number_of(*reply)};
}

contest redis_storage_lease::write(
    std::string_view key, lease_sequence seen,
    std::span<const std::pair<std::string_view, std::string_view>> fields) {
    const auto number = std::to_string(seen.value);
    detail::words arguments{number};
    for (const auto& [field, value] : fields) {
        if (field == "lease_seq") {
            failure{errc::invalid_argument, "lease_seq is the lease's own field"}.raise(
                "redis_storage_lease::write");
        }
        arguments.insert(arguments.end(), {field, value});
    }
    const auto reply = detail::eval(connection_, scripts::lease_write, {key}, arguments);
    return reply->integer == 1 ? contest::won : contest::lost;
}

}  // namespace holdfast::guard
