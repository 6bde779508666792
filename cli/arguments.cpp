#include "arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <holdfast/engine.hpp>

#include "command_table.hpp"
#include "duration.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "once_per.hpp"
#include "options.hpp"
#include "secrets.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// The command line is right: whoever set the variable has to change something. A value that is a
/// store's address, which may hold a password, is not repeated.
[[noreturn]] void refuse_variable(const std::string& problem, const std::string& value,
                                  const std::string& command) {
    throw stop_program{exit_code::configuration,
                       with_hint(without_addresses(problem, {value}), command)};
}

/// Empty when the variable is not set.
[[nodiscard]] std::string inherited(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? std::string{} : std::string{value};
}

/// Refuses a variable that is set but empty: a script whose own variable was not set must not end up
/// with another store, or with fewer demands, than it asked for. (CLI11 offers `envname`, but passes
/// over a variable whose value is empty or wrong.)
[[nodiscard]] std::string environment(const char* variable) {
    auto value = inherited(variable);
    if (value.empty() && std::getenv(variable) != nullptr) {
        throw stop_program{
            exit_code::configuration,
            fmt::format("{0} is set, but empty; give it a value, or unset {0}", variable)};
    }
    return value;
}

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

/// (CLI11 offers `excludes` and `needs`, which know nothing of values and of reasons.)
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

/// The rules of `client_options`, checked before anything is written into the store.
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

/// A prefix and a name together may be the name of another lock's marker.
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
    // The words after -- are the command to run, so they are not read as options.
    const auto separator = std::find(words.begin(), words.end(), "--");
    const bool separated = separator != words.end();
    std::vector<std::string> program;
    if (command == "run" && separated) {
        program.assign(separator + 1, words.end());
        words.erase(separator, words.end());
    }
    return make_command_line(given_options{command, words}, std::move(program), separated);
}

/// What follows the first word, without `--json`.
[[nodiscard]] std::vector<std::string> words_behind_first(std::vector<std::string> words) {
    words.erase(words.begin());
    std::erase(words, "--json");
    return words;
}

[[nodiscard]] command_line make_help(const std::vector<std::string>& words, bool json) {
    const auto commands = words_behind_first(words);
    if (commands.size() > 1) {
        refuse(fmt::format("one command is enough, but there is also \"{}\"", commands[1]), "help");
    }
    return help_request{commands.empty() ? std::string{} : commands.front(), json};
}

[[nodiscard]] command_line make_version(const std::vector<std::string>& words, bool json) {
    const auto others = words_behind_first(words);
    if (std::find(others.begin(), others.end(), "--help") != others.end()) {
        return help_request{"version", json};
    }
    if (!others.empty()) {
        refuse(fmt::format("version takes no argument, but there is \"{}\"", others.front()),
               "version");
    }
    return version_request{json};
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

// Commands are not CLI11 subcommands: its errors neither list the commands nor say what to write.
command_line parse_arguments(std::vector<std::string> words) {
    if (words.empty()) {
        refuse("what to do? write holdfast run NAME -- COMMAND, or one of " + known_commands());
    }
    const bool json = asks_for_json(words);
    const auto first = words.front();
    if (first == "-h" || first == "--help" || first == "help") {
        return make_help(words, json);
    }
    if (first == "--version" || first == "-V" || first == "version") {
        return make_version(words, json);
    }
    if (first.starts_with('-')) {
        refuse(fmt::format("options come after the command: holdfast COMMAND {} …; there are {}",
                           first.substr(0, first.find('=')), known_commands()));
    }
    if (first.empty() || find_command(first) == nullptr) {
        refuse(fmt::format("there is no command \"{}\"; there are {}", first, known_commands()));
    }
    words.erase(words.begin());
    return parse_command(first, std::move(words));
}

bool asks_for_json(const std::vector<std::string>& words) {
    const auto separator = std::find(words.begin(), words.end(), "--");
    return std::find(words.begin(), separator, "--json") != separator;
}

}  // namespace holdfast::cli
