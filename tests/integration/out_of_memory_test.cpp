#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "failing_allocation.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

constexpr long most_allocations = 200;

enum ending : int { no_allocation_failed, went_on, threw, name_is_stuck };

/// The locks that an operation is tried on. A lease that is not given back outlasts the test.
struct locks {
    client& store;
    mutex plain{store, "plain"};
    shared_mutex shared{store, "shared"};
    recursive_mutex nested{store, "nested"};
    semaphore permits{store, "permits", 1};
};

using operation = std::function<void(locks&)>;

/// Whether everything can be taken and given back, by this client and by another.
[[nodiscard]] bool all_usable(locks& here, client& other) {
    for (auto* const store : {&here.store, &other}) {
        mutex plain{*store, "plain"};
        shared_mutex shared{*store, "shared"};
        recursive_mutex nested{*store, "nested"};
        semaphore permits{*store, "permits", 1};
        if (!plain.try_lock_for(5s) || !shared.try_lock_for(5s) || !nested.try_lock_for(5s) ||
            !permits.try_acquire_for(5s)) {
            return false;
        }
        plain.unlock();
        shared.unlock();
        nested.unlock();
    }
    return true;
}

/// Runs `work` without memory for one allocation. `prepare` and `finish` have enough.
[[nodiscard]] ending run(const operation& prepare, const operation& work, const operation& finish,
                         long nth) {
    client store{"memory:oom"};
    client other{"memory:oom"};
    locks here{store};
    prepare(here);
    auto result = went_on;
    has_failed = false;
    allocations_left = nth;
    try {
        work(here);
        allocations_left = -1;
        finish(here);
    } catch (const std::bad_alloc&) {
        allocations_left = -1;
        result = threw;
    }
    if (!has_failed) {
        return no_allocation_failed;
    }
    return all_usable(here, other) ? result : name_is_stuck;
}

/// How it went in a process of its own, with the status as of `waitpid`.
[[nodiscard]] int in_child(const operation& prepare, const operation& work, const operation& finish,
                           long nth) {
    const auto pid = ::fork();
    if (pid == 0) {
        const rlimit no_core{};
        ::setrlimit(RLIMIT_CORE, &no_core);
        static_cast<void>(std::freopen("/dev/null", "w", stderr));
        ::alarm(40);
        ::_exit(run(prepare, work, finish, nth));
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}

/// Every allocation of `work` fails once. It goes on, throws and has taken nothing, or ends the
/// process.
void fail_each_allocation(
    const operation& work, const operation& finish, const operation& prepare = [](locks&) {}) {
    int thrown = 0;
    for (long nth = 0; nth < most_allocations; ++nth) {
        SCOPED_TRACE("allocation " + std::to_string(nth));
        const int status = in_child(prepare, work, finish, nth);
        if (WIFSIGNALED(status)) {
            EXPECT_EQ(WTERMSIG(status), SIGABRT);
            continue;
        }
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_NE(WEXITSTATUS(status), name_is_stuck);
        if (WEXITSTATUS(status) == no_allocation_failed) {
            std::cout << nth << " allocations, " << thrown << " of them threw\n";
            return;
        }
        thrown += WEXITSTATUS(status) == threw ? 1 : 0;
    }
    FAIL() << "it does not end";
}

TEST(out_of_memory, lock) {
    fail_each_allocation([](locks& here) { here.plain.lock(); },
                         [](locks& here) { here.plain.unlock(); });
}

TEST(out_of_memory, try_lock_for) {
    fail_each_allocation([](locks& here) { static_cast<void>(here.plain.try_lock_for(10s)); },
                         [](locks& here) { here.plain.unlock(); });
}

TEST(out_of_memory, unlock) {
    fail_each_allocation([](locks& here) { here.plain.unlock(); }, [](locks&) {},
                         [](locks& here) { here.plain.lock(); });
}

TEST(out_of_memory, lock_that_can_be_stopped) {
    fail_each_allocation(
        [](locks& here) {
            const std::stop_source stop;
            static_cast<void>(here.plain.lock_unless_stopped(stop.get_token()));
        },
        [](locks& here) { here.plain.unlock(); });
}

TEST(out_of_memory, lock_shared) {
    fail_each_allocation([](locks& here) { here.shared.lock_shared(); },
                         [](locks& here) { here.shared.unlock_shared(); });
}

TEST(out_of_memory, lock_of_a_recursive_mutex) {
    fail_each_allocation([](locks& here) { here.nested.lock(); },
                         [](locks& here) { here.nested.unlock(); });
}

TEST(out_of_memory, acquire_and_release_of_a_permit) {
    fail_each_allocation([](locks& here) { here.permits.acquire().release(); }, [](locks&) {});
}

}  // namespace

}  // namespace holdfast::testing
