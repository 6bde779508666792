#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "fixture.hpp"

/// What every command says of a `local:` store that is damaged, or that can never be opened: an
/// operator has to act, and waiting does not help.
namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

constexpr int store_error = 72;
constexpr ::uid_t somebody = 12345;

class broken_store : public cli_test {
protected:
    [[nodiscard]] std::filesystem::path in_store(const std::string& name) const {
        return file("store") / name;
    }
    void make_store() const { ASSERT_EQ(finish(run_script("job", {}, "true"))->wait(), 0); }
    /// Every command that asks the store, as it is and with `--json`.
    void expect_of_every_command(int status, const std::string& error, const std::string& text,
                                 const program_options& options = {}) const {
        const std::vector<words> commands{{"run", "job", "--", "true"},
                                          {"run", "job", "--no-wait", "--", "true"},
                                          {"run", "job", "--wait", "9s", "--", "true"},
                                          {"list"},
                                          {"inspect", "job"},
                                          {"release", "job", "--force"},
                                          {"doctor"},
                                          {"check", "job", "--token", "1"}};
        for (const auto& each : commands) {
            const auto said = finish(each, options);
            EXPECT_EQ(said->wait(), status) << each.front() << ": " << said->errors();
            EXPECT_THAT(said->output() + said->errors(), HasSubstr(text)) << each.front();
            auto with_json = each;
            with_json.insert(with_json.begin() + 1, "--json");
            const auto reported = finish(with_json, options);
            EXPECT_EQ(reported->wait(), status) << each.front();
            const auto report =
                parse(each.front() == "run" ? reported->last_error_line() : reported->output());
            EXPECT_EQ(report.at("status").as_int64(), status) << each.front();
            ASSERT_TRUE(report.contains("error")) << each.front();
            EXPECT_EQ(report.at("error").as_string(), error) << each.front();
        }
    }
};

TEST_F(broken_store, that_is_damaged_is_an_error_of_its_own) {
    make_store();
    std::ofstream{in_store("locks.db")} << std::string(8192, 'x');
    expect_of_every_command(store_error, "store_error", "then delete");
}

TEST_F(broken_store, that_was_deleted_while_in_use_is_an_error_of_its_own) {
    const auto holder = hold("job");
    std::filesystem::remove(in_store("locks.db"));
    expect_of_every_command(store_error, "store_error", "stop every program");
}

TEST_F(broken_store, whose_database_is_a_directory_is_not_waited_for) {
    std::filesystem::create_directories(in_store("locks.db"));
    expect_of_every_command(78, "configuration", "locks.db is not a file");
}

TEST_F(broken_store, whose_database_is_a_dangling_link_is_not_waited_for) {
    std::filesystem::create_directories(file("store"));
    std::filesystem::create_symlink(file("elsewhere"), in_store("locks.db"));
    expect_of_every_command(78, "configuration", "locks.db is not a file");
    EXPECT_FALSE(std::filesystem::exists(file("elsewhere")));
}

TEST_F(broken_store, whose_other_files_are_directories_is_not_waited_for) {
    for (const char* name : {"locks.db-wal", "locks.db-shm", "wake"}) {
        std::filesystem::create_directories(in_store(name));
        const auto refused = finish(run_script("job", {}, "true"));
        EXPECT_EQ(refused->wait(), 78) << name;
        EXPECT_THAT(refused->errors(), HasSubstr(std::string{name} + " is not a file"));
        std::filesystem::remove(in_store(name));
    }
}

TEST_F(broken_store, whose_files_may_not_be_read_is_not_waited_for) {
    const bool root = ::geteuid() == 0;
    program_options options;
    if (root) {
        for (const auto& path : {file("store").parent_path(), file("store")}) {
            std::filesystem::create_directories(path);
            ASSERT_EQ(::chown(path.c_str(), somebody, somebody), 0);
        }
        options.prepare = [] { ASSERT_EQ(::setuid(somebody), 0); };
    }
    ASSERT_EQ(finish(run_script("job", {}, "true"), options)->wait(), 0);
    for (const char* name : {"locks.db", "locks.db-wal", "locks.db-shm", "wake"}) {
        ASSERT_EQ(::chmod(in_store(name).c_str(), 0), 0);
        expect_of_every_command(77, "unauthorised", std::string{name} + " cannot be read and written",
                                options);
        ASSERT_EQ(::chmod(in_store(name).c_str(), 0600), 0);
    }
    if (root) {
        ASSERT_EQ(::chown(in_store("locks.db").c_str(), 0, 0), 0);
        expect_of_every_command(77, "unauthorised", "locks.db cannot be read and written", options);
    }
}

}  // namespace
}  // namespace holdfast::cli::testing
