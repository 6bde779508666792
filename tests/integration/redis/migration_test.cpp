#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>
#include <support/redis_servers.hpp>

/// The steps of docs/migrating.md, from a lock by SET NX to one of ours.
namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;
using testing_support::redis_server;

class redis_migration : public ::testing::Test {
protected:
    /// False: somebody else holds it.
    using attempt = std::function<bool(const std::function<void()>& work)>;

    [[nodiscard]] attempt old_release() {
        return [this](const auto& work) {
            const auto value = owner_id::random_client().client_text();
            if (!take_old(value)) {
                return false;
            }
            work();
            give_back_old(value);
            return true;
        };
    }
    [[nodiscard]] attempt both_release() {
        return [this](const auto& work) {
            auto held = lock_.try_acquire_for(30s);
            const auto value = held ? held->owner().text() : "";
            if (!held || !take_old(value)) {
                return false;
            }
            work();
            held->check();
            give_back_old(value);
            return true;
        };
    }
    [[nodiscard]] attempt new_release() {
        return [this](const auto& work) {
            auto held = lock_.try_acquire_for(30s);
            if (held) {
                work();
                held->check();
            }
            return held.has_value();
        };
    }

    /// Two threads of each release, each of which gets in a number of times.
    void compete(const attempt& one, const attempt& other) {
        std::vector<std::jthread> threads;
        for (const auto& release : {one, other, one, other}) {
            threads.emplace_back([this, release] {
                for (int entered = 0; entered < 25;) {
                    entered += release([this] { enter(); }) ? 1 : 0;
                }
            });
        }
    }

    std::atomic<int> entered_{};
    std::atomic<int> together_{};

private:
    [[nodiscard]] bool take_old(const std::string& value) {
        return server_.cli({"SET", "old-lock", value, "NX", "PX", "60000"}) == "OK";
    }
    void give_back_old(const std::string& value) {
        server_.cli({"EVAL",
                     "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                     "return redis.call('DEL', KEYS[1]) end return 0",
                     "1", "old-lock", value});
    }
    void enter() {
        together_ += inside_.fetch_add(1) == 0 ? 0 : 1;
        ++entered_;
        std::this_thread::yield();
        --inside_;
    }

    redis_server server_;
    client client_{"redis://127.0.0.1:" + std::to_string(server_.port())};
    mutex lock_{client_, "new-lock"};
    std::atomic<int> inside_{};
};

TEST_F(redis_migration, no_step_has_two_holders) {
    compete(old_release(), both_release());
    compete(both_release(), new_release());
    EXPECT_EQ(entered_, 200);
    EXPECT_EQ(together_, 0);
}

TEST_F(redis_migration, without_the_step_in_between_there_are_two) {
    EXPECT_TRUE(old_release()([&] { EXPECT_TRUE(new_release()([] {})); }));
}

}  // namespace
}  // namespace holdfast::testing
