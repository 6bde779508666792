#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include <holdfast/clock.hpp>
#include <holdfast/owner.hpp>

/// How our values are written in the tables.
namespace holdfast::engines::local {

/// An owner: 24 bytes, big-endian, the client's 16 first.
using owner_bytes = std::array<char, 24>;

inline owner_bytes to_bytes(const owner_id& owner) noexcept {
    owner_bytes bytes{};
    const std::array<std::uint64_t, 3> words{owner.high, owner.low,
                                             static_cast<std::uint64_t>(owner.sequence)};
    for (std::size_t index = 0; index < bytes.size(); ++index) {
        bytes[index] = static_cast<char>((words[index / 8] >> (56 - 8 * (index % 8))) & 0xFF);
    }
    return bytes;
}

inline std::string_view view(const owner_bytes& bytes) noexcept {
    return {bytes.data(), bytes.size()};
}
inline std::string_view client_view(const owner_bytes& bytes) noexcept {
    return {bytes.data(), 16};
}

inline owner_id to_owner(std::string_view bytes) noexcept {
    std::array<std::uint64_t, 3> words{};
    for (std::size_t index = 0; index < bytes.size() && index < 24; ++index) {
        words[index / 8] = words[index / 8] << 8 | static_cast<unsigned char>(bytes[index]);
    }
    return {words[0], words[1], static_cast<std::int64_t>(words[2])};
}

/// Nanoseconds since the host's boot, always odd: a number that ends in zeros was cut off.
inline std::int64_t to_number(clock::time_point time) noexcept {
    return time.time_since_epoch().count() | 1;
}
inline clock::time_point to_time(std::int64_t number) noexcept {
    return clock::time_point{clock::duration{number}};
}

/// Microseconds of the wall clock.
inline std::int64_t to_number(std::chrono::system_clock::time_point time) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
inline std::chrono::system_clock::time_point to_wall_time(std::int64_t number) noexcept {
    return std::chrono::system_clock::time_point{std::chrono::microseconds{number}};
}

}  // namespace holdfast::engines::local
