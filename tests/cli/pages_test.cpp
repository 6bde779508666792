#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using words = std::vector<std::string>;

/// A line of a shell as words; operators are words of their own, and a comment ends it. Quotes count,
/// and nothing is expanded.
[[nodiscard]] words shell_words(const std::string& line) {
    static const std::regex word{
        R"re(\s*(#.*|\|\||&&|[|;()]|(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s|;()"'&])+|&))re"};
    words found;
    for (std::sregex_iterator each{line.begin(), line.end(), word}, end; each != end; ++each) {
        auto text = (*each)[1].str();
        if (text.starts_with('#')) {
            break;
        }
        std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
        found.push_back(std::move(text));
    }
    return found;
}

[[nodiscard]] bool ends_a_command(const std::string& word) {
    constexpr std::array<std::string_view, 7> operators{"|", "||", "&&", ";", "(", ")", "&"};
    return std::find(operators.begin(), operators.end(), word) != operators.end();
}

/// The arguments of every `holdfast` on the line.
[[nodiscard]] std::vector<words> calls_on(const std::string& line) {
    std::vector<words> calls;
    const auto all = shell_words(line);
    for (auto at = all.begin(); (at = std::find(at, all.end(), "holdfast")) != all.end();) {
        ++at;
        const auto end = std::find_if(at, all.end(), ends_a_command);
        calls.emplace_back(at, end);
        at = end;
    }
    return calls;
}

/// The lines of all ```sh blocks of a page, those that go on joined.
[[nodiscard]] words shell_lines(const std::filesystem::path& page) {
    std::ifstream input{page};
    words lines;
    bool inside = false;
    bool goes_on = false;
    for (std::string line; std::getline(input, line);) {
        if (line.find("```") != std::string::npos) {
            inside = line.ends_with("```sh");
            continue;
        }
        if (!inside) {
            continue;
        }
        goes_on ? lines.back() += line : lines.emplace_back(line);
        goes_on = lines.back().ends_with('\\');
        if (goes_on) {
            lines.back().pop_back();
        }
    }
    return lines;
}

[[nodiscard]] std::vector<std::filesystem::path> pages() {
    const std::filesystem::path root{HOLDFAST_SOURCE_DIR};
    std::vector<std::filesystem::path> found{root / "README.md", root / "README.zh-CN.md"};
    for (const auto& entry : std::filesystem::recursive_directory_iterator{root / "docs"}) {
        if (entry.path().extension() == ".md") {
            found.push_back(entry.path());
        }
    }
    return found;
}

TEST(pages, a_line_of_a_shell_is_taken_apart) {
    EXPECT_EQ(calls_on("A=1 holdfast list 'a b'/ --json | jq . # holdfast x"),
              (std::vector<words>{{"list", "a b/", "--json"}}));
    EXPECT_EQ(calls_on("holdfast check || holdfast doctor"),
              (std::vector<words>{{"check"}, {"doctor"}}));
    EXPECT_TRUE(calls_on("cmake --build build").empty());
}

TEST(pages, every_command_line_on_them_is_understood) {
    // Some are for scripts that `holdfast run` started.
    ::setenv("HOLDFAST_NAME", "job", 1);
    ::setenv("HOLDFAST_TOKEN", "33", 1);
    std::size_t understood = 0;
    for (const auto& page : pages()) {
        for (const auto& line : shell_lines(page)) {
            for (const auto& call : calls_on(line)) {
                try {
                    static_cast<void>(parse_arguments(call));
                    ++understood;
                } catch (const stop_program& refusal) {
                    ADD_FAILURE() << page << ": " << line << "\n" << refusal.what();
                }
            }
        }
    }
    EXPECT_GT(understood, 15U);
}

}  // namespace
}  // namespace holdfast::cli::testing
