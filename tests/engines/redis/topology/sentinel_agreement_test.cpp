#include <gtest/gtest.h>

#include <engines/redis/topology/replies.hpp>
#include <redis/topology/sentinel_agreement.hpp>

namespace holdfast::engines::redis {
namespace {

using std::chrono::seconds;
using views = std::vector<std::optional<sentinel_view>>;

const node_address old_master = at("10.0.0.1", 1);
const node_address new_master = at("10.0.0.2", 2);
const clock::time_point start{seconds{1000}};
constexpr auto there = master_choice::presence::there;
constexpr auto gone = master_choice::presence::gone;
constexpr auto patience = master_choice::default_patience;

TEST(redis_sentinel_agreement, without_any_answer_there_is_no_master) {
    EXPECT_FALSE(newest_view(views{std::nullopt, std::nullopt}));
    EXPECT_FALSE(newest_view(views{}));
}

TEST(redis_sentinel_agreement, the_newest_configuration_outweighs_a_majority) {
    EXPECT_EQ(newest_view(views{{{old_master, 1}}, {{old_master, 1}}, {{new_master, 2}}})->master,
              new_master);
    EXPECT_EQ(newest_view(views{{{new_master, 2}}, {{old_master, 1}}, {{old_master, 1}}})->master,
              new_master);
}

TEST(redis_sentinel_agreement, among_equal_numbers_most_voices_count) {
    EXPECT_EQ(newest_view(views{{{old_master, 0}}, {{new_master, 0}}, {{new_master, 0}}})->master,
              new_master);
    EXPECT_EQ(newest_view(views{{{new_master, 0}}, {{old_master, 0}}, {{new_master, 0}}})->master,
              new_master);
}

TEST(redis_sentinel_agreement, among_equals_the_first_counts) {
    EXPECT_EQ(newest_view(views{std::nullopt, {{old_master, 0}}, {{new_master, 0}}})->master,
              old_master);
}

TEST(redis_sentinel_agreement, the_first_master_is_a_change) {
    master_choice choice;
    EXPECT_FALSE(choice.current());
    EXPECT_TRUE(choice.consider(views{{{old_master, 1}}}, there, start));
    EXPECT_EQ(choice.current()->master, old_master);
    EXPECT_FALSE(choice.consider(views{{{old_master, 1}}}, there, start));
}

TEST(redis_sentinel_agreement, a_higher_number_for_the_same_master_changes_nothing) {
    master_choice choice;
    EXPECT_TRUE(choice.consider(views{{{old_master, 1}}}, there, start));
    EXPECT_FALSE(choice.consider(views{{{old_master, 2}}}, there, start));
    EXPECT_EQ(choice.current()->epoch, 2U);
}

TEST(redis_sentinel_agreement, the_one_that_knew_better_is_not_forgotten_at_once) {
    master_choice choice;
    EXPECT_TRUE(choice.consider(views{{{new_master, 2}}, {{old_master, 1}}}, there, start));
    EXPECT_FALSE(choice.consider(views{std::nullopt, {{old_master, 1}}}, there, start + seconds{1}));
    EXPECT_EQ(choice.current()->master, new_master);
}

TEST(redis_sentinel_agreement, sentinels_that_count_from_zero_again_are_believed_after_a_while) {
    master_choice choice;
    EXPECT_TRUE(choice.consider(views{{{old_master, 7}}}, there, start));
    EXPECT_FALSE(choice.consider(views{{{new_master, 0}}}, there, start + seconds{60}));
    EXPECT_TRUE(choice.consider(views{{{new_master, 0}}}, there, start + seconds{60} + patience));
    EXPECT_EQ(choice.current()->master, new_master);
}

TEST(redis_sentinel_agreement, one_that_missed_a_failover_is_not_believed_because_it_is_back_first) {
    master_choice choice;
    EXPECT_TRUE(choice.consider(views{{{new_master, 2}}, {{old_master, 1}}}, there, start));
    EXPECT_FALSE(choice.consider(views{std::nullopt, std::nullopt}, there, start + seconds{1}));
    EXPECT_FALSE(choice.consider(views{std::nullopt, {{old_master, 1}}}, there, start + seconds{60}));
    EXPECT_FALSE(
        choice.consider(views{{{new_master, 2}}, {{old_master, 1}}}, there, start + seconds{61}));
    EXPECT_FALSE(choice.consider(views{std::nullopt, {{old_master, 1}}}, there, start + seconds{66}));
    EXPECT_EQ(choice.current()->master, new_master);
}

TEST(redis_sentinel_agreement, a_minority_does_not_lead_back_while_the_newer_master_is_there) {
    master_choice choice;
    const views all{{{new_master, 2}}, {{new_master, 2}}, {{old_master, 1}}};
    EXPECT_TRUE(choice.consider(all, there, start));
    const views left{std::nullopt, std::nullopt, {{old_master, 1}}};
    for (int second = 1; second < 100; ++second) {
        EXPECT_FALSE(choice.consider(left, there, start + seconds{second}));
    }
    const views half{std::nullopt, std::nullopt, {{old_master, 1}}, {{old_master, 1}}};
    EXPECT_FALSE(choice.consider(half, there, start + seconds{100}));
    EXPECT_FALSE(choice.consider(half, there, start + seconds{200}));
    EXPECT_EQ(choice.current()->master, new_master);
}

TEST(redis_sentinel_agreement, a_minority_is_believed_when_the_newer_master_has_been_gone_for_a_while) {
    master_choice choice;
    const views left{std::nullopt, std::nullopt, {{old_master, 1}}};
    EXPECT_TRUE(choice.consider(views{{{new_master, 2}}, std::nullopt, std::nullopt}, there, start));
    EXPECT_FALSE(choice.consider(left, gone, start + seconds{10}));
    EXPECT_FALSE(choice.consider(left, there, start + seconds{12})) << "it was back in between";
    EXPECT_FALSE(choice.consider(left, gone, start + seconds{16}));
    EXPECT_FALSE(choice.consider(left, gone, start + seconds{16} + patience - seconds{1}));
    EXPECT_TRUE(choice.consider(left, gone, start + seconds{16} + patience));
    EXPECT_EQ(choice.current()->master, old_master);
}

TEST(redis_sentinel_agreement, a_majority_is_believed_although_the_newer_master_is_there) {
    master_choice choice;
    const views left{std::nullopt, {{old_master, 1}}, {{old_master, 0}}};
    EXPECT_TRUE(choice.consider(views{{{new_master, 2}}, std::nullopt, std::nullopt}, there, start));
    EXPECT_FALSE(choice.consider(left, there, start + seconds{1}));
    EXPECT_TRUE(choice.consider(left, there, start + seconds{1} + patience));
    EXPECT_EQ(choice.current()->master, old_master);
}

TEST(redis_sentinel_agreement, when_all_are_silent_the_master_stays) {
    master_choice choice;
    EXPECT_TRUE(choice.consider(views{{{old_master, 1}}}, there, start));
    EXPECT_FALSE(choice.consider(views{std::nullopt}, there, start + seconds{100}));
    EXPECT_EQ(choice.current()->master, old_master);
}

}  // namespace
}  // namespace holdfast::engines::redis
