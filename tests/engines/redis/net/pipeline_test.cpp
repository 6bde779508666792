#include <redis/net/pipeline.hpp>

#include <deque>

#include <gtest/gtest.h>

namespace holdfast::engines::redis::test {

namespace {

using namespace std::chrono_literals;

connection::expected ping(std::string& out, const server_facts&) {
    out += "PING\r\n";
    return {1};
}

/// Requests that are collected and taken for writing. There is no socket.
class collecting : public ::testing::Test {
protected:
    void ask(int count = 1) {
        for (int i = 0; i < count; ++i) {
            auto& one = asked_.emplace_back();
            one.encode = ping;
            one.deadline = now_ + 1s;
            ASSERT_TRUE(pipeline_.append(one));
        }
    }
    [[nodiscard]] bool due(clock::duration later = {}) const { return pipeline_.due(now_ + later); }
    void write() { pipeline_.take_for_writing(bytes_, now_); }

    const clock::time_point now_ = clock::now();
    pipeline pipeline_{server_facts{}};

private:
    std::string bytes_;
    std::deque<request> asked_;
};

TEST_F(collecting, nothing_is_not_written) {
    EXPECT_FALSE(due(1h));
}

TEST_F(collecting, the_first_is_written_at_once) {
    ask();
    EXPECT_TRUE(due());
}

TEST_F(collecting, others_are_written_when_they_are_as_many_as_are_under_way) {
    ask();
    write();
    ask();
    EXPECT_TRUE(due());
    write();
    ask();
    EXPECT_FALSE(due());  // two are under way
    ask();
    EXPECT_TRUE(due());
    write();
    ask(3);
    EXPECT_FALSE(due());  // four
    ask();
    EXPECT_TRUE(due());
}

TEST_F(collecting, nobody_waits_for_company_for_long) {
    ask(5);
    write();
    ask();
    EXPECT_FALSE(due(pipeline::longest_collection - 1us));
    EXPECT_TRUE(due(pipeline::longest_collection));
}

TEST_F(collecting, whoever_gives_up_does_not_count) {
    ask(4);
    write();
    ask(3);
    request late;
    late.encode = ping;
    ASSERT_TRUE(pipeline_.append(late));
    ASSERT_TRUE(due());
    EXPECT_EQ(pipeline_.abandon(late), pipeline::reach::unsent);
    EXPECT_FALSE(due());
    ask();
    EXPECT_TRUE(due());
}

}  // namespace

}  // namespace holdfast::engines::redis::test
