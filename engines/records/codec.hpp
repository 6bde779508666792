#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <records/rules.hpp>

namespace holdfast::engines::records {

/// A record as stores of `holdfast/records.hpp` keep it.
struct saved_record : record {
    struct client_card {
        owner_id client;
        holder_card card;
    };

    std::uint64_t last_token{};
    /// A number that only the write has which made this record.
    std::uint64_t edit{};
    /// Of clients with holds, in the order of the clients' ids.
    std::vector<client_card> cards;
};

/// So many cards are kept; the others' holds are shown without. 10 000 holds of as many clients then
/// take less than half a megabyte: Memcached refuses records of more than one.
inline constexpr std::size_t most_cards = 1000;
inline constexpr std::size_t most_counted = 1024;
/// Of each text of a card.
inline constexpr std::size_t longest_card_text = 64;

/// A format of its own: a version, numbers of variable length, a checksum. Times are kept in
/// microseconds. In linear time, but for sorting the clients.
[[nodiscard]] std::string encode(const saved_record& record);
/// Nothing if these bytes are not what `encode` makes.
[[nodiscard]] std::optional<saved_record> decode(std::string_view bytes);

}  // namespace holdfast::engines::records
