#include <mutex>
#include <type_traits>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

template <class Lock>
concept timed_lockable = requires(Lock& lock, std::chrono::duration<double> wait,
                                  std::chrono::system_clock::time_point wall, clock::time_point own) {
    { lock.lock() } -> std::same_as<void>;
    { lock.unlock() }
    noexcept->std::same_as<void>;
    { lock.try_lock() } -> std::same_as<bool>;
    { lock.try_lock_for(wait) } -> std::same_as<bool>;
    { lock.try_lock_until(wall) } -> std::same_as<bool>;
    { lock.try_lock_until(own) } -> std::same_as<bool>;
};
static_assert(timed_lockable<multi_lock>);
static_assert(!std::is_copy_constructible_v<multi_lock> && !std::is_move_constructible_v<multi_lock>);
static_assert(!std::is_copy_constructible_v<multi_lease> &&
              std::is_nothrow_move_constructible_v<multi_lease>);

const std::vector<std::string> three{"apple", "bread", "cheese"};

class multi_lock_on : public on_any_store {};

TEST_P(multi_lock_on, holds_all_of_its_names_and_gives_all_back) {
    multi_lock all{client_, three};
    auto held = all.acquire();
    for (const auto& name : three) {
        EXPECT_FALSE(mutex(other_, name).try_lock()) << name;
    }
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release().worst(), release_outcome::released);
    EXPECT_FALSE(held);
    EXPECT_TRUE(all_free(three));
}

TEST_P(multi_lock_on, takes_nothing_when_one_name_is_busy) {
    mutex bread{other_, "bread"};
    const std::lock_guard busy{bread};
    multi_lock all{client_, three};
    EXPECT_FALSE(all.try_lock());
    EXPECT_TRUE(all_become_free({"apple", "cheese"}));
}

TEST_P(multi_lock_on, takes_nothing_when_a_thread_of_this_process_has_one) {
    mutex bread{client_, "bread"};
    const std::lock_guard busy{bread};
    multi_lock all{client_, three};
    EXPECT_FALSE(all.try_lock());
    EXPECT_TRUE(all_become_free({"apple", "cheese"}));
}

TEST_P(multi_lock_on, waits_for_the_name_that_is_busy) {
    mutex cheese{other_, "cheese"};
    cheese.lock();
    multi_lock all{client_, three};
    auto waiting = in_background([&] { return all.try_acquire_for(patience); });
    mutex apple{other_, "apple"};
    EXPECT_TRUE(eventually([&] { return !apple.try_acquire(); })) << "it holds what comes before";
    EXPECT_FALSE(is_done(waiting));
    cheese.unlock();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_TRUE(waiting.get());
}

TEST_P(multi_lock_on, two_with_names_in_common_exclude_each_other) {
    multi_lock some{client_, {"apple", "bread"}};
    multi_lock others{other_, {"cheese", "bread"}};
    const std::lock_guard held{some};
    EXPECT_FALSE(others.try_lock());
}

TEST_P(multi_lock_on, leaves_nothing_when_its_time_is_over) {
    mutex cheese{other_, "cheese"};
    const std::lock_guard busy{cheese};
    multi_lock all{client_, three};
    const stopwatch waited;
    // Enough for the store to answer at least once: otherwise the outcome would be unknown.
    EXPECT_FALSE(all.try_lock_for(300ms));
    EXPECT_GE(waited.elapsed(), 300ms);
    EXPECT_TRUE(all_become_free({"apple", "bread"}));
}

TEST_P(multi_lock_on, leaves_nothing_when_it_is_stopped) {
    mutex cheese{other_, "cheese"};
    const std::lock_guard busy{cheese};
    multi_lock all{client_, three};
    std::stop_source stop;
    auto waiting =
        in_background([&] { return all.acquire_unless_stopped(stop.get_token()).has_value(); });
    EXPECT_TRUE(eventually([&] { return !is_free("apple") && !is_free("bread"); }));
    stop.request_stop();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_FALSE(waiting.get());
    EXPECT_TRUE(all_become_free({"apple", "bread"}));
}

TEST_P(multi_lock_on, has_a_token_for_every_name_and_later_ones_are_larger) {
    multi_lock all{client_, three};
    auto first = all.acquire();
    std::vector<fencing_token> before;
    for (const auto& [store, name, token] : first.members()) {
        EXPECT_EQ(store, client_.store());
        EXPECT_EQ(first.token(name), token);
        before.push_back(token);
    }
    EXPECT_EQ(before.size(), 3U);
    EXPECT_EQ(first.token("somebody else's"), fencing_token{});
    first.release();
    const auto second = all.acquire();
    for (std::size_t index = 0; index < three.size(); ++index) {
        EXPECT_GT(second.token(three[index]), before[index]);
    }
}

TEST_P(multi_lock_on, is_lost_when_one_of_its_names_is) {
    multi_lock all{client_, three, {.ttl = 1s}};
    auto held = all.acquire();
    gate told;
    const std::stop_callback on_loss{held.lost(), [&] { told.open(); }};
    const auto holder = other_.inspect("bread").holders.at(0);
    ASSERT_TRUE(other_.revoke("bread", holder.owner, holder.token, "for the test"));
    EXPECT_TRUE(told.wait());
    EXPECT_FALSE(held);
    EXPECT_EQ(held.remaining(), 0ns);
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    EXPECT_NE(error_text_of([&] { held.check(); }).find("bread"), std::string::npos);
    const auto report = held.release();
    ASSERT_EQ(report.members.size(), 3U);
    EXPECT_EQ(report.members[0].outcome, release_outcome::released);
    EXPECT_EQ(report.members[1].outcome, release_outcome::already_lost);
    EXPECT_EQ(report.members[2].outcome, release_outcome::released);
    EXPECT_EQ(report.worst(), release_outcome::already_lost);
    EXPECT_TRUE(all_free(three));
}

TEST_P(multi_lock_on, is_renewed) {
    multi_lock all{client_, three, {.ttl = 150ms}};
    const auto held = all.acquire();
    const auto first_end = held.valid_until();
    EXPECT_TRUE(eventually([&] { return clock::now() > first_end + 200ms; }));
    EXPECT_TRUE(held);
}

TEST_P(multi_lock_on, may_let_go_of_everything_when_told_of_a_loss) {
    multi_lock all{client_, three, {.ttl = 1s}};
    auto held = all.acquire();
    gate gone;
    const std::stop_callback on_loss{held.lost(), [&] {
                                         held.release();
                                         gone.open();
                                     }};
    const auto holder = other_.inspect("apple").holders.at(0);
    ASSERT_TRUE(other_.revoke("apple", holder.owner, holder.token, "for the test"));
    EXPECT_TRUE(gone.wait());
    EXPECT_TRUE(all_become_free(three));
}

TEST_P(multi_lock_on, is_taken_by_the_wrappers_of_the_standard) {
    multi_lock all{client_, three};
    mutex other_things{client_, "other things"};
    {
        const std::scoped_lock both{all, other_things};
        EXPECT_FALSE(is_free("apple"));
        EXPECT_FALSE(all.lost().stop_requested());
    }
    std::unique_lock later{all, 1s};
    EXPECT_TRUE(later.owns_lock());
}

TEST_P(multi_lock_on, costs_one_request_where_the_store_takes_all_at_once) {
    multi_lock all{client_, {"1", "2", "3", "4", "5", "6", "7", "8"}};
    const auto cost = [&] {
        const auto before = client_.requests();
        const auto held = all.acquire();
        return client_.requests() - before;
    };
    // A client that begins to listen for forced releases renews once, which may fall into one of them.
    const auto first = cost();
    EXPECT_EQ(std::min(first, cost()), GetParam() == "local" ? 8U : 1U);
}

TEST_P(multi_lock_on, of_more_names_than_fit_into_one_request_holds_all) {
    std::vector<std::string> many;
    for (int number = 0; number < 150; ++number) {
        many.push_back("n" + std::to_string(number));
    }
    multi_lock all{client_, many};
    {
        mutex busy{other_, "n77"};
        const std::lock_guard in_the_way{busy};
        EXPECT_FALSE(all.try_lock());
    }
    ASSERT_TRUE(all_become_free(many));
    ASSERT_TRUE(all.try_lock_for(patience));
    EXPECT_EQ(other_.list("n").locks.size(), many.size());
    all.unlock();
    EXPECT_TRUE(all_free(many));
}

TEST_P(multi_lock_on, threads_that_come_later_queue_behind_it) {
    multi_lock all{client_, three};
    mutex bread{client_, "bread"};
    all.lock();
    auto waiting = in_background([&] { return bread.try_acquire_for(patience); });
    const auto refused_without_asking = [&] {
        const auto before = client_.requests();
        EXPECT_FALSE(bread.try_lock());
        return client_.requests() == before;
    };
    // A client that begins to listen for forced releases renews once, which may fall into the first
    // look.
    EXPECT_TRUE(refused_without_asking() || refused_without_asking())
        << "this process knows who has it";
    all.unlock();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_TRUE(waiting.get());
}

INSTANTIATE_TEST_SUITE_P(joint, multi_lock_on, ::testing::ValuesIn(tested_schemes()),
                         [](const auto& one) { return one.param; });

class multi_lock_names : public stage {};

TEST_F(multi_lock_names, are_sorted_and_each_is_taken_once) {
    const multi_lock all{client_, {"b", "a", "c", "a", "b"}};
    EXPECT_EQ(all.names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(all.size(), 3U);
}

TEST_F(multi_lock_names, on_several_stores_are_sorted_by_store_first) {
    client first{"memory:joint-1"};
    client second{"memory:joint-2"};
    client first_again{"memory:joint-1"};
    const multi_lock all{{{second, "a"}, {first, "c"}, {first_again, "b"}, {first_again, "c"}}};
    EXPECT_EQ(all.names(), (std::vector<std::string>{"b", "c", "a"}));
}

TEST_F(multi_lock_names, on_several_stores_are_held_together) {
    client second{fresh_store()};
    multi_lock both{{{client_, "a"}, {second, "b"}}};
    auto held = both.acquire();
    EXPECT_FALSE(mutex(second, "b").try_lock());
    EXPECT_FALSE(mutex(other_, "a").try_lock());
    held.release();
    mutex busy{second, "b"};
    const std::lock_guard in_the_way{busy};
    EXPECT_FALSE(both.try_lock());
    EXPECT_TRUE(becomes_free("a"));
}

TEST_F(multi_lock_names, must_make_sense) {
    EXPECT_EQ(error_of([&] { return multi_lock{client_, {}}.size(); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return multi_lock{client_, {"a", ""}}.size(); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] {
                  return multi_lock{client_, {"a"}, {.ttl = 0ms}}.size();
              }),
              errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::testing
