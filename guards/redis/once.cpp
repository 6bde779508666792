#include <commands.hpp>
#include <common/check.hpp>
#include <scripts.hpp>

#include <holdfast/error.hpp>
#include <holdfast/owner.hpp>

#include <hiredis/hiredis.h>

namespace holdfast::guard {

namespace {

completion settle(redisContext* connection, const once_ticket& ticket, const detail::words& options) {
    const auto key = detail::companion("holdfast_once:", ticket.operation);
    detail::words arguments{ticket.claimant};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto reply = detail::eval(connection, scripts::once_settle, {key}, arguments);
    return reply->integer == 1 ? completion::recorded : completion::superseded;
}

}  // namespace

redis_once::redis_once(redisContext* connection, once_terms terms)
    : connection_{detail::not_null(connection, "redis_once")}, terms_{terms} {
    detail::check_terms(terms, "redis_once");
}

once_reply redis_once::claim(std::string_view operation) {
    const auto key = detail::companion("holdfast_once:", operation);
    auto claimant = owner_id::random_client().client_text();
    const auto lasts = std::to_string(terms_.claim.count());
    const auto keep = std::to_string(terms_.keep.count());
    const auto reply = detail::eval(connection_, scripts::once_claim, {key}, {claimant, lasts, keep});
    if (reply->elements != 2) {
        failure{errc::store_error, "the server answered something else than the script does"}.raise(
            "redis_once::claim");
    }
    const auto verdict = detail::text_of(*reply->element[0]);
    const auto& more = *reply->element[1];
    if (verdict == "claimed") {
        return {.result = once_reply::verdict::claimed,
                .ticket = {.operation = std::string{operation},
                           .claimant = std::move(claimant),
                           .attempt = static_cast<std::uint64_t>(more.integer)}};
    }
    if (verdict == "done") {
        return {.result = once_reply::verdict::done, .outcome = std::string{detail::text_of(more)}};
    }
    return {.result = once_reply::verdict::running,
            .retry_after = std::chrono::milliseconds{more.integer}};
}

completion redis_once::complete(const once_ticket& ticket, std::string_view outcome) {
    const auto keep = std::to_string(terms_.keep.count());
    return settle(connection_, ticket, {"complete", keep, outcome});
}

completion redis_once::extend(const once_ticket& ticket) {
    const auto lasts = std::to_string(terms_.claim.count());
    const auto keep = std::to_string(terms_.keep.count());
    return settle(connection_, ticket, {"extend", lasts, keep});
}

completion redis_once::abandon(const once_ticket& ticket) {
    return settle(connection_, ticket, {"abandon"});
}

}  // namespace holdfast::guard
