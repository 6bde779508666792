#include <algorithm>
#include <array>
#include <common/validate.hpp>
#include <core/names.hpp>

namespace holdfast::engines {

namespace {

failure invalid(std::string detail) {
    return {errc::invalid_argument, std::move(detail)};
}

failure check_ttl(std::string_view name, std::chrono::milliseconds ttl, const guarantees& promises) {
    if (ttl >= promises.minimum_ttl && ttl <= promises.maximum_ttl) {
        return {};
    }
    return invalid("lock " + in_quotes(name) + ": the ttl is " + std::to_string(ttl.count()) +
                   " ms, this store takes " + std::to_string(promises.minimum_ttl.count()) + " to " +
                   std::to_string(promises.maximum_ttl.count()) + " ms");
}

}  // namespace

std::string_view shortened(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) {
        return text;
    }
    std::size_t end = bytes;
    while (end > 0 && bytes - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
        --end;
    }
    return text.substr(0, end);
}

std::string in_quotes(std::string_view text) {
    return core::quote_name(text);
}

failure check_name(std::string_view name) {
    return core::check_name(name);
}

std::string_view flaw_in(std::string_view text) noexcept {
    return core::flaw_in(text);
}

failure check_request(const acquire_request& request, const guarantees& promises) {
    if (auto bad = check_name(request.name)) {
        return bad;
    }
    if (auto bad = check_ttl(request.name, request.ttl, promises)) {
        return bad;
    }
    if (request.token_count == 0) {
        return invalid("lock " + in_quotes(request.name) + ": a grant needs at least one token");
    }
    if (request.mode == claim_mode::permit &&
        (request.permits == 0 || request.permits > request.limit)) {
        return invalid("semaphore " + in_quotes(request.name) + ": " + std::to_string(request.permits) +
                       " permits of " + std::to_string(request.limit) +
                       " were asked for; ask for at least 1 and at most the limit");
    }
    if (request.mode == claim_mode::permit && request.permits > most_permits) {
        return invalid("semaphore " + in_quotes(request.name) + ": " + std::to_string(request.permits) +
                       " permits were asked for; one acquisition has at most " +
                       std::to_string(most_permits) + ", take the others by another");
    }
    return {};
}

failure check_request(const renew_request& request, const guarantees& promises) {
    if (auto bad = check_name(request.name)) {
        return bad;
    }
    return check_ttl(request.name, request.ttl, promises);
}

failure check_request(const release_request& request, const guarantees& promises) {
    if (auto bad = check_name(request.name)) {
        return bad;
    }
    if (request.linger.count() < 0 || request.linger > promises.maximum_ttl) {
        return invalid("lock " + in_quotes(request.name) + ": it cannot be kept taken for " +
                       std::to_string(request.linger.count()) + " ms after its release; 0 to " +
                       std::to_string(promises.maximum_ttl.count()) + " ms are allowed");
    }
    return {};
}

failure check_request(const revoke_request& request, const guarantees&) {
    return check_name(request.name);
}

failure check_request(const latch_request& request, const guarantees& promises) {
    if (auto bad = check_name(request.name)) {
        return bad;
    }
    if (request.what != latch_request::operation::set) {
        return {};
    }
    if (request.count == 0) {
        return invalid("latch " + in_quotes(request.name) + ": it must count from at least 1");
    }
    if (request.lifetime.count() <= 0 || request.lifetime > promises.maximum_ttl) {
        return invalid("latch " + in_quotes(request.name) + ": the lifetime is " +
                       std::to_string(request.lifetime.count()) + " ms, 1 to " +
                       std::to_string(promises.maximum_ttl.count()) + " are allowed");
    }
    return {};
}

failure check_request(const list_request& request, const guarantees&) {
    if (request.limit == 0) {
        return invalid("a page of a list has room for at least one lock");
    }
    return {};
}

}  // namespace holdfast::engines
