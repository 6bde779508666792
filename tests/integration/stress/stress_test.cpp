#include "arena.hpp"

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// Processes are forked before any client exists, so that nothing is inherited but the shared memory.
namespace stress {
namespace {

using namespace std::chrono_literals;

constexpr int processes = 8;
constexpr int threads = 8;

void hammer(const std::string& store, arena& shared, int rounds) {
    holdfast::client client{store};
    holdfast::mutex mutex{client, "number"};
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const std::scoped_lock guard{mutex};
                shared.step(mutex.token().value);
            }
        });
    }
}

[[nodiscard]] std::int64_t times_written(const arena& shared, std::uint32_t times) {
    std::int64_t count = 0;
    for (std::int64_t value = 1; value <= shared.number; ++value) {
        count += shared.written[static_cast<std::size_t>(value)].load() == times ? 1 : 0;
    }
    return count;
}

TEST(stress, eight_processes_of_eight_threads_lose_no_increment) {
    constexpr int rounds = 1000;
    const temporary_directory where;
    const shared_arena shared;
    std::vector<pid_t> workers;
    for (int i = 0; i < processes; ++i) {
        workers.push_back(start_process([&] { hammer(where.store(), *shared, rounds); }));
    }
    for (const auto worker : workers) {
        EXPECT_EQ(wait_for(worker), 0);
    }
    EXPECT_EQ(shared->number, processes * threads * rounds);
    EXPECT_EQ(times_written(*shared, 1), processes * threads * rounds);
    EXPECT_EQ(shared->tokens_out_of_order.load(), 0);
}

TEST(stress, survivors_of_killed_processes_neither_stall_nor_lose_updates) {
    constexpr int rounds = 1000;
    const temporary_directory where;
    const shared_arena shared;
    std::vector<pid_t> workers;
    for (int i = 0; i < processes; ++i) {
        workers.push_back(start_process([&] { hammer(where.store(), *shared, rounds); }));
    }
    // One is killed after every thousandth step, wherever it happens to be.
    constexpr int killed = processes / 2;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (int i = 0; i < killed; ++i) {
        while (shared->steps.load() < (i + 1) * 1000 && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::yield();
        }
        ASSERT_EQ(::kill(workers[static_cast<std::size_t>(i)], SIGKILL), 0);
    }
    for (int i = 0; i < processes; ++i) {
        EXPECT_EQ(wait_for(workers[static_cast<std::size_t>(i)]), i < killed ? -SIGKILL : 0);
    }
    EXPECT_GE(shared->number, (processes - killed) * threads * rounds);
    // A process killed between writing and recording leaves one value unrecorded, and no other trace.
    EXPECT_LE(times_written(*shared, 0), killed);
    EXPECT_EQ(times_written(*shared, 0) + times_written(*shared, 1), shared->number);
    EXPECT_EQ(shared->tokens_out_of_order.load(), 0);
    EXPECT_LT(std::chrono::nanoseconds{shared->longest_stall.load()}, 1s);
}

/// What a stopped holder finds when it is continued.
struct finding {
    bool lost_at_first_question;
    bool valid;
    holdfast::release_outcome outcome;
    std::uint64_t token;
};

TEST(stress, a_holder_stopped_past_its_ttl_knows_at_once_that_it_lost) {
    const temporary_directory where;
    std::array<int, 2> held{};
    std::array<int, 2> go{};
    std::array<int, 2> found{};
    ASSERT_EQ(::pipe(held.data()) | ::pipe(go.data()) | ::pipe(found.data()), 0);
    const auto holder = start_process([&] {
        holdfast::client client{where.store()};
        holdfast::mutex mutex{client, "ledger", {.ttl = 500ms}};
        auto lease = mutex.acquire();
        static_cast<void>(::write(held[1], "x", 1) + 0);
        char word = 0;
        static_cast<void>(::read(go[0], &word, 1) + 0);
        finding what{};
        what.lost_at_first_question = lease.lost().stop_requested();
        what.valid = static_cast<bool>(lease);
        what.token = lease.token().value;
        what.outcome = lease.release();
        static_cast<void>(::write(found[1], &what, sizeof what) + 0);
    });
    char word = 0;
    ASSERT_EQ(::read(held[0], &word, 1), 1);
    ASSERT_EQ(::kill(holder, SIGSTOP), 0);
    ASSERT_EQ(::write(go[1], "x", 1), 1);

    const auto successor = start_process([&] {
        holdfast::client client{where.store()};
        holdfast::mutex mutex{client, "ledger", {.ttl = 5s}};
        auto lease = mutex.try_acquire_for(10s);
        if (!lease) {
            throw std::runtime_error{"the stopped holder's lock was never freed"};
        }
        const auto token = lease->token().value;
        ::kill(holder, SIGCONT);
        finding what{};
        if (::read(found[0], &what, sizeof what) != sizeof what || !what.lost_at_first_question ||
            what.valid || what.outcome != holdfast::release_outcome::already_lost ||
            what.token >= token || !*lease ||
            client.inspect("ledger").holders.at(0).token.value != token) {
            throw std::runtime_error{"the late holder did not know, or took the lock along"};
        }
    });
    EXPECT_EQ(wait_for(successor), 0);
    EXPECT_EQ(wait_for(holder), 0);
    for (const auto& pipe : {held, go, found}) {
        ::close(pipe[0]);
        ::close(pipe[1]);
    }
}

}  // namespace
}  // namespace stress
