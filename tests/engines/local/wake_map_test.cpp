#include <local/wake_map.hpp>

#include <fstream>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using local::this_process;
using local::wake_map;

const std::uint64_t key = wake_map::key_of("stock");

TEST(wake_map, an_announcement_is_seen_through_every_mapping_of_the_file) {
    const temporary_directory base;
    wake_map one{base.path() + "/wake", this_process()};
    wake_map two{base.path() + "/wake", this_process()};
    const auto before = two.sequence(key);
    one.announce(key);
    EXPECT_EQ(two.sequence(key), before + 1);
}

TEST(wake_map, sleepers_are_disturbed_only_when_somebody_waits_for_the_name) {
    const temporary_directory base;
    wake_map map{base.path() + "/wake", this_process()};
    const auto before = map.word();
    map.announce(key);
    EXPECT_EQ(map.word(), before);
    const auto place = map.add_waiter(key);
    map.announce(key);
    EXPECT_NE(map.word(), before);
    map.remove_waiter(place);
}

TEST(wake_map, waiters_are_counted_by_name_and_by_whose_they_are) {
    const temporary_directory base;
    wake_map one{base.path() + "/wake", this_process()};
    wake_map two{base.path() + "/wake", this_process()};
    static_cast<void>(one.add_waiter(key));
    static_cast<void>(two.add_waiter(key));
    static_cast<void>(two.add_waiter(wake_map::key_of("other")));
    EXPECT_EQ(one.count_waiters(key), 2U);
    EXPECT_EQ(one.count_other_waiters(key), 1U);
}

TEST(wake_map, more_waiters_than_there_is_room_for_are_still_woken) {
    const temporary_directory base;
    wake_map map{base.path() + "/wake", this_process()};
    std::vector<std::size_t> places;
    for (int count = 0; count < 1100; ++count) {
        places.push_back(map.add_waiter(wake_map::key_of("n" + std::to_string(count))));
    }
    const auto before = map.word();
    map.announce(wake_map::key_of("n1099"));
    EXPECT_NE(map.word(), before);
    for (const std::size_t place : places) {
        map.remove_waiter(place);
    }
    const auto after = map.word();
    map.announce(wake_map::key_of("n1099"));
    EXPECT_EQ(map.word(), after);
}

TEST(wake_map, a_killed_waiter_is_forgotten) {
    const temporary_directory base;
    other_process waiter{[&](const other_process::line& line) {
        wake_map map{base.path() + "/wake", this_process()};
        static_cast<void>(map.add_waiter(key));
        line.say('r');
        static_cast<void>(line.hear());
    }};
    ASSERT_EQ(waiter.talk().hear(), 'r');
    wake_map map{base.path() + "/wake", this_process()};
    map.forget_dead_waiters();
    EXPECT_EQ(map.count_waiters(key), 1U);
    waiter.kill();
    map.forget_dead_waiters();
    EXPECT_EQ(map.count_waiters(key), 0U);
}

TEST(wake_map, the_first_to_come_after_all_others_left_starts_afresh) {
    const temporary_directory base;
    {
        wake_map left{base.path() + "/wake", this_process()};
        static_cast<void>(left.add_waiter(key));
    }
    const wake_map map{base.path() + "/wake", this_process()};
    EXPECT_EQ(map.count_waiters(key), 0U);
}

TEST(wake_map, a_symbolic_link_in_its_place_is_refused) {
    const temporary_directory base;
    std::filesystem::create_symlink(base.path() + "/elsewhere", base.path() + "/wake");
    const auto refused =
        refusal_of([&] { return std::make_unique<wake_map>(base.path() + "/wake", this_process()); });
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_FALSE(std::filesystem::exists(base.path() + "/elsewhere"));
}

}  // namespace

}  // namespace holdfast::engines::test
