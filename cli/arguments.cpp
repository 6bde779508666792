#include "arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <holdfast/engine.hpp>
#include <map>
#include <stdexcept>

#include "command_table.hpp"
#include "duration.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "once_per.hpp"
#include "secrets.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

[[nodiscard]] std::string with_hint(const std::string& problem, const std::string& command) {
    const auto where =
        command.empty() ? std::string{"holdfast --help"} : fmt::format("holdfast {} --help", command);
    return fmt::format("{} (see {})", problem, where);
}

[[noreturn]] void refuse(const std::string& problem, const std::string& command = {}) {
    throw stop_program{exit_code::usage, with_hint(problem, command)};
}

/// The command line is right: whoever set the variable has to change something. A value that is a
/// store's address, which may hold a password, is not repeated.
[[noreturn]] void refuse_variable(const std::string& problem, const std::string& value,
                                  const std::string& command) {
    throw stop_program{exit_code::configuration,
                       with_hint(without_addresses(problem, {value}), command)};
}

/// Empty when it is not set, and refused when it is set but empty: a script whose own variable was not
/// set must not end up with another store, or with fewer demands, than it asked for.
[[nodiscard]] std::string environment(const char* variable) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value == '\0') {
        throw stop_program{
            exit_code::configuration,
            fmt::format("{0} is set, but empty; give it a value, or unset {0}", variable)};
    }
    return value == nullptr ? std::string{} : std::string{value};
}

[[nodiscard]] std::string inherited(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? std::string{} : std::string{value};
}

[[nodiscard]] std::optional<std::uint64_t> parse_number(const std::string& text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end && !text.empty() ? std::optional{value} : std::nullopt;
}

/// `a, b, c` for `a b c`.
[[nodiscard]] std::string with_commas(std::string_view words) {
    std::string text;
    for (const char c : words) {
        text += c == ' ' ? std::string{", "} : std::string{c};
    }
    return text;
}

/// What is wrong with a value; empty when nothing is.
[[nodiscard]] std::string problem_with(const option_entry& option, const std::string& text) {
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

/// The options of one command line. Every value has the form that the table asks for.
class given_options {
public:
    explicit given_options(std::string command) : command_{std::move(command)} {}

    void add(const option_entry& option, const std::string& text) {
        if (const auto problem = problem_with(option, text); !problem.empty()) {
            throw CLI::ValidationError{std::string{option.name}, problem};
        }
        values_[option.name].push_back(text);
    }
    void add_argument(const std::string& text) {
        if (looks_like_store(text)) {
            refuse("a store's address is no name of a lock; write --store ADDRESS, or HOLDFAST_STORE",
                   command_);
        }
        arguments_.push_back(text);
    }

    [[nodiscard]] const std::string& command() const noexcept { return command_; }
    [[nodiscard]] const std::vector<std::string>& arguments() const noexcept { return arguments_; }
    [[nodiscard]] bool has(std::string_view name) const { return !all(name).empty(); }
    [[nodiscard]] const std::vector<std::string>& all(std::string_view name) const {
        if (find_option(command_, name) == nullptr) {
            throw std::logic_error{fmt::format("{} has no option {}", command_, name)};
        }
        static const std::vector<std::string> none;
        const auto found = values_.find(name);
        return found == values_.end() ? none : found->second;
    }
    [[nodiscard]] std::string text(std::string_view name) const {
        return has(name) ? all(name).back() : std::string{};
    }
    [[nodiscard]] std::optional<milliseconds> duration(std::string_view name) const {
        return has(name) ? std::optional{parse_duration(text(name)).value} : std::nullopt;
    }
    [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const {
        return has(name) ? parse_number(text(name)) : std::nullopt;
    }
    [[nodiscard]] std::optional<owner_id> owner(std::string_view name) const {
        return has(name) ? owner_id::parse(text(name)) : std::nullopt;
    }
    [[nodiscard]] std::optional<fencing_token> token(std::string_view name) const {
        const auto value = number(name);
        return value ? std::optional{fencing_token{*value}} : std::nullopt;
    }

private:
    std::string command_;
    std::vector<std::string> arguments_;
    std::map<std::string_view, std::vector<std::string>> values_;
};

[[nodiscard]] scope to_scope(std::string_view word) {
    return word == "fleet" ? scope::fleet : word == "host" ? scope::host : scope::process;
}

[[nodiscard]] loss_policy to_loss_policy(std::string_view word) {
    return word == "ignore" ? loss_policy::ignore
           : word == "kill" ? loss_policy::kill
                            : loss_policy::terminate;
}

/// One address for all that were given.
[[nodiscard]] std::string combined(const std::vector<std::string>& stores) {
    if (stores.empty()) {
        const auto chosen = environment("HOLDFAST_STORE");
        return chosen.empty() ? std::string{"local:"} : chosen;
    }
    if (stores.size() == 1) {
        return stores.front();
    }
    std::string address = "quorum:";
    for (const auto& each : stores) {
        if (each.find_first_of(" \t\n") != std::string::npos) {
            refuse("a store of a quorum has no white space in its address");
        }
        address += (&each == &stores.front() ? "" : " ") + each;
    }
    return address;
}

[[nodiscard]] scope required_scope(const given_options& given) {
    if (given.has("--require")) {
        return to_scope(given.text("--require"));
    }
    const auto required = environment("HOLDFAST_REQUIRE");
    if (required.empty()) {
        return scope::process;
    }
    const auto problem = problem_with(*find_option(given.command(), "--require"), required);
    if (!problem.empty()) {
        refuse_variable("HOLDFAST_REQUIRE: " + problem, required, given.command());
    }
    return to_scope(required);
}

[[nodiscard]] store_arguments make_store(const given_options& given) {
    const auto& stores = given.all("--store");
    store_arguments store;
    store.address = combined(stores);
    store.password_exposed =
        std::any_of(stores.begin(), stores.end(), [](const auto& each) { return has_password(each); });
    store.require = required_scope(given);
    return store;
}

/// What all commands but `run` have in common.
[[nodiscard]] store_arguments make_limited_store(const given_options& given) {
    auto store = make_store(given);
    store.timeout = given.duration("--timeout");
    return store;
}

[[nodiscard]] std::string only_name(const given_options& given) {
    const auto& names = given.arguments();
    if (names.empty() || names.front().empty()) {
        refuse(fmt::format("which lock? write holdfast {} NAME", given.command()), given.command());
    }
    if (names.size() > 1) {
        refuse(fmt::format("one NAME is enough, but there is also \"{}\"", names[1]), given.command());
    }
    return names.front();
}

[[nodiscard]] verbosity level(const given_options& given) {
    if (given.has("--quiet")) {
        return verbosity::quiet;
    }
    return given.has("--verbose") ? verbosity::verbose : verbosity::normal;
}

[[nodiscard]] std::optional<std::uint32_t> permits(const given_options& given) {
    const auto count = given.number("--permits");
    if (count && (*count == 0 || *count > 1'000'000)) {
        refuse(fmt::format("--permits: \"{}\" is no number from 1 to 1000000", *count), "run");
    }
    return count ? std::optional{static_cast<std::uint32_t>(*count)} : std::nullopt;
}

void check_run(const given_options& given, const run_arguments& run) {
    const std::array<std::pair<bool, const char*>, 7> conflicts{{
        {given.has("--no-wait") && given.has("--wait"), "--no-wait and --wait exclude each other"},
        {given.has("--quiet") && given.has("--verbose"), "--quiet and --verbose exclude each other"},
        {run.shared && run.permits, "--shared and --permits exclude each other"},
        {run.once_per && (run.shared || run.permits), "--once-per needs an exclusive lock"},
        {run.again && !run.once_per, "--again only makes sense with --once-per"},
        {run.min_hold && run.max_hold && *run.min_hold > *run.max_hold,
         "--min-hold is longer than --max-hold"},
        {run.grace && run.on_lost != loss_policy::terminate,
         "--grace only makes sense with --on-lost term"},
    }};
    for (const auto& [present, text] : conflicts) {
        if (present) {
            refuse(text, "run");
        }
    }
    static_cast<void>(make_ending_terms(run.ttl, run.grace, run.max_hold));  // or else it is refused
}

/// As in `client_options`, before anything is written into the store.
[[nodiscard]] std::string label(const given_options& given) {
    auto text = given.text("--label");
    constexpr std::size_t longest = 1024;
    if (text.size() > longest) {
        refuse(fmt::format("--label has {} bytes; at most {} are allowed", text.size(), longest),
               "run");
    }
    if (valid_utf8_prefix(text) != text.size()) {
        refuse("--label is not UTF-8", "run");
    }
    return text;
}

/// A prefix and a name may make the key of another name's marker.
void refuse_markers(const std::string& prefix, const std::string& name) {
    if (is_once_per_marker(prefix + name)) {
        refuse(
            fmt::format("\"{}\" is no name for a lock{}: names like this are for the markers that "
                        "--once-per leaves",
                        name, prefix.empty() ? "" : fmt::format(" behind the prefix \"{}\"", prefix)),
            "run");
    }
}

[[nodiscard]] run_arguments make_run(const given_options& given, std::vector<std::string> command,
                                     bool separated) {
    const auto& names = given.arguments();
    if (!separated && names.size() > 1) {
        refuse(fmt::format("put -- before the command: holdfast run {} -- {} ...", names[0], names[1]),
               "run");
    }
    run_arguments run;
    run.name = only_name(given);
    refuse_markers({}, run.name);
    if (command.empty()) {
        refuse(fmt::format("which command? write holdfast run {} -- COMMAND", run.name), "run");
    }
    run.command = std::move(command);
    run.wait = given.has("--no-wait") ? milliseconds{0} : given.duration("--wait");
    run.ttl = given.duration("--ttl").value_or(run.ttl);
    run.max_hold = given.duration("--max-hold");
    run.min_hold = given.duration("--min-hold");
    run.once_per = given.duration("--once-per");
    run.again = given.has("--again");
    run.grace = given.duration("--grace");
    run.on_lost = to_loss_policy(given.text("--on-lost"));
    run.pass_store =
        given.has("--pass-store") ? store_passing::with_password : store_passing::without_password;
    run.shared = given.has("--shared");
    run.permits = permits(given);
    run.label = label(given);
    run.json = given.has("--json");
    run.level = level(given);
    check_run(given, run);
    run.store = make_store(given);
    for (const auto& prefix : engines::summarise_address(run.store.address).prefixes) {
        refuse_markers(prefix, run.name);
    }
    return run;
}

[[nodiscard]] list_arguments make_list(const given_options& given) {
    const auto& prefixes = given.arguments();
    if (prefixes.size() > 1) {
        refuse(fmt::format("one PREFIX is enough, but there is also \"{}\"", prefixes[1]), "list");
    }
    return {make_limited_store(given), prefixes.empty() ? std::string{} : prefixes.front(),
            given.has("--json")};
}

[[nodiscard]] inspect_arguments make_inspect(const given_options& given) {
    auto name = only_name(given);
    return {make_limited_store(given), std::move(name), given.has("--json")};
}

[[nodiscard]] release_arguments make_release(const given_options& given) {
    release_arguments release;
    release.name = only_name(given);
    release.store = make_limited_store(given);
    release.force = given.has("--force");
    release.reason = given.text("--reason");
    release.owner = given.owner("--owner");
    release.token = given.token("--token");
    release.json = given.has("--json");
    return release;
}

/// Token and owner in the environment belong to the lock in the environment, not to another one.
void inherit_hold(check_arguments& check) {
    const auto token = inherited("HOLDFAST_TOKEN");
    const auto owner = inherited("HOLDFAST_OWNER");
    if (!token.empty()) {
        const auto value = parse_number(token);
        if (!value) {
            refuse_variable(fmt::format("HOLDFAST_TOKEN: \"{}\" is no token; it is a number", token),
                            token, "check");
        }
        check.token = fencing_token{*value};
    }
    if (!owner.empty()) {
        check.owner = owner_id::parse(owner);
        if (!check.owner) {
            refuse_variable(fmt::format("HOLDFAST_OWNER: \"{}\" is no owner", owner), owner, "check");
        }
    }
}

[[nodiscard]] check_arguments make_check(const given_options& given) {
    check_arguments check;
    check.store = make_limited_store(given);
    check.owner = given.owner("--owner");
    check.token = given.token("--token");
    check.json = given.has("--json");
    check.level = level(given);
    const auto inherited_name = inherited("HOLDFAST_NAME");
    if (looks_like_store(inherited_name)) {
        refuse_variable("HOLDFAST_NAME: a store's address is no name of a lock", inherited_name,
                        "check");
    }
    check.name = given.arguments().empty() ? inherited_name : only_name(given);
    if (check.name.empty()) {
        refuse("which lock? write holdfast check NAME, or call it inside holdfast run", "check");
    }
    if (check.name == inherited_name && !check.token && !check.owner) {
        inherit_hold(check);
    }
    if (!check.token && !check.owner && !inherited_name.empty()) {
        refuse(fmt::format("this command runs under \"{}\", not under \"{}\"; give --token, --owner or "
                           "both to say who should hold \"{}\"",
                           inherited_name, check.name, check.name),
               "check");
    }
    if (!check.token && !check.owner) {
        refuse("held by whom? give --token, --owner or both, or call it inside holdfast run", "check");
    }
    return check;
}

[[nodiscard]] doctor_arguments make_doctor(const given_options& given) {
    if (!given.arguments().empty()) {
        refuse(fmt::format("doctor looks at a store, not at \"{}\"; name it with --store",
                           given.arguments().front()),
               "doctor");
    }
    return {make_limited_store(given), given.has("--json")};
}

/// One line out of what CLI11 says, in our words where its own would puzzle.
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

/// The names, which are not for CLI11: it would take `[a,b]` for two names, and `[a]` for `a`. The
/// other words stay, with every `--option=value` as two words: CLI11 would take the word after
/// `--option=` for the value, and some values of a switch for yes, others for no.
void take_names(given_options& given, std::vector<std::string>& words) {
    std::vector<std::string> options;
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (*word == "--") {
            std::for_each(word + 1, words.end(), [&](const auto& name) { given.add_argument(name); });
            break;
        }
        if (!word->starts_with('-') || *word == "-") {
            given.add_argument(*word);
            continue;
        }
        const auto sign = word->find('=');
        const auto* const option = find_option(given.command(), word->substr(0, sign));
        if (option == nullptr) {
            options.push_back(*word);
            continue;
        }
        options.emplace_back(option->name);
        if (sign != std::string::npos && option->value.empty()) {
            refuse(fmt::format("{0} takes no value, but has \"{1}\"; write {0}, or leave it out",
                               option->name, word->substr(sign + 1)),
                   given.command());
        }
        if (sign != std::string::npos) {
            options.push_back(word->substr(sign + 1));
        } else if (!option->value.empty() && word + 1 != words.end()) {
            options.push_back(*++word);
        }
    }
    words = std::move(options);
}

/// Reads the words after the command's name by the table.
void read_options(given_options& given, std::vector<std::string> words) {
    take_names(given, words);
    CLI::App app;
    app.set_help_flag();
    for (const auto& option : option_entries()) {
        if (!takes(given.command(), option)) {
            continue;
        }
        const auto names =
            fmt::format("{}{}{}", option.letter, option.letter.empty() ? "" : ",", option.name);
        if (option.value.empty()) {
            app.add_flag_callback(names, [&given, &option] { given.add(option, {}); });
        } else if (option.repeatable) {
            app.add_option_function<std::vector<std::string>>(
                   names,
                   [&given, &option](const std::vector<std::string>& all) {
                       for (const auto& each : all) {
                           given.add(option, each);
                       }
                   })
                ->allow_extra_args(false);
        } else {
            app.add_option_function<std::string>(
                names, [&given, &option](const std::string& text) { given.add(option, text); });
        }
    }
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
}

[[nodiscard]] command_line make_command_line(const given_options& given,
                                             std::vector<std::string> program, bool separated) {
    const auto& command = given.command();
    if (given.has("--help")) {
        return help_request{command, find_option(command, "--json") != nullptr && given.has("--json")};
    }
    if (command == "run") {
        return make_run(given, std::move(program), separated);
    }
    if (command == "list") {
        return make_list(given);
    }
    if (command == "inspect") {
        return make_inspect(given);
    }
    if (command == "release") {
        return make_release(given);
    }
    if (command == "check") {
        return make_check(given);
    }
    return make_doctor(given);
}

[[nodiscard]] command_line parse_command(const std::string& command, std::vector<std::string> words) {
    // What follows -- is the command to run and none of CLI11's business.
    const auto separator = std::find(words.begin(), words.end(), "--");
    const bool separated = separator != words.end();
    std::vector<std::string> program;
    if (command == "run" && separated) {
        program.assign(separator + 1, words.end());
        words.erase(separator, words.end());
    }
    given_options given{command};
    try {
        read_options(given, std::move(words));
    } catch (const CLI::ParseError& error) {
        refuse(explain(error, command), command);
    }
    return make_command_line(given, std::move(program), separated);
}

/// The commands that have options, as a list for people.
[[nodiscard]] std::string known_commands() {
    std::string names;
    for (const auto& command : command_entries().subspan(1)) {
        names += (names.empty() ? "" : ", ") + std::string{command.name};
    }
    return names;
}

}  // namespace

command_line parse_arguments(std::vector<std::string> words) {
    if (words.empty()) {
        refuse("what to do? write holdfast run NAME -- COMMAND, or one of " + known_commands());
    }
    const bool json = asks_for_json(words);
    const auto first = words.front();
    if (first == "-h" || first == "--help" || first == "help") {
        const auto command = std::find_if(words.begin() + 1, words.end(),
                                          [](const std::string& word) { return word != "--json"; });
        return help_request{command == words.end() ? std::string{} : *command, json};
    }
    if (first == "--version" || first == "-V") {
        return version_request{json};
    }
    if (first.starts_with('-')) {
        refuse(fmt::format("options come after the command: holdfast COMMAND {} …; there are {}",
                           first.substr(0, first.find('=')), known_commands()));
    }
    if (first.empty() || find_command(first) == nullptr) {
        refuse(fmt::format("there is no command \"{}\"; there are {}", first, known_commands()));
    }
    if (first == "version") {
        const bool help = std::find(words.begin(), words.end(), "--help") != words.end();
        return help ? command_line{help_request{first, json}} : command_line{version_request{json}};
    }
    words.erase(words.begin());
    return parse_command(first, std::move(words));
}

bool asks_for_json(const std::vector<std::string>& words) {
    const auto separator = std::find(words.begin(), words.end(), "--");
    return std::find(words.begin(), separator, "--json") != separator;
}

}  // namespace holdfast::cli
