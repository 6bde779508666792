#include "duration.hpp"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

[[nodiscard]] std::chrono::milliseconds understood(std::string_view text) {
    const auto parsed = parse_duration(text);
    EXPECT_EQ(parsed.problem, "") << text;
    return parsed.value;
}

[[nodiscard]] std::string problem(std::string_view text) {
    return parse_duration(text).problem;
}

TEST(duration, every_unit_is_understood) {
    EXPECT_EQ(understood("250ms"), 250ms);
    EXPECT_EQ(understood("30s"), 30s);
    EXPECT_EQ(understood("15m"), 15min);
    EXPECT_EQ(understood("2h"), 2h);
    EXPECT_EQ(understood("1d"), 24h);
}

TEST(duration, units_add_up) {
    EXPECT_EQ(understood("1h30m"), 90min);
    EXPECT_EQ(understood("1d2h3m4s5ms"), 26h + 3min + 4s + 5ms);
    EXPECT_EQ(understood("0h5s"), 5s);
}

TEST(duration, a_number_without_unit_is_refused_with_a_hint) {
    EXPECT_EQ(problem("30"), "30 what? write 30s");
    EXPECT_EQ(problem("0"), "0 what? write 30s");
}

TEST(duration, zero_is_refused) {
    EXPECT_NE(problem("0s"), "");
    EXPECT_NE(problem("0"), "");
    EXPECT_NE(problem("0h0m"), "");
}

TEST(duration, other_notations_are_refused) {
    for (const char* text : {"", " ", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "s", "ms", "5x", "5S",
                             "30s1h", "5s5s", "1hm", "1h30", "0x10s", "1e3s", "\xC3\xA4s"}) {
        EXPECT_NE(problem(text), "") << text;
    }
}

TEST(duration, what_would_overflow_is_refused) {
    EXPECT_EQ(understood("366d"), 366 * 24h);
    EXPECT_EQ(problem("367d"), "\"367d\" is too long; at most 366 days");
    EXPECT_NE(problem("366d1ms"), "");
    EXPECT_NE(problem("9223372036854775807ms"), "");
    EXPECT_NE(problem("99999999999999999999s"), "");
}

TEST(duration, is_written_as_people_write_it) {
    EXPECT_EQ(format_duration(0ms), "0s");
    EXPECT_EQ(format_duration(-5s), "0s");
    EXPECT_EQ(format_duration(250ms), "250ms");
    EXPECT_EQ(format_duration(1500ms), "1500ms");
    EXPECT_EQ(format_duration(30s), "30s");
    EXPECT_EQ(format_duration(4min + 10s + 300ms), "4m10s");
    EXPECT_EQ(format_duration(2h), "2h");
    EXPECT_EQ(format_duration(25h + 5min), "1d1h");
    EXPECT_EQ(format_duration(std::chrono::milliseconds::max()), "no end");
}

}  // namespace
}  // namespace holdfast::cli
