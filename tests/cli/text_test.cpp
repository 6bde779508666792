#include "text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "secrets.hpp"

namespace holdfast::cli {
namespace {

TEST(text, control_characters_do_not_reach_the_terminal) {
    EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
    EXPECT_EQ(printable("\xC2\x9B"), "?");
    EXPECT_EQ(printable("äöü 東京"), "äöü 東京");
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
