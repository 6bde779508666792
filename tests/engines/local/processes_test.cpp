// Several processes on one store. Children are forked before the parent opens an engine.
#include <atomic>
#include <fstream>
#include <iterator>
#include <local/connection_pool.hpp>
#include <local/transaction.hpp>
#include <thread>
#include <vector>

#include <fcntl.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using line = other_process::line;

class local_processes : public testing::Test {
protected:
    /// A process that takes the lock, says so, and then waits to be told or killed.
    [[nodiscard]] std::unique_ptr<other_process> holder(std::chrono::milliseconds linger = 0ms) const {
        return std::make_unique<other_process>([this, linger](const line& talk) {
            const auto who = identity("child");
            const auto store = open_local(base_.path(), who);
            talk.say(acquire(*store, exclusive("stock", owner_of(who), 1h)).result == granted ? 'g'
                                                                                              : 'n');
            if (linger.count() > 0) {
                static_cast<void>(
                    release(*store, {.name = "stock", .owner = owner_of(who), .linger = linger}));
                talk.say('l');
            }
            if (talk.hear() == 'r') {
                talk.say(
                    '0' +
                    static_cast<char>(
                        release(*store, {.name = "stock", .owner = owner_of(who)}).others_waiting));
            }
            static_cast<void>(talk.hear());
        });
    }

    /// As SQLite finds out, whoever else has locked it in the same process.
    [[nodiscard]] bool takes_itself_for_the_first() const {
        const int file = ::open((base_.path() + "/locks.db-shm").c_str(), O_RDWR | O_CLOEXEC);
        struct ::flock range {};
        range.l_type = F_WRLCK;
        range.l_start = 128;
        range.l_len = 1;
        return ::fcntl(file, F_GETLK, &range) == 0 && range.l_type == F_UNLCK;
    }

    const temporary_directory base_;
    const client_identity who_ = identity("parent");
};

TEST_F(local_processes, a_lock_held_by_one_process_is_busy_for_another) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
    const auto info = inspect(*store, "stock");
    ASSERT_EQ(info.holders.size(), 1U);
    EXPECT_EQ(info.holders[0].process, liveness::alive);
    EXPECT_EQ(info.holders[0].card.value().pid, other->pid());
}

TEST_F(local_processes, a_release_in_one_process_hints_in_another_at_once) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    counter hints;
    const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
    other->talk().say('r');
    EXPECT_EQ(other->talk().hear(), '1');
    EXPECT_TRUE(hints.reaches(1, 200ms));
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(local_processes, the_death_of_a_holder_frees_its_lock_at_once) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
    other->kill();
    EXPECT_TRUE(inspect(*store, "stock").holders.empty());
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(local_processes, the_death_of_a_holder_wakes_those_who_wait) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    counter hints;
    const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
    const int before = hints.value();
    other->kill();
    EXPECT_TRUE(hints.reaches(before + 1, 500ms));
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(local_processes, a_waiter_that_never_asked_again_is_woken_by_the_holders_death_too) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    counter hints;
    const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    other->kill();
    EXPECT_TRUE(hints.reaches(1, 500ms));
}

TEST_F(local_processes, a_zombie_holds_nothing) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    other->signal(SIGKILL);
    ::siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(other->pid()), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(local_processes, a_stopped_holder_keeps_its_lock) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    other->signal(SIGSTOP);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
}

TEST_F(local_processes, a_lingering_hold_survives_its_owners_death) {
    const auto other = holder(1h);
    ASSERT_EQ(other->talk().hear(), 'g');
    ASSERT_EQ(other->talk().hear(), 'l');
    other->kill();
    const auto store = open_local(base_.path(), who_);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, busy);
    const auto info = inspect(*store, "stock");
    ASSERT_EQ(info.holders.size(), 1U);
    EXPECT_TRUE(info.holders[0].lingering);
    EXPECT_EQ(info.holders[0].process, liveness::dead);
}

TEST_F(local_processes, a_revocation_reaches_the_holder_in_its_process) {
    other_process other{[this](const line& talk) {
        const auto who = identity("child");
        const auto store = open_local(base_.path(), who);
        counter told;
        store->attach({[&] { told.add(); }});
        talk.say(acquire(*store, exclusive("stock", owner_of(who), 1h)).result == granted ? 'g' : 'n');
        talk.say(told.reaches(1) ? 't' : 'n');
        const auto renewed = renew(*store, {"stock", claim_mode::exclusive, owner_of(who), 1s});
        talk.say(renewed.error.code == errc::revoked ? 'v' : 'n');
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(other.talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    const auto hold = inspect(*store, "stock").holders.at(0);
    EXPECT_EQ(revoke(*store, {"stock", hold.owner, hold.token, "ops", "why"}).result,
              revoke_reply::outcome::revoked);
    EXPECT_EQ(other.talk().hear(), 't');
    EXPECT_EQ(other.talk().hear(), 'v');
}

TEST_F(local_processes, a_killed_waiter_is_no_longer_counted) {
    other_process waiter{[this](const line& talk) {
        const auto store = open_local(base_.path(), identity("child"));
        const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [] {});
        talk.say('w');
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(waiter.talk().hear(), 'w');
    const auto store = open_local(base_.path(), who_);
    EXPECT_EQ(inspect(*store, "stock").waiters, 1U);
    waiter.kill();
    EXPECT_EQ(inspect(*store, "stock").waiters, 0U);
}

TEST_F(local_processes, a_child_forked_from_a_process_with_an_open_store_can_open_it_for_itself) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer allows no threads after such a fork";
#endif
    auto store = open_local(base_.path(), who_);
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_, 1))).result, granted);
    auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [] {});
    other_process child{[this](const line& talk) {
        const auto who = identity("child");
        const auto own = open_local(base_.path(), who);
        talk.say(acquire(*own, exclusive("stock", owner_of(who, 1), 1h)).result == busy ? 'b' : 'n');
        static_cast<void>(talk.hear());
        talk.say(acquire(*own, exclusive("other", owner_of(who, 2), 1h)).result == granted ? 'g' : 'n');
        static_cast<void>(talk.hear());
    }};
    EXPECT_EQ(child.talk().hear(), 'b');
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner_of(who_, 1)}).result,
              release_reply::outcome::released);
    // If the child had inherited the book-keeping of our locks instead of taking its own, we would now
    // leave as the last, take the journal with us, and come back to another one.
    watch.reset();
    store.reset();
    store = open_local(base_.path(), who_);
    child.talk().say('!');
    EXPECT_EQ(child.talk().hear(), 'g');
    EXPECT_EQ(acquire(*store, exclusive("other", owner_of(who_, 2))).result, busy);
    child.kill();
    EXPECT_EQ(acquire(*store, exclusive("other", owner_of(who_, 2))).result, granted);
}

TEST_F(local_processes, many_that_open_a_new_store_at_once_all_succeed_and_exclude_each_other) {
    const std::string path = base_.path() + "/new";
    std::vector<std::unique_ptr<other_process>> others;
    for (int number = 0; number < 6; ++number) {
        others.push_back(std::make_unique<other_process>([&](const line& talk) {
            static_cast<void>(talk.hear());
            const auto who = identity("child");
            const auto store = open_local(path, who);
            talk.say(acquire(*store, exclusive("stock", owner_of(who), 1h)).result == granted ? 'g'
                                                                                              : 'b');
            static_cast<void>(talk.hear());
        }));
    }
    for (const auto& other : others) {
        other->talk().say('!');
    }
    std::string answers;
    for (const auto& other : others) {
        answers += other->talk().hear();
    }
    std::sort(answers.begin(), answers.end());
    EXPECT_EQ(answers, "bbbbbg");
}

/// As jobs that are started together when the host has booted.
TEST_F(local_processes, after_a_reboot_several_that_open_the_store_at_once_all_succeed) {
    constexpr auto time_to_meet = 200ms;  // too short a time hides the mistake, and nothing else
    static_cast<void>(open_local(base_.path(), who_));
    const std::atomic<bool> stopping{false};
    local::database{base_.path() + "/locks.db", local::database::opening::existing,
                    clock::now() + patience, stopping}
        .execute("UPDATE boot SET id = x'00'");
    const auto open = [this](const line& talk) {
        static_cast<void>(talk.hear());
        static_cast<void>(open_local(base_.path(), identity("child")));
        talk.say('o');
        static_cast<void>(talk.hear());
    };
    const other_process one{open};
    const other_process two{open};
    {
        // Both find that they are not alone, and try again.
        const local::wake_map third{base_.path() + "/wake", local::this_process()};
        one.talk().say('!');
        two.talk().say('!');
        std::this_thread::sleep_for(time_to_meet);  // not a guess: see there
    }
    EXPECT_EQ(one.talk().hear(), 'o');
    EXPECT_EQ(two.talk().hear(), 'o');
}

TEST_F(local_processes, processes_hand_a_lock_to_each_other_without_losing_an_update) {
    const std::string path = base_.path() + "/count";
    const auto work = [&](const line& talk) {
        const auto who = identity("child");
        const auto store = open_local(base_.path(), who);
        counter hints;
        const auto watch =
            store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
        int heard = 0;
        for (std::int64_t round = 1; round <= 200;) {
            const auto reply = acquire(*store, exclusive("stock", owner_of(who, round), 1h));
            if (reply.result != granted) {
                // Hints are all that wakes it: the ttl is an hour.
                if (!hints.reaches(heard + 1)) {
                    break;
                }
                heard = hints.value();
                continue;
            }
            int count = 0;
            if (FILE* file = std::fopen(path.c_str(), "r")) {
                static_cast<void>(std::fscanf(file, "%d", &count));
                std::fclose(file);
            }
            if (FILE* file = std::fopen(path.c_str(), "w")) {
                std::fprintf(file, "%d", count + 1);
                std::fclose(file);
            }
            static_cast<void>(release(*store, {.name = "stock", .owner = owner_of(who, round)}));
            ++round;
        }
        talk.say('d');
        static_cast<void>(talk.hear());
    };
    other_process one{work};
    other_process two{work};
    other_process three{work};
    EXPECT_EQ(one.talk().hear(), 'd');
    EXPECT_EQ(two.talk().hear(), 'd');
    EXPECT_EQ(three.talk().hear(), 'd');
    int count = 0;
    FILE* file = std::fopen(path.c_str(), "r");
    ASSERT_NE(file, nullptr);
    static_cast<void>(std::fscanf(file, "%d", &count));
    std::fclose(file);
    EXPECT_EQ(count, 600);
}

TEST_F(local_processes, what_a_dead_process_keeps_on_purpose_outlives_its_other_holds) {
    other_process other{[this](const line& talk) {
        const auto who = identity("child");
        const auto store = open_local(base_.path(), who);
        const bool both = acquire(*store, permits("pool", owner_of(who, 1), 1, 2)).result == granted &&
                          acquire(*store, permits("pool", owner_of(who, 2), 1, 2)).result == granted;
        static_cast<void>(release(*store, {.name = "pool",
                                           .mode = claim_mode::permit,
                                           .owner = owner_of(who, 1),
                                           .linger = 1h,
                                           .kind = lock_kind::semaphore}));
        talk.say(both ? 'g' : 'n');
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(other.talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    other.kill();
    EXPECT_EQ(acquire(*store, permits("pool", owner_of(who_, 1), 1, 2)).result, granted);
    EXPECT_EQ(acquire(*store, permits("pool", owner_of(who_, 2), 1, 2)).result, busy);
}

TEST_F(local_processes, a_holder_that_died_before_it_was_watched_is_noticed_at_once) {
    const auto other = holder();
    ASSERT_EQ(other->talk().hear(), 'g');
    const auto store = open_local(base_.path(), who_);
    other->kill();
    counter hints;
    const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    EXPECT_TRUE(hints.reaches(1));
}

/// One that opens a connection needs the writer for that, and a fork waits for it.
TEST_F(local_processes, a_fork_does_not_stop_those_whom_it_waits_for) {
    constexpr auto time_to_begin = 50ms;  // too short a time hides the mistake, and nothing else
    const std::atomic<bool> stopping{false};
    local::wake_map wakes{base_.path() + "/wake", local::this_process()};
    local::connection_pool pool{base_.path(), local::this_time_base(), wakes, clock::now() + patience,
                                stopping};
    std::future<bool> reads;
    std::future<void> forks;
    {
        const auto writer = pool.writer(clock::now() + patience);
        reads = std::async(std::launch::async, [&] {
            return pool.reader(clock::now() + patience)->holders("stock").empty();
        });
        EXPECT_EQ(reads.wait_for(time_to_begin), std::future_status::timeout) << "it needs the writer";
        forks = std::async(std::launch::async, [&] {
            pool.rest();
            pool.resume_in_parent();
        });
        EXPECT_EQ(forks.wait_for(time_to_begin), std::future_status::timeout) << "both are at work";
    }
    EXPECT_EQ(forks.wait_for(2s), std::future_status::ready);
    EXPECT_TRUE(reads.get());
}

/// A backup or a checksum of its own directory: closing a file drops all of SQLite's locks on it.
TEST_F(local_processes, a_program_that_reads_the_files_of_its_store_lets_no_second_writer_in) {
    const other_process other{[this](const line& talk) {
        const auto who = identity("child");
        const auto store = open_local(base_.path(), who);
        talk.say('o');
        static_cast<void>(talk.hear());
        talk.say(takes_itself_for_the_first() ? 'f' : 's');
        talk.say(acquire(*store, exclusive("stock", owner_of(who)),
                         {clock::now() + 200ms, caller::may_block})
                             .error.code == errc::store_unavailable
                     ? 'u'
                     : 'w');
        static_cast<void>(talk.hear());
        talk.say(acquire(*store, exclusive("stock", owner_of(who))).result == granted ? 'g' : 'n');
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(other.talk().hear(), 'o');
    const std::atomic<bool> stopping{false};
    local::wake_map wakes{base_.path() + "/wake", local::this_process()};
    local::connection_pool pool{base_.path(), local::this_time_base(), wakes, clock::now() + patience,
                                stopping};
    {
        const auto writer = pool.writer(clock::now() + patience);
        local::transaction change{writer->raw()};
        for (const auto& file : std::filesystem::directory_iterator{base_.path()}) {
            std::ifstream content{file.path(), std::ios::binary};
            static_cast<void>(std::distance(std::istreambuf_iterator<char>{content}, {}));
        }
        other.talk().say('a');
        EXPECT_EQ(other.talk().hear(), 's') << "it would empty what we share";
        EXPECT_EQ(other.talk().hear(), 'u');
        change.commit();
    }
    other.talk().say('a');
    EXPECT_EQ(other.talk().hear(), 'g');
}

}  // namespace

}  // namespace holdfast::engines::test
