#include <local/wake_map.hpp>

#include <atomic>
#include <fstream>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using local::this_process;
using local::wake_map;

const std::uint64_t key = wake_map::key_of("stock");

/// One that lets others in at once.
class open_map : public wake_map {
public:
    explicit open_map(const temporary_directory& base)
        : wake_map{base.path() + "/wake", this_process()} {
        let_others_in();
    }
};

TEST(wake_map, an_announcement_is_seen_through_every_mapping_of_the_file) {
    const temporary_directory base;
    open_map one{base};
    open_map two{base};
    const auto before = two.sequence(key);
    one.announce(key);
    EXPECT_EQ(two.sequence(key), before + 1);
}

TEST(wake_map, sleepers_are_disturbed_only_when_somebody_waits_for_the_name) {
    const temporary_directory base;
    open_map map{base};
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
    open_map one{base};
    open_map two{base};
    static_cast<void>(one.add_waiter(key));
    static_cast<void>(two.add_waiter(key));
    static_cast<void>(two.add_waiter(wake_map::key_of("other")));
    EXPECT_EQ(one.count_waiters(key), 2U);
    EXPECT_EQ(one.count_other_waiters(key), 1U);
}

TEST(wake_map, more_waiters_than_there_is_room_for_are_still_woken) {
    const temporary_directory base;
    open_map map{base};
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
        open_map map{base};
        static_cast<void>(map.add_waiter(key));
        line.say('r');
        static_cast<void>(line.hear());
    }};
    ASSERT_EQ(waiter.talk().hear(), 'r');
    open_map map{base};
    map.forget_dead_waiters();
    EXPECT_EQ(map.count_waiters(key), 1U);
    waiter.kill();
    map.forget_dead_waiters();
    EXPECT_EQ(map.count_waiters(key), 0U);
}

TEST(wake_map, the_first_to_come_after_all_others_left_starts_afresh) {
    const temporary_directory base;
    {
        open_map left{base};
        static_cast<void>(left.add_waiter(key));
    }
    const open_map map{base};
    EXPECT_EQ(map.count_waiters(key), 0U);
}

TEST(wake_map, the_first_keeps_others_out_until_it_lets_them_in) {
    const temporary_directory base;
    std::atomic<bool> open_to_others{};
    wake_map first{base.path() + "/wake", this_process()};
    auto second = std::async(std::launch::async, [&] {
        const open_map later{base};
        return open_to_others.load();
    });
    open_to_others = true;
    first.let_others_in();
    EXPECT_TRUE(second.get());
}

TEST(wake_map, those_who_have_it_open_agree_on_the_files) {
    const temporary_directory base;
    {
        open_map one{base};
        open_map two{base};
        EXPECT_EQ(one.files(), 0U);
        EXPECT_TRUE(one.agree_on_files(7));
        EXPECT_TRUE(two.agree_on_files(7));
        EXPECT_FALSE(two.agree_on_files(8));
        EXPECT_EQ(two.files(), 7U);
    }
    const open_map later{base};
    EXPECT_EQ(later.files(), 0U);
}

/// Everything that a client does with it.
void use(wake_map& map) {
    const auto place = map.add_waiter(key);
    map.announce(key);
    map.announce_revocation();
    map.forget_dead_waiters();
    static_cast<void>(map.count_waiters(key) + map.count_other_waiters(key) + map.sequence(key));
    static_cast<void>(map.word() + map.revocations() + map.files());
    map.remove_waiter(place);
    map.wake_sleepers();
}

TEST(wake_map, whatever_another_program_writes_to_the_file_nobody_crashes) {
    const temporary_directory base;
    open_map map{base};
    const auto size = std::filesystem::file_size(base.path() + "/wake");
    for (const char byte : {'\xFF', '\x7F', '\x01', '\x00'}) {
        std::fstream{base.path() + "/wake"} << std::string(size, byte) << std::flush;
        use(map);
    }
}

TEST(wake_map, a_file_that_was_cut_short_is_made_whole_and_waiters_are_still_woken) {
    const temporary_directory base;
    open_map map{base};
    const auto size = std::filesystem::file_size(base.path() + "/wake");
    for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{100}, size / 2}) {
        const auto place = map.add_waiter(key);
        std::filesystem::resize_file(base.path() + "/wake", left);
        use(map);
        EXPECT_EQ(std::filesystem::file_size(base.path() + "/wake"), size);
        const auto before = map.word();
        map.announce(key);
        EXPECT_NE(map.word(), before);
        map.remove_waiter(place);
    }
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
