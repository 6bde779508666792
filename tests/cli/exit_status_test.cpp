#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "command_table.hpp"
#include "exit_code.hpp"
#include "fixture.hpp"
#include "help.hpp"

namespace holdfast::cli::testing {
namespace {

class exit_status : public cli_test {
protected:
    /// All that the code knows.
    [[nodiscard]] static std::set<int> known() {
        std::set<int> codes;
        for (int number = 0; number < 256; ++number) {
            const auto code = static_cast<exit_code>(number);
            if (code == exit_code::internal || to_word(code) != to_word(exit_code::internal)) {
                codes.insert(number);
            }
        }
        return codes;
    }
    /// The number of free descriptors is one. The loader of programs needs it.
    static void leave_one_descriptor() {
        const int free = ::dup(STDIN_FILENO);
        ::close(free);
        const auto end = static_cast<rlim_t>(free) + 1;
        const rlimit limit{end, end};
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    /// Those in the table that the help of a command shows.
    [[nodiscard]] static std::set<int> shown(const std::string& command) {
        const auto help = help_text(command);
        const auto begin = help.find("\nEXIT STATUS\n");
        const auto text = help.substr(begin, help.find("\n\n", help.find("\n    0 ", begin)) - begin);
        std::set<int> codes;
        const std::regex row{"\n {2,4}([0-9]{1,3})   "};
        for (std::sregex_iterator each{text.begin(), text.end(), row}, end; each != end; ++each) {
            codes.insert(std::stoi((*each)[1]));
        }
        return codes;
    }
};

TEST_F(exit_status, the_table_of_the_help_is_that_of_the_code) {
    EXPECT_EQ(shown(""), known());
    EXPECT_EQ(shown("run"), known());
}

TEST_F(exit_status, no_command_names_another_one) {
    for (const auto& command : command_entries()) {
        const std::string text{command.exit_status};
        const std::regex number{"\\b[0-9]+\\b"};
        for (std::sregex_iterator each{text.begin(), text.end(), number}, end; each != end; ++each) {
            const auto code = std::stoi(each->str());
            EXPECT_TRUE(known().contains(code) || code == 128) << command.name << ": " << code;
        }
    }
}

TEST_F(exit_status, everything_in_the_table_happens) {
    const auto holder = hold("held");
    std::vector<std::pair<exit_code, words>> cases{
        {exit_code::success, {"list"}},
        {exit_code::usage, {"list", "--bogus"}},
        {exit_code::unavailable, {"list", "--store", "redis://127.0.0.1:1"}},
        {exit_code::not_acquired, {"run", "held", "--no-wait", "--", "true"}},
        {exit_code::not_acquired, {"release", "held"}},
        {exit_code::not_acquired, {"release", "free", "--force"}},
        {exit_code::lost, {"check", "held", "--token", "1"}},
        {exit_code::unauthorised, {"run", "free", "--store", "local:/sys/holdfast", "--", "true"}},
        {exit_code::configuration, {"list", "--store", "nosuch:x"}},
        {exit_code::configuration, {"list", "--require", "fleet"}},
        {exit_code::not_executable, {"run", "free", "--", "/etc/passwd"}},
        {exit_code::not_found, {"run", "free", "--", "/nonexistent/command"}},
    };
    const auto damaged = file("damaged");
    std::filesystem::create_directories(damaged);
    std::ofstream{damaged / "locks.db"} << std::string(8192, 'x');
    cases.emplace_back(exit_code::store_error, words{"list", "--store", "local:" + damaged.string()});
    std::set<int> seen{to_status(exit_code::internal)};  // by definition nobody knows how
    for (const auto& [code, arguments] : cases) {
        const auto ended = finish(arguments);
        EXPECT_EQ(ended->wait(), to_status(code)) << ended->errors();
        seen.insert(to_status(code));
    }
    const auto cramped = finish({"run", "free", "--", "true"}, {.prepare = leave_one_descriptor});
    EXPECT_EQ(cramped->wait(), to_status(exit_code::resources)) << cramped->errors();
    EXPECT_THAT(cramped->errors(), ::testing::HasSubstr("ulimit -n"));
    seen.insert(to_status(exit_code::resources));
    program full{{"/bin/sh", "-c", "exec \"$0\" list >/dev/full", program_path()},
                 {.environment = environment(), .input = ""}};
    EXPECT_EQ(full.wait(), to_status(exit_code::output));
    seen.insert(to_status(exit_code::output));
    EXPECT_EQ(seen, known());
}

TEST_F(exit_status, of_a_store_that_reaches_the_limit_of_file_sizes_is_that_of_one_without_room) {
    for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{20000}}) {
        const auto limited = finish({"run", "job", "--no-wait", "--", "true"}, {.prepare = [limit] {
                                        const rlimit both{limit, limit};
                                        ::setrlimit(RLIMIT_FSIZE, &both);
                                    }});
        EXPECT_EQ(limited->wait(), to_status(exit_code::unavailable)) << limited->errors();
    }
}

TEST_F(exit_status, of_a_host_without_resources_is_no_internal_error) {
    for (const auto code : {EMFILE, ENFILE, EAGAIN, ENOMEM}) {
        EXPECT_EQ(exit_code_for({code, std::generic_category()}), exit_code::resources);
        EXPECT_EQ(exit_code_for({code, std::system_category()}), exit_code::resources);
    }
    EXPECT_EQ(exit_code_for({EIO, std::generic_category()}), exit_code::internal);
}

}  // namespace
}  // namespace holdfast::cli::testing
