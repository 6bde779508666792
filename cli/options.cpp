#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "duration.hpp"
#include "exit_code.hpp"
#include "secrets.hpp"

namespace holdfast::cli {

namespace {

/// `a, b, c` for `a b c`.
[[nodiscard]] std::string with_commas(std::string_view words) {
    std::string text;
    for (const char c : words) {
        text += c == ' ' ? std::string{", "} : std::string{c};
    }
    return text;
}

/// The message of CLI11 in one line, and in our words where its own would puzzle.
[[nodiscard]] std::string explain(const CLI::ParseError& error, const std::string& command) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    const auto colon = std::min(text.find(": "), text.size());
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        return "unknown option" + text.substr(colon);
    }
    const auto* const option = find_option(command, text.substr(0, colon));
    if (option == nullptr || dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
        return text;
    }
    return text.ends_with("missing")
               ? fmt::format("{0} needs a value: {0} {1}", option->name, option->value)
               : fmt::format("{} is there more than once", option->name);
}

}  // namespace

std::string with_hint(const std::string& problem, const std::string& command) {
    return fmt::format("{} (see holdfast{}{} --help)", problem, command.empty() ? "" : " ", command);
}

void refuse(const std::string& problem, const std::string& command) {
    throw stop_program{exit_code::usage, with_hint(problem, command)};
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end && !text.empty() ? std::optional{value} : std::nullopt;
}

// CLI11 has checks of its own, which tell people less: `IsMember` prints a set (`{fleet,host}`), and
// `AsNumberWithUnit` has no sums like 1h30m, no upper limit, and lists all units.
std::string problem_with(const option_entry& option, const std::string& text) {
    if (option.value == "DURATION") {
        const auto problem = parse_duration(text).problem;
        return option.name == "--wait" && problem.find("is zero") != std::string::npos
                   ? problem + "; --no-wait gives up at once"
                   : problem;
    }
    if (!option.choices.empty() && !contains_word(option.choices, text)) {
        return fmt::format("\"{}\" is none of {}", text, with_commas(option.choices));
    }
    if (option.value == "N" && !parse_number(text)) {
        return fmt::format("\"{}\" is no number", text);
    }
    if (option.value == "OWNER" && !owner_id::parse(text)) {
        return fmt::format("\"{}\" is no owner; copy one from holdfast inspect", text);
    }
    if (option.value == "ADDRESS" && text.empty()) {
        return "the address is empty; write local: for the store of this host";
    }
    return {};
}

given_options::given_options(std::string command, const std::vector<std::string>& words)
    : command_{std::move(command)} {
    try {
        read(take_arguments(words));
    } catch (const CLI::ParseError& error) {
        refuse(explain(error, command_), command_);
    }
}

const std::vector<std::string>& given_options::all(std::string_view name) const {
    if (find_option(command_, name) == nullptr) {
        throw std::logic_error{fmt::format("{} has no option {}", command_, name)};
    }
    static const std::vector<std::string> none;
    const auto found = values_.find(name);
    return found == values_.end() ? none : found->second;
}

std::string given_options::text(std::string_view name) const {
    return has(name) ? all(name).back() : std::string{};
}

std::optional<std::chrono::milliseconds> given_options::duration(std::string_view name) const {
    return has(name) ? std::optional{parse_duration(text(name)).value} : std::nullopt;
}

std::optional<std::uint64_t> given_options::number(std::string_view name) const {
    return parse_number(text(name));
}

std::optional<owner_id> given_options::owner(std::string_view name) const {
    return has(name) ? owner_id::parse(text(name)) : std::nullopt;
}

std::optional<fencing_token> given_options::token(std::string_view name) const {
    const auto value = number(name);
    return value ? std::optional{fencing_token{*value}} : std::nullopt;
}

void given_options::add_argument(const std::string& text) {
    if (looks_like_store(text)) {
        refuse("a store's address is no name of a lock; write --store ADDRESS, or HOLDFAST_STORE",
               command_);
    }
    arguments_.push_back(text);
}

/// Returns the other words, with every `--option=value` as two words. Three things are not left to
/// CLI11: it would take `[a,b]` for two names and `[a]` for `a`, the word after `--option=` for the
/// value, and some values of a switch for yes, others for no.
std::vector<std::string> given_options::take_arguments(const std::vector<std::string>& words) {
    std::vector<std::string> options;
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (*word == "--") {
            std::for_each(word + 1, words.end(), [&](const auto& name) { add_argument(name); });
            break;
        }
        if (!word->starts_with('-') || *word == "-") {
            add_argument(*word);
            continue;
        }
        const auto sign = word->find('=');
        const auto* const option = find_option(command_, word->substr(0, sign));
        if (option == nullptr) {
            options.push_back(*word);
            continue;
        }
        options.emplace_back(option->name);
        if (sign != std::string::npos && option->value.empty()) {
            refuse(fmt::format("{0} takes no value, but has \"{1}\"; write {0}, or leave it out",
                               option->name, word->substr(sign + 1)),
                   command_);
        }
        if (sign != std::string::npos) {
            options.push_back(word->substr(sign + 1));
        } else if (!option->value.empty() && word + 1 != words.end()) {
            options.push_back(*++word);
        }
    }
    return options;
}

void given_options::read(std::vector<std::string> words) {
    CLI::App app;
    app.set_help_flag();
    for (const auto& option : option_entries()) {
        if (!takes(command_, option)) {
            continue;
        }
        const auto names =
            fmt::format("{}{}{}", option.letter, option.letter.empty() ? "" : ",", option.name);
        auto& values = values_[option.name];
        if (option.value.empty()) {
            app.add_flag_callback(names, [&values] { values.emplace_back(); });
            continue;
        }
        auto* const reader = app.add_option(names, [&](const CLI::results_t& texts) {
            for (const auto& text : texts) {
                if (const auto problem = problem_with(option, text); !problem.empty()) {
                    throw CLI::ValidationError{std::string{option.name}, problem};
                }
            }
            values = texts;
            return true;
        });
        if (option.repeatable) {
            reader->take_all();
        }
    }
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
}

}  // namespace holdfast::cli
