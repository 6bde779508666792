#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

/// Who holds a lock: the client (128 random bits, made once per client) and a number that the
/// client uses for one acquisition only. Written as `<uuid>:<number>`.
struct HOLDFAST_EXPORT owner_id {
    std::uint64_t high{};
    std::uint64_t low{};
    std::int64_t sequence{};

    /// A client identity nobody else has, from the operating system's random source.
    [[nodiscard]] static owner_id random_client();
    [[nodiscard]] static std::optional<owner_id> parse(std::string_view text) noexcept;

    [[nodiscard]] std::string client_text() const;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool same_client(const owner_id& other) const noexcept {
        return high == other.high && low == other.low;
    }

    friend auto operator<=>(const owner_id&, const owner_id&) = default;
};

}  // namespace v0
}  // namespace holdfast
