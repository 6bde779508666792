// Programs that are not ours use the database of a store: `sqlite3 locks.db`, a backup, a browser. As
// the last that closes it, SQLite empties the journal and deletes it.
#include <fstream>
#include <iterator>
#include <local/connection_pool.hpp>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using line = other_process::line;

/// As the program `sqlite3`.
class foreign_connection {
public:
    explicit foreign_connection(const std::string& path) {
        ::sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE, nullptr);
    }
    foreign_connection(const foreign_connection&) = delete;
    foreign_connection& operator=(const foreign_connection&) = delete;
    ~foreign_connection() { ::sqlite3_close(handle_); }

    [[nodiscard]] bool execute(const std::string& sql) const {
        return ::sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    }
    [[nodiscard]] bool back_up(const std::string& path) const {
        const foreign_connection copy{path};
        ::sqlite3_backup* backup = ::sqlite3_backup_init(copy.handle_, "main", handle_, "main");
        const bool all = ::sqlite3_backup_step(backup, -1) == SQLITE_DONE;
        return ::sqlite3_backup_finish(backup) == SQLITE_OK && all;
    }

private:
    ::sqlite3* handle_{};
};

constexpr const char* a_look = "SELECT count(*) FROM hold";

bool looks(const std::string& path) {
    return foreign_connection{path}.execute(a_look);
}

/// A program that opens the database, looks at it and closes it, each time when it is told to.
class foreign_reader {
public:
    explicit foreign_reader(const std::string& path)
        : process_{[path](const line& talk) {
              while (talk.hear() != 0) {
                  talk.say(looks(path) ? '+' : '-');
              }
          }} {}

    [[nodiscard]] bool looks_once() const {
        process_.talk().say('!');
        return process_.talk().hear() == '+';
    }

private:
    other_process process_;
};

::ino_t number_of(const std::string& path) {
    struct ::stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class foreign_program : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<engine> open() const { return open_local(base_.path(), who_); }
    [[nodiscard]] std::unique_ptr<local::wake_map> join() const {
        return std::make_unique<local::wake_map>(base_.path() + "/wake", local::this_process());
    }
    [[nodiscard]] std::unique_ptr<local::connection_pool> open(local::wake_map& wakes) const {
        return std::make_unique<local::connection_pool>(base_.path(), local::this_time_base(), wakes,
                                                        clock::now() + patience, running_);
    }
    [[nodiscard]] std::string file() const { return base_.path() + "/locks.db"; }
    [[nodiscard]] std::string journal() const { return file() + "-wal"; }
    void make_store() const { static_cast<void>(open()); }
    /// Whether the journal is still there when somebody has looked at the database during a fork.
    [[nodiscard]] bool outlasts_a_look(local::connection_pool& pool) const {
        const auto before = number_of(journal());
        pool.rest();
        const bool looked = looks(file());
        pool.resume_in_parent();
        return looked && number_of(journal()) == before;
    }

    const temporary_directory base_;
    const client_identity who_ = identity();
    std::atomic<bool> running_{};
};

TEST_F(foreign_program, that_looks_while_a_holder_forks_leaves_its_journal) {
    const auto wakes = join();
    const auto pool = open(*wakes);
    EXPECT_TRUE(outlasts_a_look(*pool));
    EXPECT_NO_THROW(static_cast<void>(pool->writer(clock::now() + patience)->holders("stock")));
}

TEST_F(foreign_program, does_not_change_the_kind_of_journal_while_a_holder_forks) {
    const auto wakes = join();
    const auto pool = open(*wakes);
    pool->rest();
    const bool changed = foreign_connection{file()}.execute("PRAGMA journal_mode=DELETE");
    pool->resume_in_parent();
    EXPECT_FALSE(changed);
    EXPECT_NO_THROW(static_cast<void>(pool->writer(clock::now() + patience)->holders("stock")));
}

/// Closing a file drops all of SQLite's locks on it, in the whole process.
TEST_F(foreign_program, that_looks_after_a_holder_has_read_its_own_files_leaves_its_journal) {
    make_store();
    const foreign_reader reader{file()};
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    for (const auto& each : std::filesystem::directory_iterator{base_.path()}) {
        std::ifstream content{each.path(), std::ios::binary};
        static_cast<void>(std::distance(std::istreambuf_iterator<char>{content}, {}));
    }
    EXPECT_TRUE(reader.looks_once());
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner_of(who_)}).result,
              release_reply::outcome::released);
}

/// One that has begun to open the store found another there, which has gone since.
TEST_F(foreign_program, that_deletes_the_journal_between_two_holders_does_not_keep_the_second_out) {
    auto first = open();
    const auto wakes = join();
    first.reset();
    ASSERT_TRUE(looks(file()));
    ASSERT_EQ(number_of(journal()), 0U);
    EXPECT_NO_THROW(static_cast<void>(open(*wakes)));
}

TEST_F(foreign_program, that_deletes_the_journal_between_holders_keeps_none_of_several_out) {
    make_store();
    std::vector<std::unique_ptr<other_process>> newcomers;
    for (int count = 0; count < 4; ++count) {
        newcomers.push_back(std::make_unique<other_process>([this](const line& talk) {
            static_cast<void>(talk.hear());
            const auto wakes = join();
            talk.say('j');
            static_cast<void>(talk.hear());
            const auto pool = open(*wakes);
            talk.say('o');
            static_cast<void>(talk.hear());
        }));
    }
    auto first = open();
    for (const auto& each : newcomers) {
        each->talk().say('!');
        ASSERT_EQ(each->talk().hear(), 'j');
    }
    first.reset();
    ASSERT_TRUE(looks(file()));
    ASSERT_EQ(number_of(journal()), 0U);
    for (const auto& each : newcomers) {
        each->talk().say('!');
    }
    for (const auto& each : newcomers) {
        EXPECT_EQ(each->talk().hear(), 'o');
    }
}

/// A child that goes on without the store, as a daemon's workers do.
TEST_F(foreign_program,
       that_deletes_the_journal_after_a_holder_keeps_nobody_out_for_a_child_of_the_holder) {
    for (const bool killed : {false, true}) {
        int end_of_test[2];
        ASSERT_EQ(::pipe2(end_of_test, O_CLOEXEC), 0);
        other_process holder{[&](const line& talk) {
            auto wakes = join();
            auto pool = open(*wakes);
            const other_process idle{[&](const line& child) {
                ::close(end_of_test[1]);
                child.say('i');
                char nothing = 0;
                static_cast<void>(::read(end_of_test[0], &nothing, 1) == 0);
            }};
            ::close(end_of_test[1]);
            talk.say(idle.talk().hear());
            static_cast<void>(talk.hear());
            pool.reset();
            wakes.reset();
            talk.say('e');
            static_cast<void>(talk.hear());
        }};
        ASSERT_EQ(holder.talk().hear(), 'i');
        if (killed) {
            holder.kill();
        } else {
            holder.talk().say('!');
            ASSERT_EQ(holder.talk().hear(), 'e');
        }
        ASSERT_TRUE(looks(file()));
        EXPECT_EQ(number_of(journal()), 0U);
        EXPECT_NO_THROW(make_store()) << killed;
        ::close(end_of_test[0]);
        ::close(end_of_test[1]);
    }
}

TEST_F(foreign_program, that_looks_leaves_the_journal_of_a_child_that_outlives_its_parents_store) {
    auto wakes = join();
    auto pool = open(*wakes);
    const other_process child{[this](const line& talk) {
        const auto own_wakes = join();
        const auto own = open(*own_wakes);
        talk.say('o');
        static_cast<void>(talk.hear());
        talk.say(outlasts_a_look(*own) ? 's' : 'd');
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(child.talk().hear(), 'o');
    static_cast<void>(pool->writer(clock::now() + patience));
    pool.reset();
    wakes.reset();
    child.talk().say('!');
    EXPECT_EQ(child.talk().hear(), 's');
}

TEST_F(foreign_program, that_looks_leaves_the_journal_after_a_child_has_used_the_store_for_itself) {
    const auto wakes = join();
    const auto pool = open(*wakes);
    EXPECT_EQ(in_a_child([this] {
                  const auto own = join();
                  static_cast<void>(open(*own));
                  return '+';
              }),
              '+');
    EXPECT_TRUE(outlasts_a_look(*pool));
}

TEST_F(foreign_program, that_looks_leaves_the_journal_after_the_process_has_closed_another_client) {
    const auto wakes = join();
    const auto pool = open(*wakes);
    make_store();
    EXPECT_TRUE(outlasts_a_look(*pool));
}

struct foreign_action {
    const char* name;
    bool (*apply)(const foreign_connection& by, const std::string& path);
};

void PrintTo(const foreign_action& each, std::ostream* out) {
    *out << each.name;
}

class foreign_use : public foreign_program, public testing::WithParamInterface<foreign_action> {
protected:
    [[nodiscard]] bool happens() const { return GetParam().apply(foreign_connection{file()}, file()); }
};

TEST_P(foreign_use, takes_no_lock_from_its_holder_and_gives_it_to_nobody_else) {
    make_store();
    other_process foreigner{[this](const line& talk) {
        static_cast<void>(talk.hear());
        static_cast<void>(happens());
        talk.say('d');
        static_cast<void>(talk.hear());
    }};
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    foreigner.talk().say('!');
    ASSERT_EQ(foreigner.talk().hear(), 'd');
    EXPECT_EQ(acquire(*open(), exclusive("stock", owner_of(who_, 2))).result, busy);
    EXPECT_EQ(renew(*store, {.name = "stock", .owner = owner_of(who_), .ttl = 1min}).result,
              renew_reply::outcome::renewed);
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner_of(who_)}).result,
              release_reply::outcome::released);
    EXPECT_EQ(acquire(*open(), exclusive("stock", owner_of(who_, 2))).result, granted);
}

TEST_P(foreign_use, between_two_clients_changes_nothing) {
    const auto first = acquire(*open(), exclusive("stock", owner_of(who_)));
    ASSERT_EQ(first.result, granted);
    EXPECT_TRUE(happens());
    EXPECT_EQ(acquire(*open(), exclusive("stock", owner_of(who_, 2))).result, busy);
    const auto second = acquire(*open(), exclusive("other", owner_of(who_, 2)));
    EXPECT_EQ(second.result, granted);
    EXPECT_GT(second.first_token, first.first_token);
}

INSTANTIATE_TEST_SUITE_P(
    actions, foreign_use,
    testing::Values(foreign_action{"look", [](const foreign_connection& by,
                                              const std::string&) { return by.execute(a_look); }},
                    foreign_action{"backup",
                                   [](const foreign_connection& by, const std::string& path) {
                                       std::ofstream{path + ".copy"};
                                       return by.back_up(path + ".copy");
                                   }},
                    foreign_action{"checkpoint",
                                   [](const foreign_connection& by, const std::string&) {
                                       return by.execute("PRAGMA wal_checkpoint(TRUNCATE)");
                                   }},
                    foreign_action{"vacuum", [](const foreign_connection& by,
                                                const std::string&) { return by.execute("VACUUM"); }},
                    foreign_action{"other_journal",
                                   [](const foreign_connection& by, const std::string&) {
                                       return by.execute("PRAGMA journal_mode=DELETE");
                                   }}),
    [](const auto& one) { return std::string{one.param.name}; });

}  // namespace

}  // namespace holdfast::engines::test
