#include <threading/primitives.hpp>

#include <gtest/gtest.h>

/// Whether the checker sees what it should: the known tests of memory models.
namespace holdfast::model {

namespace {

using threading::atomic;

/// Runs two to four threads, and says whether they can end with `seen`.
template <class Shared>
[[nodiscard]] bool can_happen(std::vector<void (*)(Shared&)> threads, bool (*seen)(const Shared&)) {
    const auto found = explore([&] {
        auto shared = std::make_shared<Shared>();
        std::vector<threading::thread> all;
        for (const auto work : threads) {
            all.emplace_back([work, shared] { work(*shared); });
        }
        for (auto& each : all) {
            each.join();
        }
        require(!seen(*shared), "seen");
    });
    return !found.problem.empty();
}

template <std::memory_order Write, std::memory_order Read>
struct shared {
    static constexpr auto write = Write;
    static constexpr auto read = Read;
    atomic<int> x{0};
    atomic<int> y{0};
    int first{};
    int second{};
    int third{};
    int fourth{};
};
using relaxed = shared<std::memory_order_relaxed, std::memory_order_relaxed>;
using synchronised = shared<std::memory_order_release, std::memory_order_acquire>;
using consistent = shared<std::memory_order_seq_cst, std::memory_order_seq_cst>;

template <class Shared>
[[nodiscard]] bool store_buffering() {
    return can_happen<Shared>({[](Shared& all) {
                                   all.x.store(1, Shared::write);
                                   all.first = all.y.load(Shared::read);
                               },
                               [](Shared& all) {
                                   all.y.store(1, Shared::write);
                                   all.second = all.x.load(Shared::read);
                               }},
                              [](const Shared& all) { return all.first == 0 && all.second == 0; });
}

TEST(litmus, a_store_may_be_seen_after_the_load_that_follows_it) {
    EXPECT_TRUE(store_buffering<relaxed>());
    EXPECT_TRUE(store_buffering<synchronised>());
    EXPECT_FALSE(store_buffering<consistent>());
}

TEST(litmus, read_modify_writes_are_not_overtaken_on_the_same_atomic) {
    using all = synchronised;
    EXPECT_FALSE(
        can_happen<all>({[](all& of) { of.first = of.x.exchange(1, std::memory_order_acq_rel); },
                         [](all& of) { of.second = of.x.exchange(1, std::memory_order_acq_rel); }},
                        [](const all& of) { return of.first == 0 && of.second == 0; }));
}

template <class Shared>
[[nodiscard]] bool message_without_content() {
    return can_happen<Shared>({[](Shared& all) {
                                   all.x.store(1, std::memory_order_relaxed);
                                   all.y.store(1, Shared::write);
                               },
                               [](Shared& all) {
                                   all.first = all.y.load(Shared::read);
                                   all.second = all.x.load(std::memory_order_relaxed);
                               }},
                              [](const Shared& all) { return all.first == 1 && all.second == 0; });
}

TEST(litmus, what_was_written_before_a_release_is_seen_after_an_acquire) {
    EXPECT_TRUE(message_without_content<relaxed>());
    EXPECT_FALSE(message_without_content<synchronised>());
}

TEST(litmus, a_read_modify_write_passes_on_what_was_released_before_it) {
    using all = synchronised;
    EXPECT_FALSE(can_happen<all>({[](all& of) {
                                      of.x.store(1, std::memory_order_relaxed);
                                      of.y.store(1, std::memory_order_release);
                                  },
                                  [](all& of) { of.y.fetch_add(1, std::memory_order_relaxed); },
                                  [](all& of) {
                                      of.first = of.y.load(std::memory_order_acquire);
                                      of.second = of.x.load(std::memory_order_relaxed);
                                  }},
                                 [](const all& of) { return of.first == 2 && of.second == 0; }));
}

template <class Shared>
[[nodiscard]] bool readers_disagree() {
    return can_happen<Shared>({[](Shared& all) { all.x.store(1, Shared::write); },
                               [](Shared& all) { all.y.store(1, Shared::write); },
                               [](Shared& all) {
                                   all.first = all.x.load(Shared::read);
                                   all.second = all.y.load(Shared::read);
                               },
                               [](Shared& all) {
                                   all.third = all.y.load(Shared::read);
                                   all.fourth = all.x.load(Shared::read);
                               }},
                              [](const Shared& all) {
                                  return all.first == 1 && all.second == 0 && all.third == 1 &&
                                         all.fourth == 0;
                              });
}

TEST(litmus, two_readers_may_see_two_stores_in_different_orders) {
    EXPECT_TRUE(readers_disagree<synchronised>());
    EXPECT_FALSE(readers_disagree<consistent>());
}

TEST(litmus, nobody_goes_back_to_an_older_value) {
    using all = relaxed;
    EXPECT_FALSE(can_happen<all>({[](all& of) { of.x.store(1, std::memory_order_relaxed); },
                                  [](all& of) {
                                      of.first = of.x.load(std::memory_order_relaxed);
                                      of.second = of.x.load(std::memory_order_relaxed);
                                  }},
                                 [](const all& of) { return of.first == 1 && of.second == 0; }));
}

TEST(litmus, every_order_of_independent_steps_counts_once) {
    const auto found = explore([] {
        for (int each = 0; each < 3; ++each) {
            spawn([] {
                atomic<int> own{0};
                own.store(1);
                own.store(2);
            });
        }
    });
    EXPECT_EQ(found.problem, "");
    EXPECT_LT(found.executions, 100U);
}

TEST(litmus, a_mutex_lets_in_one_at_a_time_and_shows_what_the_last_one_did) {
    struct counted {
        threading::mutex guard;
        atomic<int> count{0};
    };
    const auto found = explore([] {
        const auto all = std::make_shared<counted>();
        std::vector<threading::thread> threads;
        for (int each = 0; each < 3; ++each) {
            threads.emplace_back([all] {
                const std::lock_guard lock{all->guard};
                const int before = all->count.load(std::memory_order_relaxed);
                all->count.store(before + 1, std::memory_order_relaxed);
            });
        }
        for (auto& each : threads) {
            each.join();
        }
        require(all->count.load(std::memory_order_relaxed) == 3, "counts to three");
    });
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.executions, 6U);
}

TEST(litmus, a_notification_that_nobody_waits_for_is_lost) {
    struct shared {
        threading::mutex guard;
        threading::condition_variable changed;
        bool told{};
    };
    const auto look_first = [](bool looks) {
        return explore([looks] {
            const auto all = std::make_shared<shared>();
            spawn([all, looks] {
                std::unique_lock lock{all->guard};
                if (!looks || !all->told) {
                    all->changed.wait(lock);
                }
            });
            spawn([all] {
                {
                    const std::lock_guard lock{all->guard};
                    all->told = true;
                }
                all->changed.notify_one();
            });
        });
    };
    EXPECT_EQ(look_first(true).problem, "");
    EXPECT_NE(look_first(false).problem.find("a wake-up was lost"), std::string::npos);
}

TEST(litmus, a_circle_of_locks_is_found) {
    const auto found = explore([] {
        const auto one = std::make_shared<threading::mutex>();
        const auto other = std::make_shared<threading::mutex>();
        const auto lock_both = [](threading::mutex& first, threading::mutex& second) {
            const std::lock_guard outer{first};
            const std::lock_guard inner{second};
        };
        spawn([=] { lock_both(*one, *other); });
        spawn([=] { lock_both(*other, *one); });
    });
    EXPECT_NE(found.problem, "");
}

TEST(litmus, endless_spinning_is_found) {
    const auto found = explore([] {
        const atomic<int> never{0};
        while (never.load() == 0) {
        }
    });
    EXPECT_NE(found.problem.find("spins"), std::string::npos);
}

}  // namespace

}  // namespace holdfast::model
