#include <algorithm>
#include <array>
#include <charconv>
#include <redis/layout/keys.hpp>

namespace holdfast::engines::redis {

namespace {

constexpr std::size_t slot_count = 16384;

/// CRC-16/XMODEM, the one that the cluster specification names.
constexpr std::array<std::uint16_t, 256> make_crc_table() {
    std::array<std::uint16_t, 256> table{};
    for (unsigned index = 0; index < table.size(); ++index) {
        unsigned remainder = index << 8U;
        for (int bit = 0; bit < 8; ++bit) {
            remainder = (remainder & 0x8000U) != 0 ? (remainder << 1U) ^ 0x1021U : remainder << 1U;
        }
        table[index] = static_cast<std::uint16_t>(remainder);
    }
    return table;
}

std::uint16_t crc16(std::string_view bytes) noexcept {
    static constexpr auto table = make_crc_table();
    unsigned crc = 0;
    for (const char byte : bytes) {
        const unsigned index = ((crc >> 8U) ^ static_cast<unsigned char>(byte)) & 0xFFU;
        crc = ((crc << 8U) ^ table[index]) & 0xFFFFU;
    }
    return static_cast<std::uint16_t>(crc);
}

std::uint16_t slot_of_tag(std::string_view tag) noexcept {
    return static_cast<std::uint16_t>(crc16(tag) % slot_count);
}

/// What a server hashes: the text between the first `{` and the next `}`, unless it is empty or there
/// is none; the whole key then.
std::string_view hash_tag(std::string_view key) noexcept {
    const auto open = key.find('{');
    if (open == std::string_view::npos) {
        return key;
    }
    const auto close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1) {
        return key;
    }
    return key.substr(open + 1, close - open - 1);
}

bool has_brace(std::string_view name) noexcept {
    return name.find('{') != std::string_view::npos;
}

std::string joined(std::string_view first, std::string_view second, std::string_view third,
                   std::string_view fourth = {}) {
    std::string text;
    text.reserve(first.size() + second.size() + third.size() + fourth.size());
    text.append(first).append(second).append(third).append(fourth);
    return text;
}

/// For every slot, the smallest number whose decimal text falls into it.
std::array<std::uint32_t, slot_count> make_slot_tags() {
    constexpr std::uint32_t enough = 10'000'000;
    std::array<std::uint32_t, slot_count> tags{};
    std::array<bool, slot_count> found{};
    std::size_t missing = slot_count;
    std::array<char, 12> digits{};
    for (std::uint32_t number = 0; missing != 0 && number < enough; ++number) {
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        const auto length = static_cast<std::size_t>(end - digits.data());
        const auto slot = slot_of_tag({digits.data(), length});
        if (!found[slot]) {
            found[slot] = true;
            tags[slot] = number;
            --missing;
        }
    }
    return tags;
}

}  // namespace

std::string prefixed(std::string_view prefix, std::string_view name) {
    return has_brace(name) ? joined(prefix, ":", name) : joined(prefix, ":{", name, "}");
}

std::string suffixed(std::string_view name, std::string_view suffix) {
    return has_brace(name) ? joined(name, ":", suffix) : joined("{", name, "}:", suffix);
}

std::string own_key(std::string_view prefix, std::string_view name) {
    return has_brace(name) ? joined(prefix, "::", name) : joined(prefix, ":{", name, "}");
}

bool is_reserved(std::string_view key) noexcept {
    constexpr std::array<std::string_view, 4> reserved{
        "holdfast_", "redisson_lock_queue:", "redisson_lock_timeout:", "redisson_lock_token:"};
    return std::any_of(reserved.begin(), reserved.end(),
                       [key](std::string_view start) { return key.starts_with(start); });
}

std::optional<std::string> name_in_holds_key(std::string_view key) {
    constexpr std::string_view mark = "holdfast_holds:";
    if (!key.starts_with(mark)) {
        return std::nullopt;
    }
    key.remove_prefix(mark.size());
    if (key.starts_with(':')) {
        return std::string{key.substr(1)};
    }
    if (key.size() > 2 && key.starts_with('{') && key.ends_with('}')) {
        return std::string{key.substr(1, key.size() - 2)};
    }
    return std::nullopt;
}

std::string lock_channel(std::string_view name) {
    return prefixed("redisson_lock__channel", name);
}

std::string fair_channel(std::string_view name, std::string_view owner) {
    return joined(lock_channel(name), ":", owner);
}

std::string fair_queue(std::string_view name) {
    return prefixed("redisson_lock_queue", name);
}

std::string fair_timeouts(std::string_view name) {
    return prefixed("redisson_lock_timeout", name);
}

std::string read_write_channel(std::string_view name) {
    return prefixed("redisson_rwlock", name);
}

std::string reader_timeout(std::string_view name, std::string_view owner) {
    return joined(suffixed(name, owner), ":", "rwlock_timeout");
}

std::string semaphore_channel(std::string_view name) {
    return prefixed("redisson_sc", name);
}

std::string semaphore_timeouts(std::string_view name) {
    return suffixed(name, "timeout");
}

std::string latch_channel(std::string_view name) {
    return joined("redisson_countdownlatch__channel__{", name, "}");
}

std::string redisson_token(std::string_view name) {
    return prefixed("redisson_lock_token", name);
}

std::string holds_key(std::string_view name) {
    return own_key("holdfast_holds", name);
}

std::string fair_wishes(std::string_view name) {
    return own_key("holdfast_waiters", name);
}

std::string lock_wishes(std::string_view name) {
    return own_key("holdfast_wishes", name);
}

std::string grant_channels(std::string_view name) {
    return own_key("holdfast_grants", name);
}

std::string grant_channel(std::string_view name, std::string_view client) {
    return joined(grant_channels(name), ":", client);
}

std::string lock_turn(std::string_view name) {
    return own_key("holdfast_turn", name);
}

std::string listeners_channel(std::string_view name) {
    return prefixed("holdfast_listeners", name);
}

std::string revocation_key(std::string_view name) {
    return own_key("holdfast_revoked", name);
}

std::string absent_key(std::string_view name) {
    return own_key("holdfast_absent", name);
}

std::string latch_mark(std::string_view name) {
    return own_key("holdfast_is_latch", name);
}

std::string latch_request_key(std::string_view name, std::string_view request) {
    return joined(own_key("holdfast_latch", name), ":", request);
}

std::string token_counter() {
    return "holdfast_token";
}

std::string token_counter(std::uint16_t slot) {
    static const auto tags = make_slot_tags();
    return joined(token_counter(), ":{", std::to_string(tags[slot % slot_count]), "}");
}

std::string card_key(std::string_view client) {
    return joined("holdfast_card:{", client, "}");
}

std::string client_channel(std::string_view client) {
    return joined("holdfast_client:{", client, "}");
}

std::uint16_t slot_of(std::string_view key) noexcept {
    return slot_of_tag(hash_tag(key));
}

bool fits_one_slot(std::string_view name) noexcept {
    if (has_brace(name)) {
        // Derived keys keep the name's tag, and without one hash as a whole, each differently.
        return hash_tag(name) != name;
    }
    // The derived keys' tag ends at the first closing brace.
    return !name.empty() && name.find('}') == std::string_view::npos;
}

bool latch_fits_one_slot(std::string_view name) noexcept {
    // The channel puts braces around whatever is there: `{{a}b}` has the tag `{a`.
    return !name.empty() && name.find_first_of("{}") == std::string_view::npos;
}

}  // namespace holdfast::engines::redis
