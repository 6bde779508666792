#include <common/validate.hpp>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

const guarantees limits{.reach_text = {}, .minimum_ttl = 20ms, .maximum_ttl = 1h};

TEST(validate, names_may_be_any_utf8_text_without_control_characters) {
    EXPECT_FALSE(check_name("stock:101"));
    EXPECT_FALSE(check_name("größe/数/🔒"));
    EXPECT_FALSE(check_name(std::string(1024, 'x')));
}

TEST(validate, empty_long_and_unprintable_names_are_refused) {
    EXPECT_EQ(check_name("").code, errc::invalid_name);
    EXPECT_EQ(check_name(std::string(1025, 'x')).code, errc::invalid_name);
    EXPECT_EQ(check_name("a\nb").code, errc::invalid_name);
    EXPECT_EQ(check_name("a\x7f").code, errc::invalid_name);
    EXPECT_EQ(check_name(std::string_view{"a\0b", 3}).code, errc::invalid_name);
}

TEST(validate, what_is_not_utf8_is_refused) {
    for (const char* name : {"\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                             "\xF0\x9F\x94", "a\xFF"}) {
        EXPECT_EQ(check_name(name).code, errc::invalid_name);
    }
}

TEST(validate, an_error_never_quotes_more_than_the_beginning_of_a_name) {
    EXPECT_LT(check_name(std::string(1'000'000, 'x')).detail.size(), 200U);
    EXPECT_EQ(in_quotes("a\nb\xFF"), "\"a\\x0ab\\xff\"");
    const std::string beginning(63, 'x');
    EXPECT_EQ(in_quotes(beginning + "数"), std::string{'"'}.append(beginning).append("…\""));
}

TEST(validate, more_permits_at_once_than_an_owner_has_ids_for_are_refused) {
    const owner_id owner{1, 1, 1};
    EXPECT_FALSE(check_request(permits("seats", owner, 65'536, 100'000), limits));
    const auto refused = check_request(permits("seats", owner, 65'537, 100'000), limits);
    EXPECT_EQ(refused.code, errc::invalid_argument);
    EXPECT_NE(refused.detail.find("at most 65536"), std::string::npos);
}

TEST(validate, a_ttl_outside_the_promised_range_is_refused) {
    const owner_id owner{1, 1, 1};
    EXPECT_FALSE(check_request(exclusive("a", owner, 20ms), limits));
    EXPECT_EQ(check_request(exclusive("a", owner, 19ms), limits).code, errc::invalid_argument);
    EXPECT_EQ(check_request(exclusive("a", owner, 61min), limits).code, errc::invalid_argument);
    EXPECT_EQ(check_request(renew_request{"a", claim_mode::exclusive, owner, 0ms}, limits).code,
              errc::invalid_argument);
}

TEST(validate, a_grant_without_tokens_is_refused) {
    auto request = exclusive("a", {1, 1, 1}, 1s);
    request.token_count = 0;
    EXPECT_EQ(check_request(request, limits).code, errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::engines::test
