#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <stop_token>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

constexpr int hung = -1;
constexpr int crashed = -2;

/// A forked child. It runs `work` and nothing else: no destructors, no reports.
class child {
public:
    template <class Work>
    explicit child(Work work) : pid_{::fork()} {
        if (pid_ == 0) {
            ::_exit(work());
        }
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        if (!ended_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    /// What `work` returned.
    [[nodiscard]] int result() {
        int status = 0;
        ended_ = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
        if (!ended_) {
            return hung;
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : crashed;
    }

private:
    pid_t pid_;
    bool ended_{};
};

template <class Call>
[[nodiscard]] bool is_refused(Call&& call) {
    return error_of(std::forward<Call>(call)) == errc::forked;
}

#if defined(__has_feature)
#define HOLDFAST_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define HOLDFAST_TEST_HAS_FEATURE(name) 0
#endif

/// The address sanitizer's allocator has locks that stay taken in the child if another thread of the
/// parent allocates at the moment of the fork (gcc 12, clang 14): 3 of 120 runs hung in `malloc`. The C
/// library's own allocator prepares for forks.
#if defined(__SANITIZE_ADDRESS__) || HOLDFAST_TEST_HAS_FEATURE(address_sanitizer)
constexpr bool children_may_allocate = false;
#else
constexpr bool children_may_allocate = true;
#endif

/// Nor can the thread sanitizer follow threads that are started in the child of a process with threads.
#if defined(__SANITIZE_THREAD__) || HOLDFAST_TEST_HAS_FEATURE(thread_sanitizer)
constexpr bool children_may_start_threads = false;
#else
constexpr bool children_may_start_threads = children_may_allocate;
#endif

/// With the store that processes share.
class fork_test : public ::testing::Test {
protected:
    ~fork_test() override {
        held_ = {};
        client_.reset();
        witness_.reset();
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] std::vector<holder_info> holders() { return witness_->inspect("stock").holders; }

    const std::filesystem::path directory_{std::filesystem::temp_directory_path() /
                                           owner_id::random_client().client_text()};
    const std::string address_{"local:" + directory_.string()};
    std::optional<client> witness_{std::in_place, address_};
    std::optional<client> client_{std::in_place, address_};
    lease held_;
};

TEST_F(fork_test, locking_in_the_child_fails) {
    mutex stock{*client_, "stock"};
    shared_mutex catalogue{*client_, "catalogue"};
    semaphore seats{*client_, "seats", 2};
    child forked{[&] {
        const bool all = is_refused([&] { stock.lock(); }) &&
                         is_refused([&] { return stock.try_lock(); }) &&
                         is_refused([&] { return stock.try_lock_for(1s); }) &&
                         is_refused([&] { return stock.acquire(); }) &&
                         is_refused([&] { catalogue.lock_shared(); }) &&
                         is_refused([&] { return seats.try_acquire(); });
        return all ? 0 : 1;
    }};
    EXPECT_EQ(forked.result(), 0);
}

TEST_F(fork_test, asking_in_the_child_fails) {
    latch ready{*client_, "ready"};
    child forked{[&] {
        const bool all = is_refused([&] { return client_->inspect("stock"); }) &&
                         is_refused([&] { return client_->list(); }) &&
                         is_refused([&] { return client_->revoke("stock", {}, {}, ""); }) &&
                         is_refused([&] { return ready.count(); }) &&
                         is_refused([&] { ready.wait(); }) && is_refused([&] { ready.count_down(); });
        return all ? 0 : 1;
    }};
    EXPECT_EQ(forked.result(), 0);
}

TEST_F(fork_test, destructors_in_the_child_leave_the_parents_lock_alone) {
    std::optional<mutex> stock{std::in_place, *client_, "stock"};
    held_ = stock->acquire();
    child forked{[&] {
        held_ = {};
        stock.reset();
        client_.reset();
        return 0;
    }};
    ASSERT_EQ(forked.result(), 0);
    EXPECT_TRUE(held_);
    ASSERT_EQ(holders().size(), 1U);
    EXPECT_EQ(holders().at(0).token, held_.token());
    EXPECT_EQ(held_.release(), release_outcome::released);
}

TEST_F(fork_test, unlocking_in_the_child_leaves_the_parents_lock_alone) {
    mutex stock{*client_, "stock"};
    stock.lock();
    child forked{[&] {
        stock.unlock();
        return 0;
    }};
    ASSERT_EQ(forked.result(), 0);
    EXPECT_EQ(holders().size(), 1U);
    stock.unlock();
    EXPECT_TRUE(holders().empty());
}

TEST_F(fork_test, shutdown_in_the_child_leaves_the_parents_lock_alone) {
    held_ = mutex{*client_, "stock"}.acquire();
    child forked{[&] { return static_cast<int>(client_->shutdown(1s).size()); }};
    ASSERT_EQ(forked.result(), 0);
    EXPECT_TRUE(held_);
    EXPECT_EQ(holders().size(), 1U);
}

TEST_F(fork_test, a_lease_of_the_parents_is_no_lease_in_the_child) {
    held_ = mutex{*client_, "stock"}.acquire();
    child forked{[&] { return held_ || !held_.lost().stop_requested() ? 1 : 0; }};
    EXPECT_EQ(forked.result(), 0);
    EXPECT_TRUE(held_);
}

class fork_client_test : public fork_test {
protected:
    void SetUp() override {
        if (!children_may_start_threads) {
            GTEST_SKIP() << "not with the thread or address sanitizer";
        }
    }
};

TEST_F(fork_client_test, a_client_of_the_childs_own_is_kept_out_by_the_parent) {
    held_ = mutex{*client_, "stock"}.acquire();
    child forked{[&] {
        client own{address_};
        return mutex{own, "stock"}.try_lock() ? 1 : 0;
    }};
    EXPECT_EQ(forked.result(), 0);
}

TEST_F(fork_client_test, a_client_of_the_childs_own_gets_the_lock_when_the_parent_lets_go) {
    held_ = mutex{*client_, "stock"}.acquire();
    child forked{[&] {
        client own{address_};
        const auto mine = mutex{own, "stock"}.try_acquire_for(patience);
        return mine && mine->token() > held_.token() ? 0 : 1;
    }};
    ASSERT_TRUE(eventually([&] { return witness_->inspect("stock").waiters.value_or(1) > 0; }));
    held_.release();
    EXPECT_EQ(forked.result(), 0);
}

TEST_F(fork_client_test, the_lock_of_a_child_that_dies_is_free_again) {
    child forked{[&] {
        client own{address_};
        mutex stock{own, "stock"};
        stock.lock();
        return 0;  // without unlocking, and without destructors of the parent's things
    }};
    ASSERT_EQ(forked.result(), 0);
    mutex stock{*client_, "stock"};
    EXPECT_TRUE(stock.try_lock_for(5s));
    stock.unlock();
}

TEST_F(fork_test, the_parents_lease_is_renewed_while_the_child_lives_and_after_it_died) {
    held_ = mutex{*client_, "stock", {.ttl = 600ms}}.acquire();
    child forked{[&] {
        client_.reset();
        return 0;
    }};
    ASSERT_EQ(forked.result(), 0);
    const auto at_first = held_.valid_until();
    EXPECT_TRUE(eventually([&] { return held_.valid_until() > at_first + 600ms; }));
    EXPECT_TRUE(held_);
}

/// A fork meets them while they open and close the store.
TEST_F(fork_client_test, clients_that_come_and_go_neither_hang_a_child_nor_leave_the_store_to_it) {
    std::vector<std::jthread> crowd;
    for (int i = 0; i < 2; ++i) {
        crowd.emplace_back([this](const std::stop_token& enough) {
            while (!enough.stop_requested()) {
                client passing{address_};
            }
        });
    }
    std::vector<std::unique_ptr<child>> idle;
    for (int round = 0; round < 20 && !HasFailure(); ++round) {
        idle.push_back(std::make_unique<child>([] {
            ::pause();
            return 0;
        }));
        child busy{[&] {
            client own{address_};
            mutex{own, "stock"}.lock();
            return 0;
        }};
        EXPECT_EQ(busy.result(), 0);
        EXPECT_TRUE((mutex{*client_, "other"}.try_acquire_for(5s)));
    }
    crowd.clear();
    EXPECT_TRUE((mutex{*witness_, "other"}.try_acquire_for(1s)));
}

/// Forks again and again while other threads of the parent are in the middle of something.
class busy_fork_test : public ::testing::Test {
protected:
    void SetUp() override {
        if (!children_may_allocate) {
            GTEST_SKIP() << "not with the address sanitizer";
        }
    }

    busy_fork_test() {
        for (int i = 0; i < 2; ++i) {
            crowd_.emplace_back([this, i](const std::stop_token& enough) {
                mutex mine{client_, "mine " + std::to_string(i)};
                while (!enough.stop_requested()) {
                    mine.lock();
                    mine.unlock();
                }
            });
        }
    }

    template <class Call>
    void expect_refusal(Call call) {
        for (int round = 0; round < 50 && !HasFailure(); ++round) {
            child forked{[&] { return is_refused(call) ? 0 : 1; }};
            EXPECT_EQ(forked.result(), 0);
        }
    }

    client client_{fresh_store()};
    mutex stock_{client_, "stock"};
    latch ready_{client_, "ready"};
    std::vector<std::jthread> crowd_;
};

TEST_F(busy_fork_test, locking_in_the_child_fails_at_once) {
    expect_refusal([&] { return stock_.try_lock(); });
}

TEST_F(busy_fork_test, asking_in_the_child_fails_at_once) {
    expect_refusal([&] { return client_.inspect("stock"); });
}

TEST_F(busy_fork_test, using_a_latch_in_the_child_fails_at_once) {
    expect_refusal([&] { return ready_.count(); });
}

}  // namespace

}  // namespace holdfast::testing
