#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/keyed_executor.hpp>

/// Exceptions are looked at when the thread that made them has ended: the thread sanitizer does not see
/// how the standard library counts their references.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::keyed_batcher;
using holdfast::keyed_executor;

constexpr auto patience = 20s;

/// Keeps one thread of an executor busy until it is told to go on.
class plug {
public:
    explicit plug(keyed_executor& in, const std::string& key = "plug")
        : done_{in.submit(key, [this] {
              begun_.release();
              go_on_.acquire();
          })} {
        begun_.acquire();
    }
    plug(const plug&) = delete;
    plug& operator=(const plug&) = delete;
    ~plug() { pull(); }
    void pull() {
        if (done_.valid()) {
            go_on_.release();
            done_.get();
        }
    }

private:
    std::binary_semaphore begun_{0};
    std::binary_semaphore go_on_{0};
    std::future<void> done_;
};

std::error_code code_of(std::future<void>& answer) {
    try {
        answer.get();
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

template <class Call>
std::error_code code_of(const Call& call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

TEST(keyed_executor, runs_operations_of_a_key_in_order_and_one_at_a_time) {
    keyed_executor executor{{.threads = 4}};
    std::map<std::string, std::vector<int>> seen{{"a", {}}, {"b", {}}, {"c", {}}};
    std::map<std::string, std::atomic<int>> inside;
    for (const auto& [key, all] : seen) {
        inside[key] = 0;
    }
    std::atomic<bool> overlapped{false};
    for (int number = 0; number < 300; ++number) {
        for (auto& [key, all] : seen) {
            static_cast<void>(executor.submit(key, [&, number, at = &all, here = &inside[key]] {
                overlapped = overlapped || here->fetch_add(1) != 0;
                at->push_back(number);
                here->fetch_sub(1);
            }));
        }
    }
    executor.close();
    std::vector<int> in_order(300);
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_FALSE(overlapped);
    for (const auto& [key, all] : seen) {
        EXPECT_EQ(all, in_order) << key;
    }
}

TEST(keyed_executor, runs_different_keys_in_parallel) {
    keyed_executor executor{{.threads = 2}};
    std::latch both{2};
    auto one = executor.submit("a", [&] { both.arrive_and_wait(); });
    auto other = executor.submit("b", [&] { both.arrive_and_wait(); });
    ASSERT_EQ(one.wait_for(patience), std::future_status::ready);
    ASSERT_EQ(other.wait_for(patience), std::future_status::ready);
}

TEST(keyed_executor, serves_keys_in_turn) {
    keyed_executor executor{{.threads = 1}};
    std::vector<std::string> order;
    {
        const plug busy{executor};
        for (const auto* key : {"a", "a", "a", "b"}) {
            static_cast<void>(executor.submit(key, [&order, key] { order.emplace_back(key); }));
        }
    }
    executor.close();
    EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "a", "a"}));
}

TEST(keyed_executor, results_and_exceptions_reach_the_future) {
    keyed_executor executor{{.threads = 1}};
    auto sum = executor.submit("a", [] { return 40 + 2; });
    auto wrong = executor.submit("a", []() -> int { throw std::out_of_range{"no such stock"}; });
    auto after = executor.submit("a", [] { return std::string{"still running"}; });
    executor.close();
    EXPECT_EQ(sum.get(), 42);
    EXPECT_THROW(wrong.get(), std::out_of_range);
    EXPECT_EQ(after.get(), "still running");
}

TEST(keyed_executor, refuses_what_a_key_has_no_room_for) {
    keyed_executor executor{{.threads = 1, .most_per_key = 2}};
    const plug busy{executor};
    EXPECT_TRUE(executor.try_submit("a", [] {}));
    EXPECT_TRUE(executor.try_submit("a", [] {}));
    EXPECT_FALSE(executor.try_submit("a", [] {}));
    EXPECT_TRUE(executor.try_submit("b", [] {}));
    EXPECT_EQ(executor.waiting(), 3U);
}

TEST(keyed_executor, refuses_what_there_is_no_room_for_at_all) {
    keyed_executor executor{{.threads = 1, .most_in_all = 2}};
    const plug busy{executor};
    EXPECT_TRUE(executor.try_submit("a", [] {}));
    EXPECT_TRUE(executor.try_submit("b", [] {}));
    EXPECT_FALSE(executor.try_submit("c", [] {}));
}

TEST(keyed_executor, submit_waits_for_room) {
    keyed_executor executor{{.threads = 1, .most_per_key = 1}};
    plug busy{executor};
    ASSERT_TRUE(executor.try_submit("a", [] {}));
    auto submitted =
        std::async(std::launch::async, [&] { return executor.submit("a", [] { return 7; }).get(); });
    EXPECT_EQ(submitted.wait_for(20ms), std::future_status::timeout);
    busy.pull();
    ASSERT_EQ(submitted.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(submitted.get(), 7);
}

TEST(keyed_executor, a_stop_ends_the_wait_for_room) {
    keyed_executor executor{{.threads = 1, .most_per_key = 1}};
    const plug busy{executor};
    ASSERT_TRUE(executor.try_submit("a", [] {}));
    std::stop_source stop;
    auto submitted = std::async(std::launch::async, [&] {
        return executor
            .submit(
                "a", [] {}, stop.get_token())
            .has_value();
    });
    stop.request_stop();
    ASSERT_EQ(submitted.wait_for(patience), std::future_status::ready);
    EXPECT_FALSE(submitted.get());
}

TEST(keyed_executor, an_operation_does_not_wait_for_room_that_it_takes_itself) {
    keyed_executor executor{{.threads = 1, .most_in_all = 1}};
    plug busy{executor};
    auto outer = executor.submit("a", [&] {
        static_cast<void>(executor.submit("b", [] {}));
        static_cast<void>(executor.submit("b", [] {}));
    });
    busy.pull();
    ASSERT_EQ(outer.wait_for(patience), std::future_status::ready);
    executor.close();
    EXPECT_EQ(code_of(outer), errc::busy);
}

TEST(keyed_executor, close_runs_what_was_accepted_and_refuses_what_comes_after) {
    keyed_executor executor{{.threads = 2}};
    std::atomic<int> done{0};
    {
        const plug busy{executor};
        for (int number = 0; number < 50; ++number) {
            static_cast<void>(executor.submit(std::to_string(number % 3), [&] { ++done; }));
        }
    }
    executor.close();
    EXPECT_EQ(done, 50);
    EXPECT_EQ(code_of([&] { static_cast<void>(executor.submit("a", [] {})); }), errc::shut_down);
    EXPECT_EQ(code_of([&] { static_cast<void>(executor.try_submit("a", [] {})); }), errc::shut_down);
}

TEST(keyed_executor, cancel_drops_what_has_not_begun_and_waits_for_what_has) {
    keyed_executor executor{{.threads = 1}};
    std::binary_semaphore begun{0};
    std::binary_semaphore go_on{0};
    auto first = executor.submit("a", [&] {
        begun.release();
        go_on.acquire();
    });
    begun.acquire();
    auto second = executor.submit("a", [] {});
    auto third = executor.submit("b", [] {});
    auto cancelled = std::async(std::launch::async, [&] { return executor.cancel(); });
    EXPECT_EQ(second.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(third.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(cancelled.wait_for(0s), std::future_status::timeout);
    go_on.release();
    EXPECT_EQ(cancelled.get(), 2U);
    EXPECT_EQ(code_of(second), errc::cancelled);
    EXPECT_EQ(code_of(third), errc::cancelled);
    EXPECT_EQ(code_of(first), std::error_code{});
}

TEST(keyed_batcher, a_limit_of_zero_is_named_with_the_class) {
    try {
        keyed_batcher<int, int>{{}, 0, [](const std::string&, std::span<int> all) {
                                    return std::vector<int>(all.begin(), all.end());
                                }};
        ADD_FAILURE() << "it was not refused";
    } catch (const std::system_error& error) {
        EXPECT_EQ(std::string{error.what()},
                  "keyed_batcher: most_at_once must be at least 1: invalid argument");
    }
}

TEST(keyed_executor, limits_of_zero_are_refused) {
    EXPECT_EQ(code_of([] { keyed_executor{{.most_per_key = 0}}; }), errc::invalid_argument);
}

TEST(keyed_batcher, passes_what_waits_for_a_key_to_one_call) {
    std::binary_semaphore begun{0};
    std::binary_semaphore go_on{0};
    std::vector<std::vector<int>> batches;
    keyed_batcher<int, int> batcher{{.threads = 1}, 3, [&](const std::string& key, std::span<int> all) {
                                        if (key == "plug") {
                                            begun.release();
                                            go_on.acquire();
                                        } else {
                                            batches.emplace_back(all.begin(), all.end());
                                        }
                                        return std::vector<int>(all.begin(), all.end());
                                    }};
    auto plugged = batcher.submit("plug", 0);
    begun.acquire();
    std::vector<std::future<int>> answers;
    for (int number = 1; number <= 5; ++number) {
        answers.push_back(batcher.submit("a", number));
    }
    go_on.release();
    for (int number = 1; number <= 5; ++number) {
        EXPECT_EQ(answers[static_cast<std::size_t>(number - 1)].get(), number);
    }
    batcher.close();
    EXPECT_EQ(batches, (std::vector<std::vector<int>>{{1, 2, 3}, {4, 5}}));
}

TEST(keyed_batcher, an_exception_of_the_handler_reaches_the_whole_batch) {
    keyed_batcher<int, int> batcher{{.threads = 1}, 8, [](const std::string&, std::span<int>) {
                                        throw std::runtime_error{"rolled back"};
                                        return std::vector<int>{};
                                    }};
    auto first = batcher.submit("a", 1);
    auto second = batcher.submit("a", 2);
    batcher.close();
    EXPECT_THROW(first.get(), std::runtime_error);
    EXPECT_THROW(second.get(), std::runtime_error);
}

TEST(keyed_batcher, a_handler_that_forgets_a_result_is_told_on) {
    keyed_batcher<int, int> batcher{
        {.threads = 1}, 8, [](const std::string&, std::span<int>) { return std::vector<int>{}; }};
    auto forgotten = batcher.submit("a", 1);
    batcher.close();
    EXPECT_THROW(forgotten.get(), std::length_error);
}

TEST(keyed_executor, closing_refuses_those_who_wait_for_room_while_operations_go_on) {
    keyed_executor executor{{.threads = 1, .most_per_key = 1}};
    plug busy{executor};
    ASSERT_TRUE(executor.try_submit("a", [] {}));
    auto submitted = std::async(std::launch::async,
                                [&] { return code_of([&] { executor.submit("a", [] {}).get(); }); });
    EXPECT_EQ(submitted.wait_for(20ms), std::future_status::timeout);
    auto closed = std::async(std::launch::async, [&] { executor.close(); });
    EXPECT_EQ(submitted.wait_for(patience), std::future_status::ready) << "an operation still runs";
    busy.pull();
    EXPECT_EQ(submitted.get(), errc::shut_down);
}

class keyed_executor_death_test : public ::testing::Test {
protected:
    keyed_executor_death_test() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(keyed_executor_death_test, an_operation_that_closes_its_executor_while_others_do_aborts) {
    const auto close_from_two_sides = [](const auto& from_inside) {
        keyed_executor executor{{.threads = 2}};
        std::latch closing{1};
        static_cast<void>(executor.submit("a", [&] {
            closing.wait();
            static_cast<void>(code_of([&] {
                while (true) {  // until it is closed
                    static_cast<void>(executor.try_submit("b", [] {}));
                    std::this_thread::yield();
                }
            }));
            from_inside(executor);
        }));
        closing.count_down();
        executor.close();
    };
    EXPECT_DEATH(close_from_two_sides([](keyed_executor& own) { own.close(); }),
                 "an operation closes or cancels its own executor");
    EXPECT_DEATH(close_from_two_sides([](keyed_executor& own) { own.cancel(); }),
                 "an operation closes or cancels its own executor");
}

}  // namespace
