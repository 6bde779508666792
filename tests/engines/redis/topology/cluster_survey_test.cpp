#include <gtest/gtest.h>

#include <engines/redis/topology/replies.hpp>
#include <redis/topology/cluster_survey.hpp>

namespace holdfast::engines::redis {
namespace {

const node_address asked = at("10.0.0.9", 7000);
const value map = list({list({number(0), number(16383), list({text("10.0.0.1"), number(7001)})})});
const value well = text("cluster_state:ok\r\ncluster_current_epoch:17\r\ncluster_my_epoch:3\r\n");

TEST(redis_cluster_survey, map_state_epoch_and_kind_of_channels_are_read) {
    const auto survey = read_survey({map, well, list({})}, asked);
    EXPECT_FALSE(survey.error) << survey.error.detail;
    EXPECT_EQ(*survey.map.owner(0), at("10.0.0.1", 7001));
    EXPECT_EQ(survey.epoch, 17U);
    EXPECT_TRUE(survey.well);
    EXPECT_TRUE(survey.sharded);
}

TEST(redis_cluster_survey, a_cluster_that_is_down_says_so) {
    EXPECT_FALSE(read_survey({map, text("cluster_state:fail\r\n"), list({})}, asked).well);
}

TEST(redis_cluster_survey, a_server_without_sharded_channels_refuses_the_question) {
    EXPECT_FALSE(read_survey({map, well, error("ERR Unknown subcommand")}, asked).sharded);
}

TEST(redis_cluster_survey, those_who_may_not_ask_for_the_state_get_along) {
    const auto survey = read_survey({map, error("NOPERM no"), list({})}, asked);
    EXPECT_FALSE(survey.error);
    EXPECT_TRUE(survey.well);
}

TEST(redis_cluster_survey, a_server_that_stands_alone_is_a_wrong_address) {
    const auto no = error("ERR This instance has cluster support disabled");
    const auto survey = read_survey({no, no, list({})}, asked);
    EXPECT_EQ(survey.error.code, errc::bad_configuration);
    EXPECT_NE(survey.error.detail.find("not part of a cluster; use redis://10.0.0.9:7000"),
              std::string::npos);
}

TEST(redis_cluster_survey, a_cluster_without_slots_is_unavailable) {
    EXPECT_EQ(read_survey({list({}), well, list({})}, asked).error.code, errc::store_unavailable);
}

TEST(redis_cluster_survey, too_few_answers_make_no_sense) {
    EXPECT_EQ(read_survey({map}, asked).error.code, errc::store_error);
}

}  // namespace
}  // namespace holdfast::engines::redis
