#include "stage.hpp"

#include <algorithm>
#include <numeric>

/// Processes of both sides want one lock all the time, and share it.
namespace holdfast::interop {

namespace {

class share_interop : public interop_stage {
protected:
    struct tally {
        long times{};
        std::chrono::milliseconds longest{};
    };

    /// What each process had: those of C++ first, then the one of Java, `each` with so many threads.
    [[nodiscard]] std::vector<tally> share(std::size_t cpp_processes, int cpp_threads,
                                           int java_threads) {
        const auto hold = std::to_string(hold_.count());
        const auto span = std::to_string(span_.count());
        std::vector<std::unique_ptr<child_process>> processes;
        for (std::size_t index = 0; index < cpp_processes; ++index) {
            processes.push_back(std::make_unique<child_process>(std::vector<std::string>{
                HOLDFAST_INTEROP_SHARER, store_, name_, std::to_string(cpp_threads), hold, span}));
            EXPECT_EQ(processes.back()->read_line_within(patience), "ready");
        }
        // A lock like any other makes Java load what it needs.
        machine().ask(own("sharer0"), about(name_ + "-first", "share plain", 0, 100));
        std::vector<std::future<std::string>> in_java;
        for (int index = 0; index < java_threads; ++index) {
            in_java.push_back(java_begins("sharer" + std::to_string(index), "share plain", hold, span));
        }
        for (const auto& process : processes) {
            process->write_line("go");
        }
        std::vector<tally> all;
        for (const auto& process : processes) {
            all.push_back(read(process->read_line_within(patience)));
        }
        tally java;
        for (auto& thread : in_java) {
            EXPECT_TRUE(gets_done(thread, patience));
            const auto one = read(thread.get());
            java.times += one.times;
            java.longest = std::max(java.longest, one.longest);
        }
        all.push_back(java);
        return all;
    }
    /// Everybody has at least half of an even share.
    static void expect_fair(const std::vector<tally>& all) {
        const auto sum = std::accumulate(all.begin(), all.end(), 0L, [](long before, const tally& one) {
            return before + one.times;
        });
        for (std::size_t index = 0; index < all.size(); ++index) {
            EXPECT_GE(2 * all[index].times * static_cast<long>(all.size()), sum)
                << (index + 1 == all.size() ? "Java" : "C++") << " had " << all[index].times << " of "
                << sum;
            EXPECT_LE(all[index].longest, longest_wait);
        }
    }

    static constexpr std::chrono::seconds longest_wait{2};
    const std::chrono::milliseconds hold_{5};
    const std::chrono::milliseconds span_{3000};

private:
    [[nodiscard]] static tally read(const std::string& line) {
        std::istringstream words{line};
        tally seen;
        long longest{};
        words >> seen.times >> longest;
        seen.longest = std::chrono::milliseconds{longest};
        return seen;
    }
};

TEST_P(share_interop, one_java_thread_beside_two_cpp_processes) {
    expect_fair(share(2, 1, 1));
}

TEST_P(share_interop, one_java_thread_beside_cpp_processes_of_many_threads) {
    expect_fair(share(3, 4, 1));
}

/// Threads of one process share its share.
TEST_P(share_interop, many_java_threads_beside_one_cpp_thread) {
    const auto all = share(1, 1, 20);
    EXPECT_GE(4 * all[0].times, all[0].times + all[1].times);
    EXPECT_GE(4 * all[1].times, all[0].times + all[1].times);
}

/// Messages go another way there.
class share_interop_cluster : public share_interop {
protected:
    [[nodiscard]] environment make_environment() const override { return cluster_of_three(); }
};

TEST_P(share_interop_cluster, one_java_thread_beside_two_cpp_processes) {
    expect_fair(share(2, 1, 1));
}

HOLDFAST_WITH_EVERY_REDISSON(share_interop);
INSTANTIATE_TEST_SUITE_P(redisson_4, share_interop_cluster, ::testing::Values("redisson-4"));

}  // namespace

}  // namespace holdfast::interop
