#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/holdfast.hpp>
#include <holdfast/testing/eventually.hpp>

#include "child_process.hpp"
#include "java_driver.hpp"
#include "probe.hpp"

/// What the tests with a real Redisson have in common: a server, a JVM that stays for all tests of a
/// suite, and a C++ client. Every test has a lock name and Java threads of its own, so that a test that
/// fails leaves nothing in the way of the next.
namespace holdfast::interop {

using testing::eventually;
using testing::patience;

/// A wake-up that comes within this time was a message: it is far less than any lease that a test holds
/// while somebody waits.
inline constexpr std::chrono::seconds promptly{5};
/// In milliseconds, for Java: as long as no test takes.
inline constexpr int long_lease = 60'000;
/// In milliseconds, for Java: longer than any wait that succeeds.
inline constexpr int long_wait = 30'000;
/// The ttl of Java's locks without a lease, and of those of C++ that are to be renewed or lost.
inline constexpr std::chrono::milliseconds short_ttl{1500};
inline constexpr auto well_past_short_ttl = short_ttl + short_ttl / 4;

template <class Work>
[[nodiscard]] auto in_background(Work work) {
    return std::async(std::launch::async, std::move(work));
}

template <class Result>
[[nodiscard]] bool is_done(const std::future<Result>& work) {
    return work.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

template <class Result>
[[nodiscard]] bool gets_done(const std::future<Result>& work,
                             std::chrono::milliseconds limit = promptly) {
    return work.wait_for(limit) == std::future_status::ready;
}

/// The error a call ends with; none when it ends well.
template <class Call>
[[nodiscard]] std::error_code error_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

/// Whether a condition holds all the time until `span` is over.
template <class Condition>
[[nodiscard]] bool holds_throughout(std::chrono::milliseconds span, Condition&& condition) {
    return !eventually([&] { return !condition(); }, span);
}

/// The C++ side waits in a thread of its own for `lock` (a mutex or fair_mutex), or for the writer's
/// side of a shared_mutex.
template <class Lock>
[[nodiscard]] std::future<std::optional<lease>> waits_for(Lock& lock) {
    return in_background([&lock] { return lock.try_acquire_for(patience); });
}

[[nodiscard]] inline std::future<std::optional<lease>> waits_to_read(shared_mutex& lock) {
    return in_background([&lock] { return lock.try_acquire_shared_for(patience); });
}

/// A command for the driver, about the lock called `name`.
template <class... Arguments>
[[nodiscard]] std::string about(const std::string& name, const std::string& verb,
                                const Arguments&... arguments) {
    std::ostringstream text;
    text << verb << ' ' << name;
    ((text << ' ' << arguments), ...);
    return text.str();
}

/// Adds one to a counter by GET and SET, again and again; `take` returns what is held meanwhile.
template <class Take>
void count_up(std::uint16_t port, const std::string& key, int times, Take&& take) {
    probe store{port};
    for (int done = 0; done < times; ++done) {
        const auto held = take();
        const auto before = store.text({"GET", key});
        store.text({"SET", key, std::to_string(before.empty() ? 1 : std::stoll(before) + 1)});
    }
}

/// What the tests of a suite run against.
struct environment {
    /// Keeps the servers.
    std::shared_ptr<void> servers;
    /// Where the probe looks first.
    std::uint16_t port;
    /// The store's address, for C++.
    std::string store;
    /// The driver's arguments.
    std::vector<std::string> java;
};

[[nodiscard]] environment single_server();
[[nodiscard]] environment servers_with_sentinels();
[[nodiscard]] environment cluster_of_three();

/// The parameter is the release of Redisson: "redisson-3" or "redisson-4".
class interop_stage : public ::testing::TestWithParam<std::string> {
protected:
    static void TearDownTestSuite();
    void SetUp() override;
    /// Called once for a suite.
    [[nodiscard]] virtual environment make_environment() const { return single_server(); }

    /// Has a Java thread do something about this test's lock, and waits for the answer.
    template <class... Arguments>
    std::string java(const std::string& thread, const std::string& verb,
                     const Arguments&... arguments) {
        return machine().ask(own(thread), about(name_, verb, arguments...));
    }
    /// The same without waiting.
    template <class... Arguments>
    [[nodiscard]] std::future<std::string> java_begins(const std::string& thread,
                                                       const std::string& verb,
                                                       const Arguments&... arguments) {
        return machine().send(own(thread), about(name_, verb, arguments...));
    }
    /// What the call throws in Java; empty when it ends well.
    [[nodiscard]] std::string java_error_of(const std::string& thread, const std::string& verb);
    /// The holder id of a Java thread.
    [[nodiscard]] std::string java_holder(const std::string& thread);

    /// Another JVM like the suite's, to be killed.
    [[nodiscard]] std::unique_ptr<java_driver> another_machine() const;
    /// Another process, which holds this test's lock for as long as it lives and a `ttl` more.
    [[nodiscard]] std::unique_ptr<child_process> another_process(
        const std::string& kind, std::chrono::milliseconds ttl = short_ttl) const;
    /// Takes this test's lock from whoever has it, as an operator would.
    [[nodiscard]] bool revoke();

    /// Four threads of each side add one to a counter under protection of this test's lock. Returns
    /// the counter's value at the end.
    template <class Take>
    [[nodiscard]] std::string count_together(const std::string& object, Take&& take);

    /// Waits until a Java thread has nothing more to try and sleeps until it is told of a release. A
    /// waiter asks once more after it has begun to listen: a release before that needs no message.
    [[nodiscard]] bool java_sleeps(const std::string& thread);
    /// The same seen from the server: so many clients listen to a channel, and nobody asks any more.
    [[nodiscard]] bool listens_quietly(const std::string& channel, std::int64_t clients = 1);
    /// In a cluster some are listened to in the sharded way.
    [[nodiscard]] virtual std::int64_t listeners(const std::string& channel) {
        return redis_->listeners(channel);
    }
    [[nodiscard]] std::string braced(const std::string& prefix) const {
        return prefix + "{" + name_ + "}";
    }
    [[nodiscard]] std::string lock_channel() const { return braced("redisson_lock__channel:"); }

    [[nodiscard]] static java_driver& machine() { return *machine_; }
    [[nodiscard]] std::string own(const std::string& thread) const { return thread + "-" + name_; }

    static constexpr int threads_per_side = 4;
    static constexpr int counts_per_thread = 40;

    /// The store's address.
    std::string store_;
    std::string name_;
    std::optional<probe> redis_;
    std::optional<client> client_;

private:
    static std::unique_ptr<environment> environment_;
    static std::unique_ptr<java_driver> machine_;
};

template <class Take>
std::string interop_stage::count_together(const std::string& object, Take&& take) {
    const auto key = braced("counter:");
    std::vector<std::future<std::string>> java_threads;
    std::vector<std::future<void>> cpp_threads;
    for (int index = 0; index < threads_per_side; ++index) {
        const auto command = "count " + object;
        java_threads.push_back(
            java_begins("counter" + std::to_string(index), command, key, counts_per_thread));
        cpp_threads.push_back(
            in_background([&] { count_up(environment_->port, key, counts_per_thread, take); }));
    }
    for (auto& work : cpp_threads) {
        work.get();
    }
    for (auto& work : java_threads) {
        EXPECT_TRUE(gets_done(work, patience));
        EXPECT_EQ(work.get(), std::to_string(counts_per_thread));
    }
    return redis_->text({"GET", key});
}

}  // namespace holdfast::interop

/// Instantiated under a name for each release, so that a run of one of them starts one JVM.
#define HOLDFAST_WITH_EVERY_REDISSON(suite)                                       \
    INSTANTIATE_TEST_SUITE_P(redisson_4, suite, ::testing::Values("redisson-4")); \
    INSTANTIATE_TEST_SUITE_P(redisson_3, suite, ::testing::Values("redisson-3"))
