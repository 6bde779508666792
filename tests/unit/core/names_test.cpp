#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/names.hpp>
#include <string>

namespace {

using holdfast::errc;
using holdfast::core::check_name;
using holdfast::core::longest_name;
using holdfast::core::quote_name;
using testing::HasSubstr;

class good_names : public testing::TestWithParam<std::string> {};

TEST_P(good_names, are_accepted) {
    EXPECT_FALSE(check_name(GetParam())) << check_name(GetParam()).detail;
}

INSTANTIATE_TEST_SUITE_P(names, good_names,
                         testing::Values("a", "stock:101", "with space", "{slot}:7", "naïve", "鎖", "🔒",
                                         "\"quoted\"", "back\\slash", "\u00A0",
                                         "\xED\x9F\xBF",      // the last before the surrogates
                                         "\xEE\x80\x80",      // the first after them
                                         "\xF4\x8F\xBF\xBF",  // the last of all
                                         std::string(longest_name, 'x')));

class bad_names : public testing::TestWithParam<std::string> {};

TEST_P(bad_names, are_refused) {
    const auto why = check_name(GetParam());

    EXPECT_EQ(why.code, errc::invalid_name);
    EXPECT_FALSE(why.detail.empty());
}

INSTANTIATE_TEST_SUITE_P(empty_or_too_long, bad_names,
                         testing::Values("", std::string(longest_name + 1, 'x')));
INSTANTIATE_TEST_SUITE_P(with_control_characters, bad_names,
                         testing::Values(std::string(1, '\0'), "a\nb", "tab\t", "\x1F", "\x7F",
                                         "\xC2\x80", "\xC2\x9F"));
INSTANTIATE_TEST_SUITE_P(not_utf8, bad_names,
                         testing::Values("\x80",              // a continuation without a lead
                                         "\xC3",              // cut short
                                         "\xE2\x82",          // cut short
                                         "\xF0\x9F\x94",      // cut short
                                         "\xC3(",             // no continuation
                                         "\xC0\xAF",          // overlong
                                         "\xC1\xBF",          // overlong
                                         "\xE0\x9F\xBF",      // overlong
                                         "\xF0\x8F\xBF\xBF",  // overlong
                                         "\xED\xA0\x80",      // the first surrogate
                                         "\xED\xBF\xBF",      // the last surrogate
                                         "\xF4\x90\x80\x80",  // beyond Unicode
                                         "\xF5\x80\x80\x80", "\xFF", "good then \xFE"));

TEST(names, refusal_says_how_long_the_name_is_and_may_be) {
    const auto why = check_name(std::string(2000, 'x'));

    EXPECT_THAT(why.detail, HasSubstr("2000 bytes"));
    EXPECT_THAT(why.detail, HasSubstr("1024"));
}

TEST(names, refusal_tells_bad_encoding_from_control_characters) {
    EXPECT_THAT(check_name("\xFF").detail, HasSubstr("UTF-8"));
    EXPECT_THAT(check_name("\n").detail, HasSubstr("control character"));
}

TEST(names, quoted_name_is_the_name_in_quotes) {
    EXPECT_EQ(quote_name("stock:101"), "\"stock:101\"");
    EXPECT_EQ(quote_name("鎖"), "\"鎖\"");
}

TEST(names, quoted_name_shows_what_cannot_be_printed_in_hexadecimal) {
    EXPECT_EQ(quote_name("a\nb"), R"("a\x0ab")");
    EXPECT_EQ(quote_name("\xC3("), R"("\xc3(")");
    EXPECT_EQ(quote_name("\xC2\x80"), R"("\xc2\x80")");
}

TEST(names, quoted_name_of_sixty_three_bytes_is_whole) {
    const std::string name(63, 'x');

    EXPECT_EQ(quote_name(name), '"' + name + '"');
}

TEST(names, quoted_name_is_shortened_between_characters) {
    std::string locks;
    for (int i = 0; i < 40; ++i) {
        locks += "鎖";
    }

    const auto quoted = quote_name(locks);

    EXPECT_LT(quoted.size(), 80U);
    EXPECT_TRUE(quoted.ends_with("鎖…\"")) << quoted;
}

}  // namespace
