#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using outcome = taking::outcome;

/// Segments in memory, each of which must be used by one at a time.
class shelves {
public:
    explicit shelves(std::vector<std::uint64_t> units)
        : units_{std::move(units)}, used_(units_.size()) {}

    [[nodiscard]] segment_store store() {
        return {.read =
                    [this](const segment& of) {
                        EXPECT_EQ(used_[of.index].fetch_add(1), 0) << "two users of one segment";
                        const auto there = units_[of.index];
                        used_[of.index].fetch_sub(1);
                        ++reads;
                        return there;
                    },
                .write =
                    [this](const segment& of, std::uint64_t units) {
                        EXPECT_GT(of.token.value, 0U);
                        if (of.index == broken && writes_until_broken-- == 0) {
                            throw std::runtime_error{"disk full"};
                        }
                        units_[of.index] = units;
                    }};
    }
    [[nodiscard]] const std::vector<std::uint64_t>& units() const { return units_; }

    std::atomic<int> reads{0};
    std::size_t broken{99};
    int writes_until_broken{0};

private:
    std::vector<std::uint64_t> units_;
    std::vector<std::atomic<int>> used_;
};

class segments : public stage {};

TEST_F(segments, are_emptied_one_after_the_other_to_the_last_unit) {
    shelves all{{2, 0, 3}};
    segmented_stock stock{client_, "s", 3, all.store()};
    for (int sold = 0; sold < 5; ++sold) {
        EXPECT_TRUE(stock.take(1));
    }
    const auto last = stock.take(1);
    EXPECT_EQ(last.what, outcome::not_enough);
    EXPECT_EQ(last.seen, 0U);
    EXPECT_EQ(all.units(), (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST_F(segments, that_are_locked_are_passed_over) {
    shelves all{{1, 1, 1}};
    segmented_stock stock{client_, "s", 3, all.store()};
    mutex first{other_, "s:0"};
    mutex second{other_, "s:1"};
    const std::scoped_lock busy{first, second};
    const auto got = stock.take(1);
    ASSERT_TRUE(got);
    EXPECT_EQ(got.parts.at(0).segment, 2U);
}

TEST_F(segments, are_not_sold_out_while_one_is_locked) {
    shelves all{{0, 1}};
    segmented_stock stock{client_, "s", 2, all.store()};
    mutex second{other_, "s:1"};
    second.lock();
    EXPECT_EQ(stock.take_for(1, 20ms).what, outcome::gave_up);
    auto waiting = in_background([&] { return stock.take_for(1, patience); });
    second.unlock();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(stock.take(1).what, outcome::not_enough);
}

TEST_F(segments, wait_can_be_stopped) {
    shelves all{{1}};
    segmented_stock stock{client_, "s", 1, all.store()};
    mutex only{other_, "s:0"};
    const std::lock_guard busy{only};
    std::stop_source stop;
    auto waiting = in_background([&] { return stock.take(1, stop.get_token()); });
    stop.request_stop();
    ASSERT_TRUE(gets_done(waiting));
    EXPECT_EQ(waiting.get().what, outcome::gave_up);
    EXPECT_EQ(all.units().at(0), 1U);
}

TEST_F(segments, together_serve_a_request_for_more_than_one_has) {
    shelves all{{2, 2, 2}};
    segmented_stock stock{client_, "s", 3, all.store()};
    const auto got = stock.take(5);
    ASSERT_TRUE(got);
    std::uint64_t units = 0;
    for (const auto& part : got.parts) {
        units += part.units;
    }
    EXPECT_EQ(units, 5U);
    EXPECT_EQ(stock.count(), 1U);
    const auto too_much = stock.take(2);
    EXPECT_EQ(too_much.what, outcome::not_enough);
    EXPECT_EQ(too_much.seen, 1U);
}

TEST_F(segments, refuse_a_request_for_more_than_one_has_if_that_is_the_rule) {
    shelves all{{2, 2}};
    segmented_stock stock{client_, "s", 2, all.store(), {.more_than_one_has = gathering::refused}};
    const auto refused = stock.take(3);
    EXPECT_EQ(refused.what, outcome::not_enough);
    EXPECT_EQ(refused.seen, 4U);
    EXPECT_EQ(stock.count(), 4U);
}

TEST_F(segments, are_written_back_when_a_gathered_request_fails) {
    shelves all{{2, 2, 2}};
    all.broken = 1;
    segmented_stock stock{client_, "s", 3, all.store()};
    EXPECT_THROW(static_cast<void>(stock.take(6)), std::runtime_error);
    EXPECT_EQ(all.units(), (std::vector<std::uint64_t>{2, 2, 2}));
    EXPECT_TRUE(becomes_free("s:0") && becomes_free("s:1") && becomes_free("s:2"));
}

TEST_F(segments, give_the_lock_back_when_the_store_throws) {
    shelves all{{5}};
    all.broken = 0;
    segmented_stock stock{client_, "s", 1, all.store()};
    EXPECT_THROW(static_cast<void>(stock.take(1)), std::runtime_error);
    EXPECT_TRUE(becomes_free("s:0"));
    EXPECT_TRUE(stock.take(1));
}

TEST_F(segments, take_what_is_given_back) {
    shelves all{{0, 0}};
    segmented_stock stock{client_, "s", 2, all.store()};
    EXPECT_FALSE(stock.take(1));
    stock.put(3);
    EXPECT_EQ(stock.count(), 3U);
    EXPECT_TRUE(stock.take(3));
}

TEST_F(segments, that_were_empty_are_looked_at_last) {
    shelves all{{0, 9}};
    segmented_stock stock{client_, "s", 2, all.store()};
    ASSERT_TRUE(stock.take(1));
    static_cast<void>(stock.take_for(10, 0ms));  // sees both
    all.reads = 0;
    ASSERT_TRUE(stock.take(1));
    EXPECT_EQ(all.reads, 1);
}

TEST_F(segments, sell_every_unit_once_to_many_threads) {
    shelves all{{40, 40, 40}};
    segmented_stock here{client_, "s", 3, all.store()};
    segmented_stock there{other_, "s", 3, all.store()};
    std::atomic<std::uint64_t> sold{0};
    {
        std::vector<std::jthread> buyers;
        for (int buyer = 0; buyer < 8; ++buyer) {
            buyers.emplace_back([&, buyer] {
                auto& stock = buyer % 2 == 0 ? here : there;
                const auto each = static_cast<std::uint64_t>(1 + buyer % 3);
                while (stock.take(each)) {
                    sold += each;
                }
            });
        }
    }
    EXPECT_EQ(sold + here.count(), 120U);
    EXPECT_EQ(here.count(), 0U) << "those who buy one at a time leave nothing";
}

/// Whichever of them it waits for first.
TEST_F(segments, that_stay_locked_do_not_keep_anybody_from_the_others) {
    for (const std::size_t freed : {0U, 1U, 2U}) {
        SCOPED_TRACE(freed);
        shelves all{{100, 100, 100}};
        segmented_stock stock{client_, "s", 3, all.store()};
        std::vector<lease> busy;
        for (const auto* name : {"s:0", "s:1", "s:2"}) {
            busy.push_back(mutex{other_, name}.acquire());
        }
        auto waiting = in_background([&] { return stock.take_for(1, 10s); });
        ASSERT_TRUE(eventually([&] { return plan_->calls(call_kind::acquire) >= 3; }));
        busy.at(freed).release();
        const auto got = waiting.get();
        ASSERT_TRUE(got);
        EXPECT_EQ(got.parts.at(0).segment, freed);
    }
}

/// Slower than the time for which one of several locked segments is waited for.
TEST_F(segments, of_a_slow_store_are_waited_for) {
    shelves all{{100, 100}};
    segmented_stock stock{client_, "s", 2, all.store()};
    std::vector<lease> busy;
    for (const auto* name : {"s:0", "s:1"}) {
        busy.push_back(mutex{other_, name}.acquire());
    }
    plan_->delay_replies_of_next(call_kind::acquire, 1000);
    const std::jthread slowly{[this](const std::stop_token& stop) {
        const gate never;
        while (!stop.stop_requested()) {
            static_cast<void>(never.wait(150ms));
            plan_->let_go();
        }
    }};
    auto waiting = in_background([&] { return stock.take_for(1, 15s); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::acquire, 4, patience));
    busy.at(0).release();
    EXPECT_TRUE(waiting.get());
}

TEST_F(segments, that_are_asked_for_at_the_last_moment_are_given_up_without_an_error) {
    shelves all{{100, 100}};
    segmented_stock stock{client_, "s", 2, all.store()};
    std::vector<lease> busy;
    for (const auto* name : {"s:0", "s:1"}) {
        busy.push_back(mutex{other_, name}.acquire());
    }
    auto waiting = in_background([&] { return stock.take_for(1, 300ms).what; });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::acquire, 3, patience));
    plan_->delay_next(call_kind::acquire, 100);
    EXPECT_EQ(waiting.get(), outcome::gave_up);
    plan_->let_go();
}

/// Every call rides it out, as those of a mutex do.
TEST_F(segments, of_a_store_that_is_away_for_a_moment_are_waited_for) {
    shelves all{{100, 100}};
    segmented_stock stock{client_, "s", 2, all.store()};
    const auto away = [&] {
        plan_->fail_next(call_kind::acquire, 8, {errc::store_unavailable, "away"});
    };
    away();
    EXPECT_TRUE(stock.take(1));
    away();
    EXPECT_TRUE(stock.take_for(1, 10s));
    away();
    EXPECT_NO_THROW(stock.put(1));
    away();
    EXPECT_TRUE(stock.take_for(150, 10s));
    EXPECT_EQ(stock.count(), 49U);
}

TEST_F(segments, of_a_store_that_stays_away_end_in_an_error) {
    shelves all{{100, 100}};
    auto impatient = make_client({.outage_patience = 50ms});
    segmented_stock stock{impatient, "s", 2, all.store()};
    plan_->fail_next(call_kind::acquire, 100'000, {errc::store_unavailable, "away"});
    EXPECT_EQ(error_of([&] { return stock.take(1); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { return stock.take_for(1, 200ms); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { return stock.take_for(1, 0ms); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] {
                  stock.put(1);
                  return 0;
              }),
              errc::store_unavailable);
    EXPECT_EQ(all.units(), (std::vector<std::uint64_t>{100, 100}));
}

TEST_F(segments, that_stay_locked_do_not_keep_units_from_being_given_back) {
    for (const std::size_t freed : {0U, 1U}) {
        SCOPED_TRACE(freed);
        shelves all{{1, 1}};
        segmented_stock stock{client_, "s", 2, all.store()};
        std::vector<lease> busy;
        for (const auto* name : {"s:0", "s:1"}) {
            busy.push_back(mutex{other_, name}.acquire());
        }
        auto giving = in_background([&] { stock.put(2); });
        busy.at(freed).release();
        ASSERT_TRUE(gets_done(giving));
        EXPECT_EQ(all.units().at(freed), 3U);
    }
}

/// A lock that is lost after the first of several writes.
class interrupted_gathering : public segments {
protected:
    [[nodiscard]] segment_store store() {
        auto inner = all_.store();
        return {inner.read, [this, inner](const segment& of, std::uint64_t units) {
                    inner.write(of, units);
                    if (!std::exchange(done_, true)) {
                        revoke("s:2");
                        ASSERT_TRUE(eventually([&] { return of.lost.stop_requested(); }));
                        after_loss_();
                    }
                }};
    }

    shelves all_{{2, 2, 2}};
    std::function<void()> after_loss_{[] {}};
    bool done_{};
};

TEST_F(interrupted_gathering, strands_no_units) {
    segmented_stock stock{client_, "s", 3, store()};
    EXPECT_EQ(error_of([&] { return stock.take(5); }), errc::revoked);
    EXPECT_EQ(stock.count(), 6U);
}

TEST_F(interrupted_gathering, says_how_many_units_are_missing_if_they_cannot_be_put_back) {
    after_loss_ = [this] {
        plan_->fail_next(call_kind::acquire, 1, {errc::unauthorised, "not any more"});
    };
    segmented_stock stock{client_, "s", 3, store()};
    const auto text = error_text_of([&] { return stock.take(5); });
    EXPECT_NE(text.find("2 units were taken and could not be put back"), std::string::npos) << text;
}

/// Others may have brought units meanwhile.
TEST_F(segments, that_were_read_when_their_lock_was_lost_are_not_counted) {
    for (const std::size_t count : {1U, 3U}) {
        shelves all{std::vector<std::uint64_t>(count, 2)};
        auto store = all.store();
        int reads = 0;
        store.read = [&, inner = store.read](const segment& of) {
            const auto there = inner(of);
            if (++reads != (count == 1 ? 1 : 6)) {  // of three: when all are locked to gather
                return there;
            }
            revoke("s:" + std::to_string(of.index));
            EXPECT_TRUE(eventually([&] { return of.lost.stop_requested(); }));
            return there - 1;  // whoever has the lock now took it
        };
        segmented_stock stock{client_, "s", count, store};
        EXPECT_EQ(error_of([&] { return stock.take(count == 1 ? 5 : 6); }), errc::revoked) << count;
    }
}

TEST_F(segments, do_not_count_round_to_zero) {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    shelves all{{most, most - 5}};
    segmented_stock stock{client_, "s", 2, all.store()};
    stock.put(5);
    EXPECT_EQ(all.units(), (std::vector<std::uint64_t>{most, most}));
    EXPECT_EQ(error_of([&] { stock.put(1); }), errc::invalid_argument);
    EXPECT_EQ(all.units(), (std::vector<std::uint64_t>{most, most}));
    EXPECT_EQ(stock.count(), most);
    EXPECT_TRUE(stock.take(most));
    EXPECT_TRUE(stock.take(1));
    EXPECT_EQ(stock.take(most).seen, most - 1);
}

TEST_F(segments, of_a_large_stock_are_gathered) {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    shelves all{{most - 1, most - 1}};
    segmented_stock stock{client_, "s", 2, all.store()};
    EXPECT_TRUE(stock.take(most));
    EXPECT_EQ(stock.count(), most - 2);
}

TEST_F(segments, need_a_segment_and_requests_a_unit) {
    shelves all{{1}};
    EXPECT_EQ(error_of([&] { return segmented_stock(client_, "s", 0, all.store()).segments(); }),
              errc::invalid_argument);
    segmented_stock stock{client_, "s", 1, all.store()};
    EXPECT_EQ(error_of([&] { return stock.take(0); }), errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::testing
