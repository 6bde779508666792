#include "text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "card.hpp"
#include "secrets.hpp"

namespace holdfast::cli {
namespace {

TEST(text, control_characters_do_not_reach_the_terminal) {
    EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
    EXPECT_EQ(printable("\xC2\x9B"), "?");
    EXPECT_EQ(printable("äöü 東京"), "äöü 東京");
}

TEST(text, format_characters_and_broken_bytes_do_not_reach_the_terminal) {
    for (const char* hidden : {"\u00AD", "\u061C", "\u180E", "\u200B", "\u200F", "\u2028", "\u2029",
                               "\u202A", "\u202E", "\u2060", "\u2066", "\u2069", "\uFEFF", "\uFFF9",
                               "\U000110BD", "\U0001D173", "\U000E0001", "\U000E007F"}) {
        EXPECT_EQ(printable(std::string{"a"} + hidden + "b"), "a?b");
    }
    EXPECT_EQ(printable("\xFF\xFE"), "??");
    EXPECT_EQ(printable("\xE2\x80"), "?");
    EXPECT_EQ(printable("\xED\xA0\x80"), "?");
    EXPECT_EQ(printable("\u2027\u202F\u00A0\u00AE"), "\u2027\u202F\u00A0\u00AE");
}

TEST(text, json_escapes_them_and_loses_nothing) {
    EXPECT_EQ(escape_invisible("{\"a\":\"x\u202Ey\u0085z\"}"), "{\"a\":\"x\\u202ey\\u0085z\"}");
    EXPECT_EQ(escape_invisible("\"\U000E0001\""), "\"\\udb40\\udc01\"");
    EXPECT_EQ(escape_invisible("\"äöü 東京 😀\""), "\"äöü 東京 😀\"");
}

TEST(text, width_counts_columns_not_bytes) {
    EXPECT_EQ(display_width("abc"), 3U);
    EXPECT_EQ(display_width("äöü"), 3U);
    EXPECT_EQ(display_width("東京"), 4U);
    EXPECT_EQ(display_width("e\xCC\x81"), 1U);
}

TEST(text, tables_line_up) {
    EXPECT_EQ(format_table({{"A", "B"}, {"東京", "x"}, {"long", "y"}}), "A     B\n東京  x\nlong  y\n");
}

TEST(text, a_semaphore_without_free_permits_that_nobody_holds_is_not_said_to_have_been_held) {
    lock_info number;
    number.name = "visits";
    number.kind = name_kind::counter;
    number.count = 0;
    EXPECT_EQ(describe_busy(number, std::chrono::system_clock::now()),
              "no permit of \"visits\" is free, and nobody who is known holds one");
}

TEST(text, a_holder_of_another_library_is_shown_with_what_is_known_of_it) {
    holder_info java;
    java.owner = owner_id::parse("9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47").value();
    const auto now = std::chrono::system_clock::now();
    EXPECT_EQ(describe_holder(java), "9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47, no card");
    EXPECT_EQ(format_since(java, now), "-");
    EXPECT_EQ(format_tokens(java), "-");
    lock_info held;
    held.name = "stock";
    held.holders = {java};
    EXPECT_EQ(describe_busy(held, now),
              "\"stock\" is held by 9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47, no card");
    held.holders[0].since = now - std::chrono::seconds{5};
    EXPECT_NE(describe_busy(held, now).find(", no card since "), std::string::npos);
}

/// The start is a reading of the holder's clock.
TEST(text, a_holder_whose_clock_is_ahead_has_not_held_it_for_less_than_nothing) {
    holder_info ahead;
    const auto now = std::chrono::system_clock::now();
    ahead.since = now + std::chrono::hours{5};
    lock_info held;
    held.name = "stock";
    held.holders = {ahead};
    EXPECT_NE(describe_busy(held, now).find(", for 0s"), std::string::npos);
    EXPECT_NE(format_card(held, ahead, now).find(", for 0s\n"), std::string::npos);
}

TEST(text, what_is_not_utf8_is_found) {
    EXPECT_EQ(valid_utf8_prefix("aä"), 3U);
    for (const char* broken :
         {"\x80", "\xC3", "\xE2\x82", "\xC0\x80", "\xED\xA0\x80", "\xF8\x80\x80\x80", "\xFF"}) {
        EXPECT_EQ(valid_utf8_prefix(broken), 0U) << broken;
    }
}

TEST(secrets, a_password_in_an_address_is_found) {
    EXPECT_TRUE(has_password("redis://user:secret@host:6379/0"));
    EXPECT_TRUE(has_password("redis://:secret@host"));
    EXPECT_TRUE(has_password("redis://:se/cret@host"));
    EXPECT_FALSE(has_password("redis://host:6379"));
    EXPECT_FALSE(has_password("redis://user@host:6379"));
    EXPECT_FALSE(has_password("local:/var/a@b:c"));
}

TEST(secrets, passwords_disappear_from_the_argument_vector) {
    std::string program = "holdfast";
    std::string store = "--store=redis://u:secret@h";
    std::string separator = "--";
    std::string other = "http://u:theirs@h";
    char* arguments[] = {program.data(), store.data(), separator.data(), other.data()};
    hide_passwords(4, arguments);
    EXPECT_EQ(store, "--store=redis://u:******@h");
    EXPECT_EQ(other, "http://u:theirs@h");
}

}  // namespace
}  // namespace holdfast::cli
