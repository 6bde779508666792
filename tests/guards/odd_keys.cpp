#include "odd_keys.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/storage_lease.hpp>

namespace holdfast::guard::testing {

namespace {

using namespace std::string_literals;
using verdict = once_reply::verdict;

[[nodiscard]] std::string shown(std::string_view key) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char one : key) {
        const auto byte = static_cast<unsigned char>(one);
        text += {digits[byte >> 4U], digits[byte & 0xFU]};
    }
    return text;
}

void expect_distinct_fences(database& writer, database& reader, const std::vector<std::string>& keys) {
    fence written{writer};
    fence read{reader};
    // Falling: of two keys that are one, the second would be stale.
    auto token = [count = keys.size()](std::size_t index) {
        return fencing_token{2 * (count - index)};
    };
    for (std::size_t index = 0; index < keys.size(); ++index) {
        EXPECT_EQ(written.announce(keys[index], token(index)), admission::admitted)
            << shown(keys[index]);
    }
    for (std::size_t index = 0; index < keys.size(); ++index) {
        EXPECT_EQ(read.newest(keys[index]), token(index)) << shown(keys[index]);
        EXPECT_EQ(read.announce(keys[index], {token(index).value - 1}), admission::stale)
            << shown(keys[index]);
    }
    writer.run("BEGIN", {});
    for (std::size_t index = 0; index < keys.size(); ++index) {
        EXPECT_EQ(written.admit(keys[index], token(index)), admission::admitted) << shown(keys[index]);
    }
    writer.run("COMMIT", {});
}

void expect_distinct_leases(database& writer, database& reader, const std::vector<std::string>& keys) {
    storage_lease written{writer};
    storage_lease read{reader};
    writer.run("BEGIN", {});
    for (const auto& key : keys) {
        EXPECT_EQ(written.read(key), lease_sequence{0}) << shown(key);
        EXPECT_EQ(written.advance(key, {0}), contest::won) << shown(key);
        EXPECT_EQ(written.advance(key, {0}), contest::lost) << shown(key);
    }
    writer.run("COMMIT", {});
    for (const auto& key : keys) {
        EXPECT_EQ(read.read(key), lease_sequence{1}) << shown(key);
    }
}

void expect_distinct_operations(database& writer, database& reader,
                                const std::vector<std::string>& keys) {
    once written{writer};
    once read{reader};
    std::vector<once_ticket> tickets;
    writer.run("BEGIN", {});
    for (const auto& key : keys) {
        const auto first = written.claim(key);
        EXPECT_EQ(first.result, verdict::claimed) << shown(key);
        EXPECT_EQ(first.ticket.attempt, 1U) << shown(key);
        EXPECT_EQ(written.extend(first.ticket), completion::recorded) << shown(key);
        EXPECT_EQ(written.abandon(first.ticket), completion::recorded) << shown(key);
        tickets.push_back(written.claim(key).ticket);
        EXPECT_EQ(tickets.back().attempt, 2U) << shown(key);
    }
    for (const auto& ticket : tickets) {
        EXPECT_EQ(written.complete(ticket, ticket.operation), completion::recorded)
            << shown(ticket.operation);
    }
    writer.run("COMMIT", {});
    for (std::size_t index = 0; index < keys.size(); ++index) {
        const auto retry = read.claim(keys[index]);
        EXPECT_EQ(retry.result, verdict::done) << shown(keys[index]);
        EXPECT_EQ(retry.outcome, keys[index]) << shown(keys[index]);
        EXPECT_EQ(read.complete(tickets[index], keys[index] + '\0'), completion::superseded)
            << shown(keys[index]);
        EXPECT_EQ(read.complete(tickets[index], keys[index]), completion::recorded)
            << shown(keys[index]);
    }
}

}  // namespace

std::vector<std::string> odd_keys() {
    std::vector<std::string> keys{
        // Zero bytes.
        "pay", "pay\0"s, "pay\0x"s, "pay\0y"s, "\0pay"s, "\0"s, "\0\0"s,
        // Case, blanks and what collations leave out.
        "Pay", "PAY", "pay ", "pay  ", " pay", "pay\t", "pay\n", "pay\r\n", "pay\xe2\x80\x8b",
        "pay\xc2\xa0", "pay-", "pay.",
        // One letter or two, with and without accents, composed or not.
        "\xc3\xa9", "e\xcc\x81", "\xc3\x89", "e", "E", "\xc3\x9f", "ss", "SS", "\xc4\xb1", "i", "I",
        "\xc4\xb0", "\xef\xac\x80", "ff", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81",
        // Not UTF-8: single bytes, a cut letter, a zero in two bytes, half a pair, beyond the end; and
        // the replacement for all of them.
        "\xff", "\xfe", "\xff\xfe", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
        "\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd", "?",
        // Double characters of Shift_JIS, and where GBK would swallow an escape.
        "\x81\xca", "\xee\xf9", "\xfa\x54", "\xbf'", "\xbf\\'", "\xbf\\",
        // Numbers and other notations.
        "1", "01", "+1", "1.0", "1e0", "1x", "0x31", "x'31'", "NULL", "null", "0", "-0", "x",
        // Escapes and places of parameters.
        "\\x70", "p", "\\160", "\\", "\\\\", "'", "''", "\"", "`", "$1", "$2", "$", "?1", ":1", "%",
        "_", "{pay}", "{p}ay", ";", "--", "/*",
        // As long as can be, different at the end only.
        std::string(254, 'a'), std::string(255, 'a'), std::string(254, 'a') + 'b',
        std::string(254, 'a') + ' ', std::string(254, 'a') + '\0', std::string(255, '\xff'),
        std::string(254, '\xff') + '\xfe'};
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
    return keys;
}

void expect_distinct_keys(database& writer, database& reader) {
    const auto keys = odd_keys();
    expect_distinct_fences(writer, reader, keys);
    expect_distinct_leases(writer, reader, keys);
    expect_distinct_operations(writer, reader, keys);
}

}  // namespace holdfast::guard::testing
