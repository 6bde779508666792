// What becomes of holders, waiters and newcomers when somebody meddles with the files of a store that
// is in use: nobody crashes, and no lock has two holders.
#include <local/connection_pool.hpp>

#include <algorithm>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

enum class use { held, waiting, idle };

struct damage {
    const char* name;
    void (*apply)(const std::string& path);
};

void delete_it(const std::string& path) {
    std::filesystem::remove(path);
}

void empty_it(const std::string& path) {
    std::filesystem::resize_file(path, 0);
}

void cut_it(const std::string& path) {
    std::filesystem::resize_file(path,
                                 std::min<std::uintmax_t>(8192, std::filesystem::file_size(path) / 2));
}

void replace_it(const std::string& path) {
    std::filesystem::copy_file(path, path + ".copy");
    std::filesystem::rename(path + ".copy", path);
}

void scribble_on_it(const std::string& path) {
    std::string bytes(std::filesystem::file_size(path), '\0');
    std::uint32_t state = 12345;
    for (char& byte : bytes) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<char>(state >> 24);
    }
    std::fstream{path, std::ios::in | std::ios::out | std::ios::binary} << bytes;
}

void pass_the_checks_interval() {
    const auto interval = 2 * local::connection_pool::between_checks;
    std::this_thread::sleep_for(interval);  // not a guess: nobody looks more often
}

/// A name for the test, and for the file.
struct part {
    const char* name;
    const char* file;
};

using damage_case = std::tuple<part, damage, use>;

std::string name_of(const damage_case& each) {
    const use state = std::get<2>(each);
    return std::string{std::get<0>(each).name} + "_" + std::get<1>(each).name +
           (state == use::held      ? "_held"
            : state == use::waiting ? "_waiting"
                                    : "_idle");
}

const auto all_parts = testing::Values(part{"database", "locks.db"}, part{"log", "locks.db-wal"},
                                       part{"index", "locks.db-shm"}, part{"wake", "wake"});

/// A client in a process of its own, which does what it is told and answers '+' or '-'.
class client_process {
public:
    explicit client_process(const std::string& path)
        : process_{[path](const other_process::line& line) { serve(path, line); }} {
        std::signal(SIGPIPE, SIG_IGN);
        EXPECT_EQ(process_.talk().hear(), '+');
    }

    /// Until its own thread has found out whom it waits for, and leaves the files alone.
    void settle() const {
        const std::string open_files = "/proc/" + std::to_string(process_.pid()) + "/fd";
        const auto watches_a_process = [&] {
            std::error_code gone;
            for (const auto& each : std::filesystem::directory_iterator{open_files, gone}) {
                if (std::filesystem::read_symlink(each, gone).string().find("pidfd") !=
                    std::string::npos) {
                    return true;
                }
            }
            return false;
        };
        const auto deadline = clock::now() + patience;
        while (!watches_a_process() && clock::now() < deadline) {
            std::this_thread::yield();
        }
        EXPECT_TRUE(watches_a_process());
    }

    [[nodiscard]] bool ask(char wanted) {
        process_.talk().say(wanted);
        const char answer = process_.talk().hear();
        EXPECT_TRUE(answer == '+' || answer == '-') << "it crashed at " << wanted;
        return answer == '+';
    }

private:
    static void serve(const std::string& path, const other_process::line& line) {
        const auto who = identity("other");
        auto store = open_local(path, who);
        std::unique_ptr<subscription> watch;
        const auto answer = [&](bool good) { line.say(good ? '+' : '-'); };
        answer(true);
        for (char wanted = line.hear(); wanted != 0; wanted = line.hear()) {
            if (wanted == 'a') {
                answer(acquire(*store, exclusive("stock", owner_of(who))).result == granted);
            } else if (wanted == 'w') {
                watch = store->offers().watching->watch("stock", lock_kind::mutex, [] {});
                answer(acquire(*store, exclusive("stock", owner_of(who, 2))).result == busy);
            } else if (wanted == 'n') {
                answer(renew(*store, {.name = "stock", .owner = owner_of(who), .ttl = 1min}).result ==
                       renew_reply::outcome::renewed);
            } else if (wanted == 'r') {
                answer(release(*store, {.name = "stock", .owner = owner_of(who)}).result ==
                       release_reply::outcome::released);
            } else if (wanted == 'f') {
                const ::pid_t child = ::fork();
                if (child == 0) {
                    ::_exit(0);
                }
                answer(child > 0 && ::waitpid(child, nullptr, 0) == child);
            } else if (wanted == 'e') {
                watch.reset();
                store.reset();
                answer(true);
            }
        }
    }

    other_process process_;
};

class damaged_store : public testing::TestWithParam<damage_case> {
protected:
    void damage_it() const {
        std::get<1>(GetParam()).apply(base_.path() + "/" + std::get<0>(GetParam()).file);
        pass_the_checks_interval();
    }
    [[nodiscard]] bool newcomer_gets_it() const {
        try {
            const auto who = identity("newcomer");
            const auto store = open_local(base_.path(), who);
            return acquire(*store, exclusive("stock", owner_of(who)), {clock::now() + 2s}).result ==
                   granted;
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code().category(), error_category()) << error.what();
            return false;
        }
    }

    const temporary_directory base_;
};

TEST_P(damaged_store, has_no_second_holder_and_nobody_crashes) {
    const use state = std::get<2>(GetParam());
    // An earlier client, so that a part of the store is in each file.
    {
        client_process earlier{base_.path()};
        ASSERT_TRUE(earlier.ask('a'));
        ASSERT_TRUE(earlier.ask('r'));
        ASSERT_TRUE(earlier.ask('e'));
    }
    client_process first{base_.path()};
    client_process waiter{base_.path()};
    ASSERT_TRUE(first.ask('a'));
    if (state == use::waiting) {
        ASSERT_TRUE(waiter.ask('w'));
        waiter.settle();
    }
    if (state == use::idle) {
        ASSERT_TRUE(first.ask('r'));
    }
    damage_it();
    if (state == use::idle) {
        const bool one = first.ask('a');
        const bool two = newcomer_gets_it();
        EXPECT_FALSE(one && two);
    } else {
        EXPECT_FALSE(newcomer_gets_it());
        // It closes its connections, and opens new ones for the renewal.
        ASSERT_TRUE(first.ask('f'));
        static_cast<void>(first.ask('n'));
        EXPECT_FALSE(newcomer_gets_it());
        EXPECT_FALSE(newcomer_gets_it());
        EXPECT_FALSE(waiter.ask('a'));
        static_cast<void>(first.ask('r'));
    }
    EXPECT_TRUE(waiter.ask('e'));
    EXPECT_TRUE(first.ask('e'));
}

INSTANTIATE_TEST_SUITE_P(
    files, damaged_store,
    testing::Combine(all_parts,
                     testing::Values(damage{"deleted", delete_it}, damage{"emptied", empty_it},
                                     damage{"cut", cut_it}, damage{"replaced", replace_it},
                                     damage{"scribbled", scribble_on_it}),
                     testing::Values(use::held, use::waiting, use::idle)),
    [](const auto& one) { return name_of(one.param); });

/// Of each file: the holder's next renewal fails, and newcomers are told what to do.
class deleted_file : public testing::TestWithParam<part> {};

TEST_P(deleted_file, is_noticed_by_the_holder_and_by_newcomers) {
    const temporary_directory base;
    const auto who = identity();
    const auto store = open_local(base.path(), who);
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who))).result, granted);
    const std::string path = base.path() + "/" + GetParam().file;
    std::filesystem::remove(path);
    pass_the_checks_interval();
    const auto renewed = renew(*store, {.name = "stock", .owner = owner_of(who), .ttl = 1min});
    EXPECT_EQ(renewed.result, renew_reply::outcome::failed);
    EXPECT_EQ(renewed.error.code, errc::store_error);
    EXPECT_NE(renewed.error.detail.find(path + " was deleted"), std::string::npos);
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner_of(who)}).error.code, errc::store_error);
    if (path.ends_with("/wake")) {
        return;  // a newcomer makes a new one, and sees the holder in the database
    }
    const failure refused = refusal_of([&] { return open_local(base.path(), identity()); });
    EXPECT_EQ(refused.code, errc::store_error);
    EXPECT_NE(refused.detail.find("stop every program"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(files, deleted_file, all_parts,
                         [](const auto& one) { return std::string{one.param.name}; });

TEST(store_damage, the_files_outlast_the_clients_and_when_all_have_gone_a_new_store_may_be_made) {
    const temporary_directory base;
    const auto who = identity();
    static_cast<void>(acquire(*open_local(base.path(), who), exclusive("stock", owner_of(who))));
    EXPECT_TRUE(std::filesystem::exists(base.path() + "/locks.db-wal"));
    EXPECT_EQ(std::filesystem::file_size(base.path() + "/locks.db-wal"), 0U);
    EXPECT_TRUE(std::filesystem::exists(base.path() + "/locks.db-shm"));
    EXPECT_EQ(acquire(*open_local(base.path(), who), exclusive("stock", owner_of(who, 2))).result,
              busy);
    for (const char* name : {"/locks.db", "/locks.db-wal", "/locks.db-shm"}) {
        std::filesystem::remove(base.path() + name);
    }
    EXPECT_EQ(acquire(*open_local(base.path(), who), exclusive("stock", owner_of(who, 3))).result,
              granted);
}

/// SQLite keeps the end of a long row on a page of its own, and takes a page of zeros for content.
class store_with_long_names : public testing::TestWithParam<std::size_t> {};

TEST_P(store_with_long_names, grants_no_held_lock_again_when_its_log_is_emptied) {
    const temporary_directory base;
    const auto who = identity();
    const auto one = open_local(base.path(), who);
    const auto other = open_local(base.path(), identity("other"));
    ASSERT_EQ(acquire(*other, exclusive("warm", owner_of(identity()))).result, granted);
    const std::string first = "first:" + std::string(GetParam(), 'a');
    const std::string second = "second:" + std::string(GetParam(), 'b');
    ASSERT_EQ(acquire(*one, exclusive(first, owner_of(who))).result, granted);
    empty_it(base.path() + "/locks.db-wal");
    static_cast<void>(acquire(*one, exclusive(second, owner_of(who, 2))));
    EXPECT_NE(acquire(*other, exclusive(first, owner_of(identity()))).result, granted);
}

TEST_P(store_with_long_names, opens_no_latch_when_its_log_is_emptied) {
    const temporary_directory base;
    const auto one = open_local(base.path(), identity());
    const auto other = open_local(base.path(), identity("other"));
    using operation = latch_request::operation;
    const auto set = [&](const std::string& name) {
        return latch(
            *one, {.what = operation::set, .name = name, .count = 2, .lifetime = 1min, .request = {}});
    };
    ASSERT_EQ(latch(*other, {.what = operation::read, .name = "warm", .request = {}}).count, 0U);
    const std::string first = "first:" + std::string(GetParam(), 'a');
    ASSERT_TRUE(set(first).applied);
    empty_it(base.path() + "/locks.db-wal");
    static_cast<void>(set("second:" + std::string(GetParam(), 'b')));
    const auto read = latch(*other, {.what = operation::read, .name = first, .request = {}});
    EXPECT_TRUE(read.error || read.count == 2) << read.error.detail;
}

/// The last bytes of a row are those of the time at which it ends.
TEST(store_damage, a_time_that_was_cut_off_is_damage_and_not_the_past) {
    const std::string name = "first:" + std::string(300, 'a');
    int damaged = 0;
    for (std::uintmax_t kept = 1; kept <= 60; ++kept) {
        const temporary_directory base;
        const auto who = identity();
        const auto one = open_local(base.path(), who);
        const auto other = open_local(base.path(), identity("other"));
        ASSERT_EQ(acquire(*other, exclusive("warm", owner_of(identity()))).result, granted);
        ASSERT_EQ(acquire(*one, exclusive(name, owner_of(who))).result, granted);
        const std::string log = base.path() + "/locks.db-wal";
        std::ifstream file{log, std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
        std::filesystem::resize_file(log, bytes.rfind("aaaa") + 4 + kept);
        static_cast<void>(
            acquire(*one, exclusive("second:" + std::string(300, 'b'), owner_of(who, 2))));
        const auto second = acquire(*other, exclusive(name, owner_of(identity())));
        EXPECT_NE(second.result, granted) << kept << " bytes behind the name are kept";
        damaged += second.error.code == errc::store_error ? 1 : 0;
    }
    EXPECT_GT(damaged, 0);
}

INSTANTIATE_TEST_SUITE_P(lengths, store_with_long_names,
                         testing::Values(1, 60, 100, 120, 140, 160, 180, 200, 220, 240, 300, 400, 600,
                                         900, 1000));

TEST(store_damage, a_database_with_a_second_name_is_refused) {
    const temporary_directory base;
    const temporary_directory elsewhere;
    const auto who = identity();
    const auto store = open_local(base.path(), who);
    std::filesystem::create_hard_link(base.path() + "/locks.db", elsewhere.path() + "/locks.db");
    for (const std::string& path : {base.path(), elsewhere.path()}) {
        const failure refused = refusal_of([&] { return open_local(path, identity()); });
        EXPECT_EQ(refused.code, errc::bad_configuration);
        EXPECT_NE(refused.detail.find("hard link"), std::string::npos);
    }
}

}  // namespace

}  // namespace holdfast::engines::test
