#pragma once

#include <chrono>
#include <core/terms.hpp>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <utility>

/// Words for tests that read like a script: a moment, who speaks, what the store answers.
namespace script {

using namespace std::chrono_literals;

/// Where virtual time begins; not at zero, which a forgotten initialisation would be.
inline constexpr holdfast::clock::time_point start{std::chrono::hours{1}};
inline constexpr auto never = holdfast::clock::time_point::max();

[[nodiscard]] constexpr holdfast::clock::time_point at(holdfast::clock::duration since_start) {
    return start + since_start;
}

[[nodiscard]] constexpr holdfast::owner_id owner(std::int64_t sequence) {
    return {0xA11CE, 0xB0B, sequence};
}

/// A ttl of 30 s that is trusted for 29.5 s, in jeopardy for the last 10 s of these.
[[nodiscard]] inline holdfast::core::terms lease_terms(std::chrono::milliseconds ttl = 30s) {
    holdfast::core::terms how;
    how.ttl = ttl;
    how.margin = ttl / 60;
    how.jeopardy = ttl / 3;
    how.release_timeout = 2s;
    return how;
}

[[nodiscard]] inline holdfast::core::terms fixed_terms(std::chrono::milliseconds ttl = 30s) {
    auto how = lease_terms(ttl);
    how.renewal = holdfast::renewal_mode::none;
    return how;
}

[[nodiscard]] inline holdfast::engines::acquire_reply granted(std::uint64_t first_token,
                                                              std::uint32_t token_count = 1) {
    return {holdfast::engines::acquire_reply::outcome::granted, {first_token}, token_count, {}, {}};
}

[[nodiscard]] inline holdfast::engines::acquire_reply busy(std::chrono::milliseconds retry_after = {}) {
    return {holdfast::engines::acquire_reply::outcome::busy, {}, 1, retry_after, {}};
}

[[nodiscard]] inline holdfast::engines::acquire_reply not_acquired(holdfast::errc why) {
    return {holdfast::engines::acquire_reply::outcome::failed, {}, 1, {}, {why, "as scripted"}};
}

[[nodiscard]] inline holdfast::engines::renew_reply renewed() {
    return {holdfast::engines::renew_reply::outcome::renewed, {}};
}

[[nodiscard]] inline holdfast::engines::renew_reply gone(holdfast::failure why = {}) {
    return {holdfast::engines::renew_reply::outcome::gone, std::move(why)};
}

[[nodiscard]] inline holdfast::engines::renew_reply not_renewed(holdfast::errc why) {
    return {holdfast::engines::renew_reply::outcome::failed, {why, "as scripted"}};
}

[[nodiscard]] inline holdfast::engines::release_reply released(std::uint32_t others_waiting = 0) {
    return {holdfast::engines::release_reply::outcome::released, others_waiting, {}};
}

[[nodiscard]] inline holdfast::engines::release_reply nothing_to_release() {
    return {holdfast::engines::release_reply::outcome::gone, 0, {}};
}

[[nodiscard]] inline holdfast::engines::release_reply not_released(holdfast::errc why) {
    return {holdfast::engines::release_reply::outcome::failed, 0, {why, "as scripted"}};
}

}  // namespace script
