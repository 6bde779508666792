// A store where /proc, the clock or the process numbers are not the host's. Everything happens in
// children: the test itself stays where it is.
#include <local/database.hpp>

#include <atomic>
#include <fstream>

#include <sched.h>
#include <sys/mount.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using line = other_process::line;

constexpr char not_allowed = '-';
constexpr char opened_granted = 'g';
constexpr char opened_busy = 'b';
constexpr char refused_configuration = 'c';
constexpr char refused_for_now = 'u';
constexpr char refused_otherwise = 'o';

bool enter(int spaces) {
    return ::unshare(spaces) == 0 || ::unshare(CLONE_NEWUSER | spaces) == 0;
}

bool enter_mounts() {
    return enter(CLONE_NEWNS) && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file{path};
    file << text;
    file.close();
    return !file.fail();
}

/// Opens the store at `path` and asks for the lock, once.
char ask(const std::string& path) {
    const auto who = identity("guest");
    try {
        const auto store = open_local(path, who);
        const auto reply = acquire(*store, exclusive("stock", owner_of(who), 1h));
        return reply.result == granted                       ? opened_granted
               : reply.error.code == errc::store_unavailable ? refused_for_now
               : reply.error                                 ? refused_otherwise
                                                             : opened_busy;
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "guest: %s\n", error.what());
        if (error.code() == errc::store_unavailable) {
            return refused_for_now;
        }
        return error.code() == errc::bad_configuration ? refused_configuration : refused_otherwise;
    }
}

/// A new namespace for pids or time begins in the next child.
char in_shifted_time(const std::string& offsets, const std::function<char()>& work) {
    if (!enter(CLONE_NEWTIME) || !write_file("/proc/self/timens_offsets", offsets)) {
        return not_allowed;
    }
    return in_a_child(work);
}

class local_namespaces : public testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directory(store_);
        std::filesystem::permissions(store_, std::filesystem::perms::owner_all);
    }
    /// A process on the host that takes the lock and keeps it.
    void hold() {
        holder_ = std::make_unique<other_process>([this](const line& talk) {
            const auto who = identity("holder");
            const auto store = open_local(store_, who);
            const auto reply = acquire(*store, exclusive("stock", owner_of(who), 1h));
            talk.say(reply.result == granted ? opened_granted : opened_busy);
            static_cast<void>(talk.hear());
        });
        ASSERT_EQ(holder_->talk().hear(), opened_granted);
    }
    [[nodiscard]] static char guest(const std::function<char()>& work) { return in_a_child(work); }

    const temporary_directory base_;
    const std::string store_ = base_.path() + "/store";
    std::unique_ptr<other_process> holder_;
};

#define HOLDFAST_EXPECT_ANSWER(answer, expected)                        \
    const char answered = (answer);                                     \
    if (answered == not_allowed) {                                      \
        GTEST_SKIP() << "this needs namespaces, which we may not make"; \
    }                                                                   \
    EXPECT_EQ(answered, expected)

TEST_F(local_namespaces, with_a_proc_of_processes_alone_it_is_refused_and_holds_are_kept) {
    hold();
    HOLDFAST_EXPECT_ANSWER(
        guest([this] {
            if (!enter_mounts() || ::mount("proc", "/proc", "proc", 0, "subset=pid") != 0) {
                return not_allowed;
            }
            return ask(store_);
        }),
        refused_configuration);
    EXPECT_EQ(ask(store_), opened_busy);
}

TEST_F(local_namespaces, a_new_store_that_is_refused_is_not_begun) {
    const auto fresh = base_.path() + "/fresh";
    HOLDFAST_EXPECT_ANSWER(
        guest([&] {
            if (!enter_mounts() || ::mount("tmpfs", "/proc", "tmpfs", 0, nullptr) != 0) {
                return not_allowed;
            }
            return ask(fresh);
        }),
        refused_configuration);
    EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(local_namespaces, in_a_chroot_without_proc_it_is_refused_and_holds_are_kept) {
    hold();
    HOLDFAST_EXPECT_ANSWER(guest([this] {
                               if (::chroot(base_.path().c_str()) != 0 &&
                                   (!enter(CLONE_NEWUSER) || ::chroot(base_.path().c_str()) != 0)) {
                                   return not_allowed;
                               }
                               return ask("/store");
                           }),
                           refused_configuration);
    EXPECT_EQ(ask(store_), opened_busy);
}

class local_with_another_boot_id : public local_namespaces {
protected:
    [[nodiscard]] char ask_with_another_boot_id() const {
        const std::string other = base_.path() + "/boot_id";
        if (!write_file(other, "12345678-1234-1234-1234-123456789abc\n")) {
            return not_allowed;
        }
        return guest([&] {
            if (!enter_mounts() || ::mount(other.c_str(), "/proc/sys/kernel/random/boot_id", nullptr,
                                           MS_BIND, nullptr) != 0) {
                return not_allowed;
            }
            return ask(store_);
        });
    }
};

TEST_F(local_with_another_boot_id, it_is_refused_while_others_have_it_open) {
    hold();
    HOLDFAST_EXPECT_ANSWER(ask_with_another_boot_id(), refused_configuration);
    EXPECT_EQ(ask(store_), opened_busy);
}

/// The file that says who has it open is a new one then.
TEST_F(local_with_another_boot_id, it_is_refused_also_after_wake_was_deleted) {
    hold();
    std::filesystem::remove(store_ + "/wake");
    HOLDFAST_EXPECT_ANSWER(ask_with_another_boot_id(), refused_configuration);
    EXPECT_EQ(ask(store_), opened_busy);
}

TEST_F(local_namespaces, with_a_shifted_clock_it_is_refused_and_holds_are_kept) {
    hold();
    HOLDFAST_EXPECT_ANSWER(
        guest(
            [this] { return in_shifted_time("boottime 100000 0\n", [this] { return ask(store_); }); }),
        refused_configuration);
    EXPECT_EQ(ask(store_), opened_busy);
}

TEST_F(local_namespaces, a_store_of_a_shifted_clock_is_refused_on_the_host) {
    HOLDFAST_EXPECT_ANSWER(
        guest(
            [this] { return in_shifted_time("boottime 100000 0\n", [this] { return ask(store_); }); }),
        opened_granted);
    EXPECT_EQ(ask(store_), refused_configuration);
}

TEST_F(local_namespaces, a_time_namespace_that_shifts_nothing_is_as_good_as_the_hosts) {
    hold();
    HOLDFAST_EXPECT_ANSWER(
        guest([this] { return in_shifted_time("monotonic 0 0\n", [this] { return ask(store_); }); }),
        opened_busy);
}

TEST_F(local_namespaces, in_another_pid_namespace_a_living_holder_is_not_taken_for_dead) {
    hold();
    HOLDFAST_EXPECT_ANSWER(guest([this] {
                               return enter(CLONE_NEWPID) ? in_a_child([this] { return ask(store_); })
                                                          : not_allowed;
                           }),
                           opened_busy);
}

/// Both in a new pid namespace, whose numbers the /proc they see does not know.
TEST_F(local_namespaces, with_the_proc_of_another_pid_namespace_a_living_holder_is_not_taken_for_dead) {
    HOLDFAST_EXPECT_ANSWER(guest([this] {
                               if (!enter(CLONE_NEWPID)) {
                                   return not_allowed;
                               }
                               return in_a_child([this] {
                                   hold();
                                   return ask(store_);
                               });
                           }),
                           opened_busy);
}

TEST_F(local_namespaces, on_a_full_disk_it_is_unavailable) {
    const auto on_a_disk_of = [&](int kilobytes) {
        return guest([&] {
            const std::string size = "mode=0700,size=" + std::to_string(kilobytes) + "k";
            if (!enter_mounts() || ::mount("t", store_.c_str(), "tmpfs", 0, size.c_str()) != 0) {
                return not_allowed;
            }
            return ask(store_);
        });
    };
    HOLDFAST_EXPECT_ANSWER(on_a_disk_of(16), refused_for_now);
    for (const int kilobytes : {4, 32, 48, 64, 72, 80, 96, 112, 128}) {
        const char answer = on_a_disk_of(kilobytes);
        EXPECT_TRUE(answer == refused_for_now || answer == opened_granted) << kilobytes << answer;
    }
}

TEST_F(local_namespaces, many_who_open_a_store_of_an_earlier_boot_at_once_are_all_let_in) {
    ASSERT_EQ(ask(store_), opened_granted);
    {
        std::atomic<bool> running{};
        local::database{store_ + "/locks.db", local::database::opening::existing,
                        clock::now() + patience, running}
            .execute("UPDATE boot SET id = x'00'");
    }
    std::vector<std::unique_ptr<other_process>> guests;
    for (int count = 0; count < 6; ++count) {
        guests.push_back(
            std::make_unique<other_process>([this](const line& talk) { talk.say(ask(store_)); }));
    }
    int holders = 0;
    for (const auto& each : guests) {
        const char answer = each->talk().hear();
        EXPECT_TRUE(answer == opened_granted || answer == opened_busy) << answer;
        holders += answer == opened_granted ? 1 : 0;
    }
    EXPECT_GE(holders, 1);
}

}  // namespace

}  // namespace holdfast::engines::test
