#include <redis/resp/reply_reader.hpp>
#include <redis/resp/value.hpp>
#include <redis/resp/word_list.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holdfast::engines::redis::test {

namespace {

using progress = reply_reader::progress;

TEST(append_command, words_are_counted_and_may_hold_any_byte) {
    std::string out = "before";
    const std::array<std::string_view, 3> words{"SET", "a\r\nb", std::string_view{"\0x", 2}};
    append_command(out, words);
    EXPECT_EQ(out, (std::string{"before*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$2\r\n"} +
                    std::string{"\0x", 2} + "\r\n"));
}

TEST(append_command, an_empty_word_is_a_word) {
    std::string out;
    const std::array<std::string_view, 2> words{"ECHO", ""};
    append_command(out, words);
    EXPECT_EQ(out, "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n");
}

TEST(word_list, texts_and_numbers_are_words_in_the_servers_notation) {
    word_list words;
    words.add("SET", std::string_view{"\0\r", 2});
    words.add(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max(), 0);
    words.add("");
    EXPECT_EQ(words.size(), 6U);
    const std::string bytes{"\0\r", 2};
    EXPECT_EQ(words.text(), "$3\r\nSET\r\n$2\r\n" + bytes +
                                "\r\n$20\r\n-9223372036854775808\r\n$20\r\n18446744073709551615\r\n"
                                "$1\r\n0\r\n$0\r\n\r\n");
}

TEST(word_list, a_word_may_be_longer_than_all_that_is_usual) {
    const std::string name(100'000, 'x');
    word_list words;
    words.add("a", name, "b");
    EXPECT_EQ(words.text(), "$1\r\na\r\n$100000\r\n" + name + "\r\n$1\r\nb\r\n");
}

TEST(value, the_first_word_of_an_error_is_its_code) {
    EXPECT_EQ((value{.type = value::kind::error, .text = "MOVED 1 h:1", .items = {}}.error_code()),
              "MOVED");
    EXPECT_EQ((value{.type = value::kind::error, .text = "OOM", .items = {}}.error_code()), "OOM");
    EXPECT_EQ((value{.type = value::kind::text, .text = "MOVED 1", .items = {}}.error_code()), "");
}

TEST(reply_reader, every_kind_of_answer_is_understood) {
    reply_reader reader;
    reader.feed("+OK\r\n:-7\r\n$-1\r\n*-1\r\n-ERR no\r\n*2\r\n$1\r\na\r\n*1\r\n:2\r\n$0\r\n\r\n");
    std::vector<value> all;
    value each;
    while (reader.next(each) == progress::complete) {
        all.push_back(std::exchange(each, {}));
    }
    ASSERT_EQ(all.size(), 7U);
    EXPECT_EQ(all[0].type, value::kind::text);
    EXPECT_EQ(all[0].text, "OK");
    EXPECT_EQ(all[1].integer, -7);
    EXPECT_EQ(all[2].type, value::kind::nil);
    EXPECT_EQ(all[3].type, value::kind::nil);
    EXPECT_TRUE(all[4].is_error());
    ASSERT_EQ(all[5].items.size(), 2U);
    EXPECT_EQ(all[5].items[0].text, "a");
    EXPECT_EQ(all[5].items[1].items.at(0).integer, 2);
    EXPECT_EQ(all[6].type, value::kind::text);
    EXPECT_EQ(all[6].text, "");
}

TEST(reply_reader, an_answer_in_pieces_is_complete_with_its_last_byte) {
    reply_reader reader;
    value got;
    const std::string bytes = "*2\r\n$3\r\nabc\r\n:12\r\n";
    for (const char byte : bytes.substr(0, bytes.size() - 1)) {
        reader.feed({&byte, 1});
        ASSERT_EQ(reader.next(got), progress::incomplete);
    }
    reader.feed("\n");
    ASSERT_EQ(reader.next(got), progress::complete);
    EXPECT_EQ(got.items.at(0).text, "abc");
    EXPECT_EQ(got.items.at(1).integer, 12);
}

TEST(reply_reader, a_list_may_be_longer_than_expected_and_hold_lists_that_are) {
    constexpr int count = 1000;
    std::string bytes = "*" + std::to_string(count) + "\r\n";
    for (int i = 0; i < count; ++i) {
        bytes += "*2\r\n:" + std::to_string(i) + "\r\n*1\r\n-ERR " + std::to_string(i) + "\r\n";
    }
    reply_reader reader;
    value got;
    for (const char byte : bytes) {
        ASSERT_EQ(reader.next(got), progress::incomplete);
        reader.feed({&byte, 1});
    }
    ASSERT_EQ(reader.next(got), progress::complete);
    ASSERT_EQ(got.items.size(), std::size_t{count});
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(got.items[i].items.at(0).integer, static_cast<std::int64_t>(i));
        ASSERT_EQ(got.items[i].items.at(1).items.at(0).text, "ERR " + std::to_string(i));
    }
}

TEST(reply_reader, a_list_that_is_announced_is_not_paid_for_before_it_comes) {
    reply_reader reader;
    value got;
    reader.feed("*2147483647\r\n:1\r\n");
    EXPECT_EQ(reader.next(got), progress::incomplete);
}

TEST(reply_reader, one_answer_leaves_nothing_behind_for_the_next) {
    reply_reader reader;
    reader.feed("*1\r\n$1\r\na\r\n*0\r\n$-1\r\n");
    value got;
    ASSERT_EQ(reader.next(got), progress::complete);
    ASSERT_EQ(reader.next(got), progress::complete);
    EXPECT_EQ(got.type, value::kind::array);
    EXPECT_TRUE(got.items.empty());
    ASSERT_EQ(reader.next(got), progress::complete);
    EXPECT_EQ(got.type, value::kind::nil);
    EXPECT_EQ(got.text, "");
}

TEST(reply_reader, what_is_not_the_protocol_is_broken_and_says_why) {
    reply_reader reader;
    value got;
    reader.feed("HTTP/1.1 200 OK\r\n");
    EXPECT_EQ(reader.next(got), progress::broken);
    EXPECT_NE(reader.problem(), "");
}

}  // namespace

}  // namespace holdfast::engines::redis::test
