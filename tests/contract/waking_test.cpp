#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <contract/deployments.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/contract/fixture.hpp>
#include <holdfast/testing/eventually.hpp>
#include <runtime/safety_recheck.hpp>

/// Whoever waits for another client is told, on every store, and soon: here nobody asks the store again
/// by itself after a second.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// Two clients of one store: one holds, the other waits.
class waking_test : public ::testing::Test {
protected:
    static constexpr int rounds = 5;
    /// Of the quickest round: a loaded machine may be slow now and then, but not each time.
    static constexpr std::chrono::milliseconds soon{500};

    void SetUp() override {
        detail::safety_recheck = std::chrono::hours{1};
        const auto address = deployed().address();
        holder_.emplace(address);
        waiter_.emplace(address);
    }
    void TearDown() override { detail::safety_recheck = before_; }

    /// Lets `wait` run in the background until `is_waiting`, then what `take` returned. Whoever is not
    /// told waits until the deadline of its call, and says false.
    template <class Take, class Wait, class IsWaiting>
    void expect_woken(const Take& take, const Wait& wait, const IsWaiting& is_waiting) {
        auto quickest = clock::duration::max();
        for (int round = 0; round < rounds; ++round) {
            auto let_go = take();
            const auto requests = waiter_->requests();
            auto woken = std::async(std::launch::async, [&] {
                const bool got = wait();
                return std::pair{got, clock::now()};
            });
            ASSERT_TRUE(eventually([&] { return waiter_->requests() > requests && is_waiting(); }));
            const auto began = clock::now();
            let_go();
            const auto [got, when] = woken.get();
            ASSERT_TRUE(got) << "in round " << round;
            quickest = std::min<clock::duration>(quickest, when - began);
        }
        EXPECT_LT(quickest, soon);
    }
    /// For locks, whose waiters most stores count.
    template <class Take, class Wait>
    void expect_woken(const std::string& name, const Take& take, const Wait& wait) {
        expect_woken(take, wait, [&] { return somebody_waits(*holder_, name); });
    }
    [[nodiscard]] static std::string unique(const std::string& name) {
        return name + "-" + owner_id::random_client().client_text();
    }

    std::optional<client> holder_;
    std::optional<client> waiter_;

private:
    const std::chrono::milliseconds before_{detail::safety_recheck.load()};
};

/// Lets go of a lease when it is called.
[[nodiscard]] auto releasing(lease held) {
    return [held = std::make_shared<lease>(std::move(held))] { held->release(); };
}

TEST_F(waking_test, one_who_waits_for_a_mutex) {
    const auto name = unique("stock");
    mutex here{*holder_, name};
    mutex there{*waiter_, name};
    expect_woken(
        name, [&] { return releasing(here.acquire()); },
        [&] { return there.try_acquire_for(patience).has_value(); });
}

TEST_F(waking_test, one_who_stands_in_a_line) {
    if (!holder_->promises().fair) {
        return;
    }
    const auto name = unique("line");
    fair_mutex here{*holder_, name};
    fair_mutex there{*waiter_, name};
    expect_woken(
        name, [&] { return releasing(here.acquire()); },
        [&] { return there.try_acquire_for(patience).has_value(); });
}

TEST_F(waking_test, a_writer_when_the_reader_leaves) {
    if (!holder_->promises().shared) {
        return;
    }
    const auto name = unique("prices");
    shared_mutex here{*holder_, name};
    shared_mutex there{*waiter_, name};
    expect_woken(
        name, [&] { return releasing(here.acquire_shared()); },
        [&] { return there.try_acquire_for(patience).has_value(); });
}

TEST_F(waking_test, a_reader_when_the_writer_leaves) {
    if (!holder_->promises().shared) {
        return;
    }
    const auto name = unique("prices");
    shared_mutex here{*holder_, name};
    shared_mutex there{*waiter_, name};
    expect_woken(
        name, [&] { return releasing(here.acquire()); },
        [&] { return there.try_acquire_shared_for(patience).has_value(); });
}

TEST_F(waking_test, one_who_waits_for_a_permit) {
    if (!holder_->promises().permits) {
        return;
    }
    const auto name = unique("slots");
    semaphore here{*holder_, name, 1};
    semaphore there{*waiter_, name, 1};
    expect_woken(
        name, [&] { return releasing(here.acquire()); },
        [&] { return there.try_acquire_for(patience).has_value(); });
}

/// Nobody would ask after it before its ttl ends.
TEST_F(waking_test, a_holder_that_does_not_renew_when_its_lock_is_revoked) {
    const auto name = unique("stock");
    mutex here{*holder_, name, {.ttl = 10min, .renewal = renewal_mode::none}};
    const auto held = here.acquire();
    ASSERT_TRUE(waiter_->revoke(name, held.owner(), held.token(), "for the test"));
    EXPECT_TRUE(eventually([&] { return held.loss_reason() == errc::revoked; }));
}

TEST_F(waking_test, one_who_waits_for_a_latch) {
    if (!holder_->promises().latches) {
        return;
    }
    const auto name = unique("gate");
    latch here{*holder_, name};
    latch there{*waiter_, name};
    expect_woken(
        [&] {
            EXPECT_TRUE(here.try_set(1));
            return [&] { here.count_down(); };
        },
        [&] { return there.wait_for(patience); }, [] { return true; });
}

}  // namespace

}  // namespace holdfast::testing
