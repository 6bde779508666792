#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/owner.hpp>
#include <limits>
#include <random>
#include <string>
#include <string_view>

namespace {

using holdfast::owner_id;
using testing::MatchesRegex;

constexpr owner_id alice{0x0123456789abcdef, 0xfedcba9876543210, 42};
constexpr std::string_view alice_text = "01234567-89ab-cdef-fedc-ba9876543210:42";

TEST(owner_id, is_written_as_a_uuid_and_a_number) {
    EXPECT_EQ(alice.text(), alice_text);
    EXPECT_EQ(alice.client_text(), "01234567-89ab-cdef-fedc-ba9876543210");
}

TEST(owner_id, text_keeps_leading_zeros) {
    EXPECT_EQ((owner_id{0, 1, 0}.text()), "00000000-0000-0000-0000-000000000001:0");
}

TEST(owner_id, is_read_back_from_its_text) {
    EXPECT_EQ(owner_id::parse(alice_text), alice);
}

class owners : public testing::TestWithParam<owner_id> {};

TEST_P(owners, survive_a_round_trip) {
    EXPECT_EQ(owner_id::parse(GetParam().text()), GetParam()) << GetParam().text();
}

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
INSTANTIATE_TEST_SUITE_P(
    extremes, owners,
    testing::Values(owner_id{}, owner_id{largest, largest, std::numeric_limits<std::int64_t>::max()},
                    owner_id{1, 2, std::numeric_limits<std::int64_t>::min()}, owner_id{1, 2, -1},
                    owner_id{largest, 0, 1}, owner_id{0, largest, 1}));

TEST(owner_id, random_owners_survive_a_round_trip) {
    std::mt19937_64 random{7};
    for (int i = 0; i < 10'000; ++i) {
        const owner_id one{random(), random(), static_cast<std::int64_t>(random())};
        ASSERT_EQ(owner_id::parse(one.text()), one) << one.text();
    }
}

class garbage : public testing::TestWithParam<std::string_view> {};

TEST_P(garbage, is_not_an_owner) {
    EXPECT_EQ(owner_id::parse(GetParam()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(incomplete, garbage,
                         testing::Values("", ":", "42", ":42", "01234567-89ab-cdef-fedc-ba9876543210",
                                         "01234567-89ab-cdef-fedc-ba9876543210:",
                                         "01234567-89ab-cdef-fedc-ba987654321:42",
                                         "1234567-89ab-cdef-fedc-ba9876543210:42"));
INSTANTIATE_TEST_SUITE_P(misshapen, garbage,
                         testing::Values("0123456789abcdeffedcba9876543210:42",
                                         "01234567-89ab-cdef-fedc-ba98765432100:42",
                                         "01234567_89ab_cdef_fedc_ba9876543210:42",
                                         "0123456-789ab-cdef-fedc-ba9876543210:42",
                                         "g1234567-89ab-cdef-fedc-ba9876543210:42",
                                         "+1234567-89ab-cdef-fedc-ba9876543210:42",
                                         "0x234567-89ab-cdef-fedc-ba9876543210:42",
                                         "01234567-89ab-cdef-fedc-ba987654321-:42",
                                         "01234567-89ab-cdef-fedc-ba9876543210;42"));
INSTANTIATE_TEST_SUITE_P(with_a_bad_number, garbage,
                         testing::Values("01234567-89ab-cdef-fedc-ba9876543210:x",
                                         "01234567-89ab-cdef-fedc-ba9876543210:+42",
                                         "01234567-89ab-cdef-fedc-ba9876543210:--42",
                                         "01234567-89ab-cdef-fedc-ba9876543210:-",
                                         "01234567-89ab-cdef-fedc-ba9876543210:4.2",
                                         "01234567-89ab-cdef-fedc-ba9876543210:9223372036854775808",
                                         "01234567-89ab-cdef-fedc-ba9876543210:-9223372036854775809"));
INSTANTIATE_TEST_SUITE_P(with_something_around_it, garbage,
                         testing::Values(" 01234567-89ab-cdef-fedc-ba9876543210:42",
                                         "01234567-89ab-cdef-fedc-ba9876543210:42 ",
                                         "01234567-89ab-cdef-fedc-ba9876543210: 42",
                                         "01234567-89ab-cdef-fedc-ba9876543210:42:1",
                                         "{01234567-89ab-cdef-fedc-ba9876543210}:42",
                                         std::string_view{"01234567-89ab-cdef-fedc-ba9876543210:4\0",
                                                          39}));

TEST(owner_id, every_shortened_text_is_refused_or_another_owner) {
    for (std::size_t length = 0; length < alice_text.size(); ++length) {
        EXPECT_NE(owner_id::parse(alice_text.substr(0, length)), alice) << length;
    }
}

TEST(owner_id, same_client_does_not_look_at_the_number) {
    EXPECT_TRUE(alice.same_client({alice.high, alice.low, 1}));
    EXPECT_FALSE(alice.same_client({alice.high, alice.low + 1, 42}));
    EXPECT_FALSE(alice.same_client({alice.high + 1, alice.low, 42}));
}

TEST(owner_id, random_clients_differ) {
    const auto one = owner_id::random_client();
    const auto two = owner_id::random_client();

    EXPECT_FALSE(one.same_client(two));
    EXPECT_EQ(one.sequence, 0);
}

TEST(owner_id, random_client_has_the_text_of_a_uuid) {
    EXPECT_THAT(owner_id::random_client().client_text(),
                MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
}

}  // namespace
