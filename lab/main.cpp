#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "explanations.hpp"
#include "report.hpp"
#include "scenario.hpp"

namespace {

using words = std::vector<std::string>;

constexpr auto usage =
    "holdfast-lab list                          the scenarios\n"
    "holdfast-lab run [SCENARIO…] [--repeat N] [--json]\n"
    "                                           plays them (all when none is named) on real servers\n"
    "holdfast-lab explain SCENARIO [--zh]       why it breaks, and what holdfast does\n"
    "\n"
    "Exits with 0 when every verdict is as stated, with 1 when not, with 64 when the command line "
    "makes\n"
    "no sense.\n";

/// The command line makes no sense.
struct misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct request {
    std::vector<const lab::scenario*> scenarios;
    std::uint32_t rounds{1};
    bool json{};
    bool chinese{};
};

const lab::scenario& scenario_named(const std::string& name) {
    for (const auto& each : lab::all_scenarios()) {
        if (each.name == name) {
            return each;
        }
    }
    throw misuse{"no scenario is called " + name + "; see holdfast-lab list"};
}

std::uint32_t number_in(const std::string& text) {
    constexpr std::size_t digits = 6;
    const bool sensible =
        !text.empty() && text.size() <= digits &&
        std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
    if (!sensible || std::stoul(text) == 0) {
        throw misuse{"--repeat needs a number from 1 to 999999"};
    }
    return static_cast<std::uint32_t>(std::stoul(text));
}

request understood(const words& arguments) {
    request asked;
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        const auto& word = arguments[at];
        if (word == "--json") {
            asked.json = true;
        } else if (word == "--zh") {
            asked.chinese = true;
        } else if (word == "--repeat") {
            asked.rounds = number_in(at + 1 < arguments.size() ? arguments[at + 1] : "");
            ++at;
        } else if (word.starts_with("-")) {
            throw misuse{"unknown option " + word};
        } else {
            asked.scenarios.push_back(&scenario_named(word));
        }
    }
    return asked;
}

int list() {
    for (const auto& each : lab::all_scenarios()) {
        fmt::print("{:<28} {}\n", each.name, each.title);
    }
    return 0;
}

lab::tally played(const lab::scenario& scenario, const request& asked) {
    lab::tally sum{.played = &scenario};
    for (std::uint32_t round = 0; round < asked.rounds; ++round) {
        const auto once = lab::play(scenario);
        sum.add(once);
        if (asked.json) {
            fmt::print("{}\n", lab::as_json(once));
        } else if (asked.rounds == 1 || !once.as_expected()) {
            fmt::print("{}", lab::as_text(once));
        }
        std::fflush(stdout);
    }
    return sum;
}

/// Prints a single round in full. Of many rounds it prints only the unexpected ones, and the sums as
/// they come.
int run(request asked) {
    if (asked.scenarios.empty()) {
        for (const auto& each : lab::all_scenarios()) {
            asked.scenarios.push_back(&each);
        }
    }
    const bool at_once = !asked.json && asked.rounds > 1;
    if (at_once) {
        fmt::print("{}", lab::heading_of_tallies());
    }
    std::vector<lab::tally> sums;
    for (const auto* each : asked.scenarios) {
        sums.push_back(played(*each, asked));
        if (at_once) {
            fmt::print("{}", lab::as_text(sums.back()));
            std::fflush(stdout);
        }
    }
    if (!asked.json && !at_once && sums.size() > 1) {
        fmt::print("{}", lab::heading_of_tallies());
        for (const auto& sum : sums) {
            fmt::print("{}", lab::as_text(sum));
        }
    }
    const bool good =
        std::all_of(sums.begin(), sums.end(), [](const auto& sum) { return sum.as_expected(); });
    return good ? 0 : 1;
}

int explain(const request& asked) {
    if (asked.scenarios.size() != 1) {
        throw misuse{"explain needs one scenario"};
    }
    const auto& scenario = *asked.scenarios.front();
    const auto text = lab::explanation_of(scenario.name);
    fmt::print("{}  {}\n\n{}\n\n", lab::emphasised(std::string{scenario.name}), scenario.title,
               asked.chinese ? text.chinese : text.english);
    fmt::print("See docs/learn/{}{}.md, and holdfast-lab run {}\n", asked.chinese ? "zh/" : "",
               scenario.name, scenario.name);
    return 0;
}

/// Not for people: the lab starts its actors with this command.
int act(words arguments) {
    const auto name = arguments.empty() ? std::string{} : arguments.front();
    for (const auto& each : lab::all_roles()) {
        if (each.name == name) {
            arguments.erase(arguments.begin());
            lab::script script{std::move(arguments)};
            each.play(script);
            return 0;
        }
    }
    throw misuse{"no role is called " + name};
}

int dispatched(const words& arguments) {
    const auto command = arguments.empty() ? std::string{"help"} : arguments.front();
    const words rest{arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()};
    if (command == "list") {
        return list();
    }
    if (command == "run") {
        return run(understood(rest));
    }
    if (command == "explain") {
        return explain(understood(rest));
    }
    if (command == "actor") {
        return act(rest);
    }
    if (command == "help" || command == "--help" || command == "-h") {
        fmt::print("{}", usage);
        return 0;
    }
    throw misuse{"unknown command " + command};
}

}  // namespace

int main(int count, char** words_given) {
    constexpr int exit_misuse = 64;
    try {
        return dispatched(words{words_given + 1, words_given + count});
    } catch (const misuse& error) {
        fmt::print(stderr, "holdfast-lab: {}\n\n{}", error.what(), usage);
        return exit_misuse;
    } catch (const std::exception& error) {
        fmt::print(stderr, "holdfast-lab: {}\n", error.what());
        return 1;
    }
}
