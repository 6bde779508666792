#include <holdfast/records.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include <contract/record_map.hpp>
#include <support.hpp>

namespace holdfast::engines::test {

namespace {

/// What the store is asked for, and how it fails.
struct conduct {
    std::atomic<int> reads{};
    std::atomic<int> writes{};
    /// So many writes are performed and not answered.
    std::atomic<int> silent_writes{};
};

class observed_store final : public record_store {
public:
    observed_store(std::shared_ptr<testing::shared_records> shared, conduct& seen)
        : records_{"observed:", std::move(shared)}, seen_{seen} {}

    [[nodiscard]] const guarantees& promises() const noexcept override { return records_.promises(); }
    [[nodiscard]] const std::string& address() const noexcept override { return records_.address(); }
    [[nodiscard]] record_reply read(const std::string& name, clock::time_point deadline) override {
        ++seen_.reads;
        return records_.read(name, deadline);
    }
    [[nodiscard]] record_reply replace(const record_change& change,
                                       clock::time_point deadline) override {
        ++seen_.writes;
        auto reply = records_.replace(change, deadline);
        if (seen_.silent_writes > 0) {
            --seen_.silent_writes;
            return {.error = {errc::outcome_unknown, "no answer"}};
        }
        return reply;
    }

private:
    testing::record_map records_;
    conduct& seen_;
};

class records_engine : public ::testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<engine> open() {
        return make_records_engine(std::make_unique<observed_store>(shared_, seen_), identity());
    }
    std::shared_ptr<testing::shared_records> shared_{std::make_shared<testing::shared_records>()};
    conduct seen_;
};

TEST_F(records_engine, an_uncontended_pair_takes_two_requests) {
    const auto store = open();
    const auto pair = [&](std::int64_t sequence) {
        const owner_id owner{1, 1, sequence};
        EXPECT_EQ(acquire(*store, exclusive("stock", owner)).result, granted);
        EXPECT_EQ(release(*store, {.name = "stock", .owner = owner}).result,
                  release_reply::outcome::released);
    };
    pair(1);
    seen_.reads = seen_.writes = 0;
    for (std::int64_t sequence = 2; sequence < 12; ++sequence) {
        pair(sequence);
    }
    EXPECT_EQ(seen_.reads, 0);
    EXPECT_EQ(seen_.writes, 20);
}

TEST_F(records_engine, a_grant_and_a_release_without_an_answer_are_found_out) {
    const auto store = open();
    const owner_id owner{1, 1, 1};
    seen_.silent_writes = 1;
    const auto reply = acquire(*store, exclusive("stock", owner));
    ASSERT_EQ(reply.result, granted);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner)).first_token, reply.first_token);
    seen_.silent_writes = 1;
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner}).result,
              release_reply::outcome::released);
}

TEST_F(records_engine, what_a_store_cannot_do_is_not_offered) {
    const auto store = open();
    EXPECT_EQ(store->offers().watching, nullptr);
    EXPECT_EQ(store->offers().operators, nullptr);
    EXPECT_NE(store->offers().latches, nullptr);
}

TEST_F(records_engine, threads_of_several_clients_exclude_each_other) {
    constexpr int rounds = 100;
    std::vector<std::unique_ptr<engine>> clients;
    clients.push_back(open());
    clients.push_back(open());
    std::atomic<int> inside{};
    std::atomic<int> overlaps{};
    std::atomic<int> refusals{};
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t number = 0; number < 4; ++number) {
            threads.emplace_back([&, number] {
                engine& store = *clients[number % 2];
                for (std::int64_t round = 0; round < rounds;) {
                    const owner_id owner{number, 1, round};
                    const auto reply = acquire(store, exclusive("stock", owner));
                    if (reply.result == busy) {
                        std::this_thread::yield();
                        continue;
                    }
                    overlaps += ++inside > 1 ? 1 : 0;
                    --inside;
                    refusals += reply.result == granted ? 0 : 1;
                    refusals += release(store, {.name = "stock", .owner = owner}).result ==
                                        release_reply::outcome::released
                                    ? 0
                                    : 1;
                    ++round;
                }
            });
        }
    }
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(refusals, 0);
}

TEST_F(records_engine, what_waits_for_a_thread_at_the_end_is_refused) {
    auto store = open();
    std::atomic<int> answers{};
    for (int index = 0; index < 100; ++index) {
        store->acquire(exclusive("n" + std::to_string(index), {1, 1, index + 1}),
                       soon(caller::must_not_block), [&](const acquire_reply&) { ++answers; });
    }
    store.reset();
    EXPECT_EQ(answers, 100);
}

}  // namespace

}  // namespace holdfast::engines::test
