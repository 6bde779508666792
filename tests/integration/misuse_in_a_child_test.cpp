#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <span>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

/// What a forked child inherits.
class misuse_in_a_child_test : public ::testing::Test {
protected:
    /// What `work` returned in the child; −1 when it hung, −2 when it crashed.
    template <class Work>
    [[nodiscard]] static int in_child(Work work) {
        const auto pid = ::fork();
        if (pid == 0) {
            ::_exit(work());
        }
        int status = 0;
        if (!eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; })) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
            return -1;
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    }
};

TEST_F(misuse_in_a_child_test, an_executor_may_leave_its_scope) {
    auto lanes = std::make_unique<keyed_executor>(keyed_executor_options{.threads = 2});
    EXPECT_EQ(lanes->submit("key", [] { return 7; }).get(), 7);
    EXPECT_EQ(in_child([&] {
                  lanes.reset();
                  return 0;
              }),
              0);
    EXPECT_EQ(lanes->submit("key", [] { return 8; }).get(), 8);
}

TEST_F(misuse_in_a_child_test, nor_does_one_hang_that_was_busy) {
    gate go_on;
    auto lanes = std::make_unique<keyed_batcher<int, int>>(
        keyed_executor_options{.threads = 1}, 4, [&](const std::string&, std::span<int> all) {
            go_on.wait();
            return std::vector<int>(all.begin(), all.end());
        });
    auto first = lanes->submit("key", 1);
    auto second = lanes->submit("key", 2);
    EXPECT_EQ(in_child([&] {
                  lanes.reset();
                  return 0;
              }),
              0);
    go_on.open();
    EXPECT_EQ(first.get() + second.get(), 3);
}

TEST_F(misuse_in_a_child_test, an_executor_of_the_parents_refuses_everything) {
    keyed_executor lanes{{.threads = 1}};
    EXPECT_EQ(in_child([&] {
                  const bool refused =
                      error_of([&] { return lanes.submit("key", [] {}); }) == errc::forked &&
                      error_of([&] { return lanes.try_submit("key", [] {}); }) == errc::forked;
                  lanes.close();
                  return refused && lanes.cancel() == 0 && lanes.waiting() == 0 ? 0 : 1;
              }),
              0);
}

TEST_F(misuse_in_a_child_test, locks_of_the_parents_stay_the_parents) {
    client store{fresh_store()};
    client witness{store.store()};
    auto lock = std::make_unique<mutex>(store, "x");
    auto nested = std::make_unique<recursive_mutex>(store, "y");
    auto several = std::make_unique<multi_lock>(store, std::vector<std::string>{"z", "w"});
    lock->lock();
    nested->lock();
    several->lock();
    EXPECT_EQ(in_child([&] {
                  nested->unlock();
                  const bool refused = error_of([&] { nested->lock(); }) == errc::forked;
                  lock.reset();
                  nested.reset();
                  several.reset();
                  return refused ? 0 : 1;
              }),
              0);
    EXPECT_EQ(witness.list().locks.size(), 4U);
    EXPECT_EQ(nested->depth(), 1U);
    lock->unlock();
    nested->unlock();
    several->unlock();
    EXPECT_TRUE(witness.list().locks.empty());
}

}  // namespace

}  // namespace holdfast::testing
