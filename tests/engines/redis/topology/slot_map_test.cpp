#include <gtest/gtest.h>

#include <engines/redis/topology/replies.hpp>
#include <redis/topology/slot_map.hpp>

namespace holdfast::engines::redis {
namespace {

const node_address here = at("10.0.0.9", 7000);

value server(std::string host, std::int64_t port) {
    return list({text(std::move(host)), number(port), text("id"), list({})});
}

TEST(redis_slot_map, every_slot_of_a_range_belongs_to_its_master) {
    const auto map =
        slot_map::read(list({list({number(0), number(99), server("10.0.0.1", 7001)}),
                             list({number(100), number(16383), server("10.0.0.2", 7002)})}),
                       here);
    ASSERT_TRUE(map);
    EXPECT_EQ(*map->owner(0), at("10.0.0.1", 7001));
    EXPECT_EQ(*map->owner(99), at("10.0.0.1", 7001));
    EXPECT_EQ(*map->owner(100), at("10.0.0.2", 7002));
    EXPECT_EQ(*map->owner(16383), at("10.0.0.2", 7002));
    EXPECT_EQ(map->masters().size(), 2U);
}

TEST(redis_slot_map, slots_that_nobody_has_have_no_owner) {
    const auto map =
        slot_map::read(list({list({number(5), number(6), server("10.0.0.1", 7001)})}), here);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->owner(4), nullptr);
    EXPECT_NE(map->owner(5), nullptr);
    EXPECT_EQ(map->owner(7), nullptr);
}

TEST(redis_slot_map, a_server_without_an_address_is_the_one_that_was_asked) {
    auto unnamed = server("", 7001);
    auto hidden = server("", 7002);
    hidden.items[0] = value{};  // nil
    const auto map = slot_map::read(
        list({list({number(0), number(0), unnamed}), list({number(1), number(1), hidden})}), here);
    ASSERT_TRUE(map);
    EXPECT_EQ(*map->owner(0), at("10.0.0.9", 7001));
    EXPECT_EQ(*map->owner(1), at("10.0.0.9", 7002));
}

TEST(redis_slot_map, a_server_without_the_name_it_should_have_is_found_by_its_ip) {
    const auto nameless =
        list({text("?"), number(7001), text("id"), list({text("ip"), text("10.0.0.1")})});
    const auto map = slot_map::read(
        list({list({number(0), number(0), nameless}), list({number(1), number(1), server("?", 7002)})}),
        here);
    ASSERT_TRUE(map);
    EXPECT_EQ(*map->owner(0), at("10.0.0.1", 7001));
    EXPECT_EQ(map->owner(1), nullptr);
}

TEST(redis_slot_map, names_and_ipv6_addresses_are_taken_as_they_are) {
    const auto map = slot_map::read(list({list({number(0), number(0), server("a.example", 7001)}),
                                          list({number(1), number(1), server("fe80::1", 7002)})}),
                                    here);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->owner(0)->text(), "a.example:7001");
    EXPECT_EQ(map->owner(1)->text(), "[fe80::1]:7002");
}

TEST(redis_slot_map, replicas_are_counted_for_their_master) {
    const auto map = slot_map::read(
        list({list({number(0), number(1), server("10.0.0.1", 1), server("10.0.0.3", 3)}),
              list({number(2), number(3), server("10.0.0.2", 2)}),
              list({number(4), number(5), server("10.0.0.1", 1), server("10.0.0.3", 3)})}),
        here);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->replicas_of(at("10.0.0.1", 1)), 1U);
    EXPECT_EQ(map->replicas_of(at("10.0.0.2", 2)), 0U);
    EXPECT_EQ(map->replicas(), std::vector{at("10.0.0.3", 3)});
}

TEST(redis_slot_map, one_slot_can_get_another_owner) {
    auto map = slot_map::read(list({list({number(0), number(9), server("10.0.0.1", 1)})}), here);
    ASSERT_TRUE(map);
    map->set_owner(3, at("10.0.0.2", 2));
    EXPECT_EQ(*map->owner(2), at("10.0.0.1", 1));
    EXPECT_EQ(*map->owner(3), at("10.0.0.2", 2));
    EXPECT_TRUE(map->is_master(at("10.0.0.2", 2)));
}

TEST(redis_slot_map, there_is_one_slot_for_each_master_that_has_any) {
    auto map = slot_map::read(list({list({number(0), number(0), server("10.0.0.1", 1)}),
                                    list({number(1), number(9), server("10.0.0.2", 2)})}),
                              here);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->a_slot_of_each(), (std::vector<std::uint16_t>{0, 1}));
    map->set_owner(0, at("10.0.0.2", 2));
    EXPECT_EQ(map->a_slot_of_each(), (std::vector<std::uint16_t>{0}));
}

TEST(redis_slot_map, answers_that_make_no_sense_are_refused) {
    const auto good = server("10.0.0.1", 1);
    EXPECT_FALSE(slot_map::read(error("ERR no"), here));
    EXPECT_FALSE(slot_map::read(list({text("0")}), here));
    EXPECT_FALSE(slot_map::read(list({list({number(0), number(16384), good})}), here));
    EXPECT_FALSE(slot_map::read(list({list({number(-1), number(1), good})}), here));
    EXPECT_FALSE(slot_map::read(list({list({number(2), number(1), good})}), here));
    EXPECT_FALSE(slot_map::read(list({list({number(0), number(1)})}), here));
}

TEST(redis_slot_map, a_port_that_is_none_leaves_the_slots_without_an_owner) {
    const auto map =
        slot_map::read(list({list({number(0), number(1), server("10.0.0.1", 70000)})}), here);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->owner(0), nullptr);
    EXPECT_TRUE(map->empty());
}

}  // namespace
}  // namespace holdfast::engines::redis
