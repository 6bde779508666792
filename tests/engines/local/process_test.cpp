#include <local/database.hpp>
#include <local/process.hpp>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using local::liveness_of;
using local::parse_process_status;
using local::process_ref;
using local::this_process;

std::string stat_line(char state, int threads) {
    return std::string{"42 (a ) b) "} + state + " 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " +
           std::to_string(threads) + " 0 98765 1 2 3";
}

TEST(local_process, the_start_time_is_found_behind_any_program_name) {
    EXPECT_EQ(parse_process_status(stat_line('S', 1)).value().start_time, 98765U);
    EXPECT_FALSE(parse_process_status("nonsense"));
    EXPECT_FALSE(parse_process_status("1 (x) S 2 3"));
}

TEST(local_process, a_zombie_has_ended_but_a_process_that_lost_its_first_thread_has_not) {
    EXPECT_TRUE(parse_process_status(stat_line('Z', 1)).value().zombie);
    EXPECT_FALSE(parse_process_status(stat_line('Z', 3)).value().zombie);
}

TEST(local_process, this_process_is_alive) {
    EXPECT_EQ(liveness_of(this_process(), this_process()), liveness::alive);
}

TEST(local_process, another_process_with_the_same_number_is_not_the_one) {
    process_ref earlier = this_process();
    ++earlier.start_time;
    EXPECT_EQ(liveness_of(earlier, this_process()), liveness::dead);
}

TEST(local_process, nothing_is_known_of_other_pid_namespaces) {
    process_ref elsewhere = this_process();
    ++elsewhere.pid_namespace;
    EXPECT_EQ(liveness_of(elsewhere, this_process()), liveness::unknown);
}

TEST(local_process, a_killed_process_is_dead_as_a_zombie_and_after) {
    other_process child{[](const other_process::line& line) { static_cast<void>(line.hear()); }};
    process_ref process = this_process();
    process.pid = child.pid();
    child.signal(SIGKILL);
    ::siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(liveness_of(process, this_process()), liveness::dead);
    child.kill();
    EXPECT_EQ(liveness_of(process, this_process()), liveness::dead);
}

TEST(local_process, the_boot_has_a_name) {
    EXPECT_EQ(local::this_time_base().boot.size(), 36U);
}

TEST(local_process, without_the_whole_of_proc_there_is_no_time_base) {
    const temporary_directory empty;
    try {
        static_cast<void>(local::this_time_base(empty.path()));
        FAIL() << "it was made up";
    } catch (const local::database_error& refused) {
        EXPECT_EQ(refused.reason().code, errc::bad_configuration);
        EXPECT_NE(refused.reason().detail.find("ProcSubset=all"), std::string::npos);
    }
}

TEST(local_process, the_offset_of_the_boot_clock_is_found_among_the_others) {
    EXPECT_EQ(local::parse_boottime_offset("monotonic  7 0\nboottime  -100  500000000\n").value(),
              -99'500ms);
    EXPECT_FALSE(local::parse_boottime_offset("monotonic 7 0\n"));
    EXPECT_FALSE(local::parse_boottime_offset(""));
}

TEST(local_process, a_shifted_clock_makes_another_time_base_of_the_same_boot) {
    const local::time_base host{"id", 0ns};
    const local::time_base shifted{"id", 5ns};
    EXPECT_EQ(host.text(), "id");
    EXPECT_EQ(shifted.text(), "id 5");
}

}  // namespace

}  // namespace holdfast::engines::test
