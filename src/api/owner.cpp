#include <holdfast/owner.hpp>

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace holdfast {

namespace {

constexpr std::string_view digits = "0123456789abcdef";
/// xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
constexpr std::size_t uuid_length = 36;

[[nodiscard]] constexpr bool is_dash_position(std::size_t at) noexcept {
    return at == 8 || at == 13 || at == 18 || at == 23;
}

/// The last `count` bytes of `bits`, two digits each.
[[nodiscard]] char* write_hexadecimal(std::uint64_t bits, unsigned count, char* into) noexcept {
    for (unsigned shift = 4 * 2 * count; shift > 0; shift -= 4) {
        *into++ = digits[(bits >> (shift - 4)) & 0xFU];
    }
    return into;
}

[[nodiscard]] char* write_uuid(const owner_id& whose, char* into) noexcept {
    into = write_hexadecimal(whose.high >> 32U, 4, into);
    *into++ = '-';
    into = write_hexadecimal(whose.high >> 16U, 2, into);
    *into++ = '-';
    into = write_hexadecimal(whose.high, 2, into);
    *into++ = '-';
    into = write_hexadecimal(whose.low >> 48U, 2, into);
    *into++ = '-';
    return write_hexadecimal(whose.low, 6, into);
}

}  // namespace

owner_id owner_id::random_client() {
    std::array<std::uint64_t, 2> bits{};
    for (ssize_t got = -1; got != sizeof bits;) {
        got = getrandom(bits.data(), sizeof bits, 0);
        if (got < 0 && errno != EINTR) {
            throw std::system_error{errno, std::generic_category(),
                                    "no random numbers from the system"};
        }
    }
    // Version 4, variant 1, as UUIDs have it.
    bits[0] = (bits[0] & ~std::uint64_t{0xF000}) | 0x4000U;
    bits[1] = (bits[1] & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{2} << 62U);
    return {bits[0], bits[1], 0};
}

std::string owner_id::client_text() const {
    std::string text(uuid_length, '-');
    static_cast<void>(write_uuid(*this, text.data()));
    return text;
}

std::string owner_id::text() const {
    std::array<char, uuid_length + 1 + 20> text{};
    auto* end = write_uuid(*this, text.data());
    *end++ = ':';
    end = std::to_chars(end, text.data() + text.size(), sequence).ptr;
    return {text.data(), end};
}

std::optional<owner_id> owner_id::parse(std::string_view text) noexcept {
    if (text.size() < uuid_length + 2 || text[uuid_length] != ':') {
        return std::nullopt;
    }
    owner_id parsed;
    std::size_t nibble = 0;
    for (std::size_t at = 0; at < uuid_length; ++at) {
        if (is_dash_position(at)) {
            if (text[at] != '-') {
                return std::nullopt;
            }
            continue;
        }
        const auto value = digits.find(text[at]);
        if (value == std::string_view::npos) {
            return std::nullopt;
        }
        auto& half = nibble < 16 ? parsed.high : parsed.low;
        half = (half << 4U) | value;
        ++nibble;
    }
    const auto* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + uuid_length + 1, end, parsed.sequence);
    if (error != std::errc{} || stopped != end) {
        return std::nullopt;
    }
    // One owner has one spelling: no "007", no "-0".
    const bool canonical = text.substr(uuid_length + 1) == std::to_string(parsed.sequence);
    return canonical ? std::optional{parsed} : std::nullopt;
}

}  // namespace holdfast
