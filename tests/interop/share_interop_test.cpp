#include "stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>

/// Processes of both sides want one lock all the time, and share it.
///
/// With `HOLDFAST_SHARE_SECONDS=30` in the environment each run lasts so long, and says what everybody
/// had.
namespace holdfast::interop {

namespace {

class share_interop : public interop_stage {
protected:
    static void TearDownTestSuite() {
        other_machines_.clear();
        interop_stage::TearDownTestSuite();
    }

    /// How many processes of each side, and how many threads each of them has.
    struct crew {
        std::size_t processes{};
        int threads{1};
    };
    struct tally {
        std::string process;
        long times{};
        std::chrono::milliseconds longest{};
    };

    /// What each process had of `in_java`, Redisson's object, which is `in_cpp` here.
    [[nodiscard]] std::vector<tally> share(const crew& cpp, const crew& java,
                                           const std::string& in_java = "plain",
                                           const std::string& in_cpp = "plain") {
        const auto hold = std::to_string(hold_.count());
        const auto span = std::to_string(span_.count());
        std::vector<std::unique_ptr<child_process>> processes;
        for (std::size_t index = 0; index < cpp.processes; ++index) {
            processes.push_back(std::make_unique<child_process>(
                std::vector<std::string>{HOLDFAST_INTEROP_SHARER, store_, in_cpp, name_,
                                         std::to_string(cpp.threads), hold, span}));
            EXPECT_EQ(processes.back()->read_line_within(patience), "ready");
        }
        const auto machines = make_machines(java.processes, in_java);
        std::vector<std::vector<std::future<std::string>>> java_threads(machines.size());
        for (int thread = 0; thread < java.threads; ++thread) {
            for (std::size_t index = 0; index < machines.size(); ++index) {
                java_threads[index].push_back(
                    machines[index]->send(own("sharer" + std::to_string(thread)),
                                          about(name_, "share " + in_java, hold, span)));
            }
        }
        for (const auto& process : processes) {
            process->write_line("go");
        }
        std::vector<tally> all;
        for (const auto& process : processes) {
            all.push_back(read("C++", process->read_line_within(span_ + patience)));
        }
        for (auto& threads : java_threads) {
            tally sum{.process = "Java"};
            for (auto& thread : threads) {
                EXPECT_TRUE(gets_done(thread, span_ + patience));
                const auto one = read("Java", thread.get());
                sum.times += one.times;
                sum.longest = std::max(sum.longest, one.longest);
            }
            all.push_back(sum);
        }
        tell(all, in_java);
        return all;
    }
    /// Everybody has at least half of an even share. Java's processes share theirs among themselves:
    /// which of them is the first to ask is for Redisson and the machine to say.
    static void expect_fair(const std::vector<tally>& all) {
        const auto processes = static_cast<long>(all.size());
        const auto sum = sum_of(all);
        tally java{.process = "Java"};
        long java_processes = 0;
        for (const auto& one : all) {
            if (one.process == "Java") {
                ++java_processes;
                java.times += one.times;
                java.longest = std::max(java.longest, one.longest);
            } else {
                EXPECT_GE(2 * one.times * processes, sum)
                    << one.process << " had " << one.times << " of " << sum;
                EXPECT_LE(one.longest, longest_wait) << one.process;
            }
        }
        EXPECT_GE(2 * java.times * processes, sum * java_processes)
            << "Java had " << java.times << " of " << sum;
        if (java_processes == 1) {
            EXPECT_LE(java.longest, longest_wait) << "Java";
        }
    }
    [[nodiscard]] static long sum_of(const std::vector<tally>& all) {
        return std::accumulate(all.begin(), all.end(), 0L,
                               [](long before, const tally& one) { return before + one.times; });
    }

    static constexpr std::chrono::seconds longest_wait{2};

private:
    /// So many JVMs, which have loaded what they need for this object.
    [[nodiscard]] std::vector<java_driver*> make_machines(std::size_t count,
                                                          const std::string& object) {
        while (other_machines_.size() + 1 < count) {
            other_machines_.push_back(another_machine());
        }
        std::vector<java_driver*> machines{&machine()};
        for (std::size_t index = 1; index < count; ++index) {
            machines.push_back(other_machines_[index - 1].get());
        }
        machines.resize(count);
        for (auto* const one : machines) {
            const auto first = name_ + "-first";
            if (object == "permits" || object == "semaphore") {
                one->ask(own("sharer0"), about(first, object + " set", 1));
            }
            one->ask(own("sharer0"), about(first, "share " + object, 0, 100));
        }
        return machines;
    }
    void tell(const std::vector<tally>& all, const std::string& object) const {
        if (!long_run()) {
            return;
        }
        std::cout << object << ", " << span_.count() << " ms:";
        for (const auto& one : all) {
            std::cout << "  " << one.process << ' ' << one.times << " (" << one.longest.count()
                      << " ms)";
        }
        std::cout << std::endl;
    }
    [[nodiscard]] static const char* long_run() { return std::getenv("HOLDFAST_SHARE_SECONDS"); }
    [[nodiscard]] static tally read(const std::string& process, const std::string& line) {
        std::istringstream words{line};
        tally seen{.process = process};
        long longest{};
        words >> seen.times >> longest;
        seen.longest = std::chrono::milliseconds{longest};
        return seen;
    }

    static std::vector<std::unique_ptr<java_driver>> other_machines_;
    const std::chrono::milliseconds hold_{5};
    const std::chrono::milliseconds span_{long_run() ? std::stol(long_run()) * 1000 : 2500};
};

std::vector<std::unique_ptr<java_driver>> share_interop::other_machines_;

TEST_P(share_interop, one_java_thread_beside_two_cpp_processes) {
    expect_fair(share({.processes = 2}, {.processes = 1}));
}

TEST_P(share_interop, three_java_processes_beside_two_cpp_processes) {
    expect_fair(share({.processes = 2}, {.processes = 3}));
}

TEST_P(share_interop, one_java_thread_beside_cpp_processes_of_many_threads) {
    expect_fair(share({.processes = 3, .threads = 4}, {.processes = 1}));
}

/// Threads of one process share its share.
TEST_P(share_interop, many_java_threads_beside_one_cpp_thread) {
    const auto all = share({.processes = 1}, {.processes = 1, .threads = 20});
    EXPECT_GE(4 * all[0].times, sum_of(all));
    EXPECT_GE(4 * all[1].times, sum_of(all));
}

TEST_P(share_interop, fair_locks) {
    expect_fair(share({.processes = 2}, {.processes = 3}, "fair", "fair"));
}

TEST_P(share_interop, writers) {
    expect_fair(share({.processes = 2}, {.processes = 3}, "write", "write"));
}

TEST_P(share_interop, permits_that_expire) {
    java("setter", "permits set", 2);
    expect_fair(share({.processes = 2}, {.processes = 3}, "permits", "2"));
}

TEST_P(share_interop, permits_without_an_end) {
    java("setter", "semaphore set", 2);
    expect_fair(share({.processes = 2}, {.processes = 3}, "semaphore", "2"));
}

/// Messages go another way there.
class share_interop_cluster : public share_interop {
protected:
    [[nodiscard]] environment make_environment() const override { return cluster_of_three(); }
};

TEST_P(share_interop_cluster, one_java_thread_beside_two_cpp_processes) {
    expect_fair(share({.processes = 2}, {.processes = 1}));
}

/// Without Java.
class share_interop_alone : public share_interop {};

TEST_P(share_interop_alone, seventy_cpp_processes) {
    const auto all = share({.processes = 70}, {});
    for (const auto& one : all) {
        EXPECT_GE(3 * one.times * static_cast<long>(all.size()), sum_of(all)) << one.longest.count();
    }
}

HOLDFAST_WITH_EVERY_REDISSON(share_interop);
INSTANTIATE_TEST_SUITE_P(redisson_4, share_interop_alone, ::testing::Values("redisson-4"));
INSTANTIATE_TEST_SUITE_P(redisson_4, share_interop_cluster, ::testing::Values("redisson-4"));

}  // namespace

}  // namespace holdfast::interop
