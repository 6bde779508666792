// Hundreds of threads of one client that want permits or a share of one name. What they want is asked
// for by few of them.
#include <atomic>
#include <filesystem>
#include <functional>
#include <shared_mutex>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

constexpr int threads = 200;
/// A grant, a release, what is asked in vain after each release, and some for those who come at first:
/// 4 to 8.4 were counted, as the threads happened to run. If each thread asked for itself it would be
/// about as many as there are threads.
constexpr std::uint64_t requests_per_hold = 16;

/// Long enough for others to want the same.
void work() {
    for (int count = 0; count < 50; ++count) {
        std::this_thread::yield();
    }
}

class many_threads : public ::testing::TestWithParam<std::string> {
protected:
    many_threads() {
        std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
        directory_ = ::mkdtemp(pattern.data());
    }
    ~many_threads() override { std::filesystem::remove_all(directory_); }

    [[nodiscard]] std::string address() const {
        return GetParam() == "local" ? "local:" + directory_ : "memory:";
    }

    /// Every thread runs `work` with its number, all begin together. Counts what was thrown.
    static int run(const std::function<void(int)>& work) {
        std::atomic<int> thrown{};
        gate begin;
        {
            std::vector<std::jthread> all;
            for (int number = 0; number < threads; ++number) {
                all.emplace_back([&, number] {
                    begin.wait();
                    try {
                        work(number);
                    } catch (const std::system_error& error) {
                        ADD_FAILURE() << error.what();
                        ++thrown;
                    }
                });
            }
            begin.open();
        }
        return thrown;
    }

private:
    std::string directory_;
};

TEST_P(many_threads, have_a_few_permits_in_turn) {
    client store{address()};
    semaphore seats{store, "seats", 5};
    std::atomic<int> inside{};
    std::atomic<int> most{};
    EXPECT_EQ(run([&](int) {
                  auto seat = seats.acquire();
                  const int now = ++inside;
                  for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                  }
                  work();
                  --inside;
                  seat.release();
              }),
              0);
    EXPECT_LE(most, 5);
    EXPECT_LT(store.requests(), threads * requests_per_hold);
}

TEST_P(many_threads, read_in_turn_with_some_who_write) {
    client store{address()};
    shared_mutex table{store, "table"};
    int value = 0;
    EXPECT_EQ(run([&](int number) {
                  if (number % 20 == 0) {
                      const std::scoped_lock writing{table};
                      ++value;
                  } else {
                      const std::shared_lock reading{table};
                      work();
                  }
              }),
              0);
    EXPECT_EQ(value, threads / 20);
    EXPECT_LT(store.requests(), threads * requests_per_hold);
}

/// Those who give up must not take with them what others wait for.
TEST_P(many_threads, are_all_served_although_many_give_up) {
    client store{address()};
    semaphore seats{store, "seats", 3};
    std::atomic<int> served{};
    EXPECT_EQ(
        run([&](int number) {
            if (number % 2 == 0) {
                try {
                    static_cast<void>(seats.try_acquire_for(std::chrono::milliseconds{number / 20}));
                } catch (const std::system_error& error) {
                    // Its time was up while it asked, or before the store had answered anybody.
                    EXPECT_TRUE(error.code() == errc::outcome_unknown ||
                                error.code() == errc::store_unavailable)
                        << error.what();
                }
                return;
            }
            auto seat = seats.acquire(1U + static_cast<std::uint32_t>(number) % 3U);
            ++served;
            seat.release();
        }),
        0);
    EXPECT_EQ(served, threads / 2);
}

INSTANTIATE_TEST_SUITE_P(stores, many_threads, ::testing::Values("memory", "local"),
                         [](const auto& one) { return one.param; });

}  // namespace

}  // namespace holdfast::testing
