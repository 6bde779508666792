#include "arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>

#include "duration.hpp"
#include "exit_code.hpp"
#include "secrets.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

[[noreturn]] void refuse(const std::string& problem, const std::string& command = {}) {
    const auto where =
        command.empty() ? std::string{"holdfast --help"} : fmt::format("holdfast {} --help", command);
    throw stop_program{exit_code::usage, fmt::format("{} (see {})", problem, where)};
}

[[nodiscard]] std::string environment(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? std::string{} : std::string{value};
}

[[nodiscard]] std::optional<std::uint64_t> parse_number(const std::string& text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end && !text.empty() ? std::optional{value} : std::nullopt;
}

[[nodiscard]] fencing_token parse_token(const std::string& text, const std::string& source) {
    const auto value = parse_number(text);
    if (!value) {
        throw CLI::ValidationError{source, fmt::format("\"{}\" is no token; it is a number", text)};
    }
    return fencing_token{*value};
}

[[nodiscard]] owner_id parse_owner(const std::string& text, const std::string& source) {
    const auto owner = owner_id::parse(text);
    if (!owner) {
        throw CLI::ValidationError{
            source, fmt::format("\"{}\" is no owner; copy one from holdfast inspect", text)};
    }
    return *owner;
}

[[nodiscard]] scope parse_scope(const std::string& text, const std::string& source) {
    if (text == "process") {
        return scope::process;
    }
    if (text == "host") {
        return scope::host;
    }
    if (text == "fleet") {
        return scope::fleet;
    }
    throw CLI::ValidationError{source, fmt::format("\"{}\" is none of fleet, host, process", text)};
}

void duration_option(CLI::App& command, const std::string& name, std::optional<milliseconds>& target) {
    command.add_option_function<std::string>(name, [name, &target](const std::string& text) {
        const auto parsed = parse_duration(text);
        if (!parsed.problem.empty()) {
            throw CLI::ValidationError{name, parsed.problem};
        }
        target = parsed.value;
    });
}

/// What a command line holds before it is known to make sense.
struct raw_arguments {
    /// Several are a quorum.
    std::vector<std::string> stores;
    std::optional<scope> require;
    std::vector<std::string> positionals;
    std::optional<milliseconds> wait, ttl;
    bool help{}, no_wait{}, quiet{}, verbose{};
    run_arguments run;
    release_arguments release;
    bool json{};
};

void common_options(CLI::App& command, raw_arguments& raw) {
    command.add_flag("-h,--help", raw.help);
    command.add_option("--store", raw.stores)->allow_extra_args(false);
    command.add_option("names", raw.positionals);
    command.add_option_function<std::string>(
        "--require", [&raw](const std::string& text) { raw.require = parse_scope(text, "--require"); });
}

void hold_options(CLI::App& command, raw_arguments& raw) {
    command.add_option_function<std::string>("--owner", [&raw](const std::string& text) {
        raw.release.owner = parse_owner(text, "--owner");
    });
    command.add_option_function<std::string>("--token", [&raw](const std::string& text) {
        raw.release.token = parse_token(text, "--token");
    });
}

void run_options(CLI::App& command, raw_arguments& raw) {
    auto& run = raw.run;
    command.add_flag("--no-wait", raw.no_wait);
    duration_option(command, "--wait", raw.wait);
    duration_option(command, "--ttl", raw.ttl);
    duration_option(command, "--max-hold", run.max_hold);
    duration_option(command, "--min-hold", run.min_hold);
    duration_option(command, "--once-per", run.once_per);
    duration_option(command, "--grace", run.grace);
    command.add_flag("--shared", run.shared);
    command.add_option_function<std::string>("--permits", [&run](const std::string& text) {
        const auto value = parse_number(text);
        if (!value || *value == 0 || *value > 1'000'000) {
            throw CLI::ValidationError{"--permits",
                                       fmt::format("\"{}\" is no number from 1 to 1000000", text)};
        }
        run.permits = static_cast<std::uint32_t>(*value);
    });
    command.add_option_function<std::string>("--on-lost", [&run](const std::string& text) {
        static const std::map<std::string, loss_policy> policies{{"term", loss_policy::terminate},
                                                                 {"kill", loss_policy::kill},
                                                                 {"ignore", loss_policy::ignore}};
        const auto found = policies.find(text);
        if (found == policies.end()) {
            throw CLI::ValidationError{"--on-lost",
                                       fmt::format("\"{}\" is none of term, kill, ignore", text)};
        }
        run.on_lost = found->second;
    });
    command.add_flag_callback("--pass-store",
                              [&run] { run.pass_store = store_passing::with_password; });
    command.add_option("--label", run.label);
    command.add_flag("--json", raw.json);
    command.add_flag("-v,--verbose", raw.verbose);
    command.add_flag("-q,--quiet", raw.quiet);
}

/// One address for all that were given.
[[nodiscard]] std::string combined(const std::vector<std::string>& stores) {
    if (stores.size() < 2) {
        return stores.empty() ? environment("HOLDFAST_STORE") : stores.front();
    }
    std::string address = "quorum:";
    for (const auto& each : stores) {
        if (each.empty() || each.find_first_of(" \t\n") != std::string::npos) {
            refuse("a store of a quorum has no white space in its address");
        }
        address += (&each == &stores.front() ? "" : " ") + each;
    }
    return address;
}

[[nodiscard]] store_arguments finish_store(const raw_arguments& raw) {
    store_arguments store;
    store.address = combined(raw.stores);
    store.password_exposed = std::any_of(raw.stores.begin(), raw.stores.end(),
                                         [](const auto& each) { return has_password(each); });
    if (store.address.empty()) {
        store.address = "local:";
    }
    const auto required = environment("HOLDFAST_REQUIRE");
    if (raw.require) {
        store.require = *raw.require;
    } else if (!required.empty()) {
        store.require = parse_scope(required, "HOLDFAST_REQUIRE");
    }
    return store;
}

[[nodiscard]] std::string only_name(const raw_arguments& raw, const std::string& command) {
    if (raw.positionals.empty() || raw.positionals.front().empty()) {
        refuse(fmt::format("which lock? write holdfast {} NAME", command), command);
    }
    if (raw.positionals.size() > 1) {
        refuse(fmt::format("one NAME is enough, but there is also \"{}\"", raw.positionals[1]),
               command);
    }
    return raw.positionals.front();
}

[[nodiscard]] verbosity level(const raw_arguments& raw) {
    if (raw.quiet) {
        return verbosity::quiet;
    }
    return raw.verbose ? verbosity::verbose : verbosity::normal;
}

void check_run(const raw_arguments& raw) {
    const auto& run = raw.run;
    const std::array<std::pair<bool, const char*>, 6> conflicts{{
        {raw.no_wait && raw.wait, "--no-wait and --wait exclude each other"},
        {raw.quiet && raw.verbose, "--quiet and --verbose exclude each other"},
        {run.shared && run.permits, "--shared and --permits exclude each other"},
        {run.once_per && (run.shared || run.permits), "--once-per needs an exclusive lock"},
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
}

[[nodiscard]] command_line finish_run(const raw_arguments& raw, std::vector<std::string> command,
                                      bool separated) {
    if (!separated && raw.positionals.size() > 1) {
        refuse(fmt::format("put -- before the command: holdfast run {} -- {} ...", raw.positionals[0],
                           raw.positionals[1]),
               "run");
    }
    auto run = raw.run;
    run.name = only_name(raw, "run");
    if (command.empty()) {
        refuse(fmt::format("which command? write holdfast run {} -- COMMAND", run.name), "run");
    }
    check_run(raw);
    run.command = std::move(command);
    run.wait = raw.no_wait ? milliseconds{0} : raw.wait;
    run.ttl = raw.ttl.value_or(run.ttl);
    run.json = raw.json;
    run.level = level(raw);
    run.store = finish_store(raw);
    return run;
}

[[nodiscard]] command_line finish_check(const raw_arguments& raw) {
    check_arguments check;
    check.store = finish_store(raw);
    check.owner = raw.release.owner;
    check.token = raw.release.token;
    check.level = level(raw);
    const auto inherited_name = environment("HOLDFAST_NAME");
    check.name = raw.positionals.empty() ? inherited_name : only_name(raw, "check");
    if (check.name.empty()) {
        refuse("which lock? write holdfast check NAME, or call it inside holdfast run", "check");
    }
    // Token and owner in the environment belong to the lock in the environment, not to another one.
    if (check.name == inherited_name && !check.token && !check.owner) {
        const auto token = environment("HOLDFAST_TOKEN");
        const auto owner = environment("HOLDFAST_OWNER");
        check.token =
            token.empty() ? std::nullopt : std::optional{parse_token(token, "HOLDFAST_TOKEN")};
        check.owner =
            owner.empty() ? std::nullopt : std::optional{parse_owner(owner, "HOLDFAST_OWNER")};
    }
    if (!check.token && !check.owner) {
        refuse("held by whom? give --token, --owner or both, or call it inside holdfast run", "check");
    }
    return check;
}

[[nodiscard]] command_line finish_others(const raw_arguments& raw, const std::string& command) {
    if (command == "list") {
        if (raw.positionals.size() > 1) {
            refuse(fmt::format("one PREFIX is enough, but there is also \"{}\"", raw.positionals[1]),
                   command);
        }
        return list_arguments{finish_store(raw), raw.positionals.empty() ? "" : raw.positionals.front(),
                              raw.json};
    }
    if (command == "inspect") {
        return inspect_arguments{finish_store(raw), only_name(raw, command), raw.json};
    }
    if (command == "release") {
        auto release = raw.release;
        release.store = finish_store(raw);
        release.name = only_name(raw, command);
        release.json = raw.json;
        return release;
    }
    if (command == "doctor") {
        if (!raw.positionals.empty()) {
            refuse(fmt::format("doctor looks at a store, not at \"{}\"; name it with --store",
                               raw.positionals.front()),
                   command);
        }
        return doctor_arguments{finish_store(raw), raw.json};
    }
    return finish_check(raw);
}

/// One line out of what CLI11 says, in our words where its own would puzzle.
[[nodiscard]] std::string explain(const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (error.get_name() == "ExtrasError") {
        const auto colon = text.find(": ");
        return "unknown option" + (colon == std::string::npos ? "" : text.substr(colon));
    }
    return text;
}

struct parser {
    raw_arguments raw;
    CLI::App app;

    parser() {
        app.set_help_flag();
        app.require_subcommand(0, 1);
        for (const char* name : {"run", "list", "inspect", "release", "check", "doctor"}) {
            auto* command = app.add_subcommand(name);
            command->set_help_flag();
            common_options(*command, raw);
        }
        run_options(*app.get_subcommand("run"), raw);
        for (const char* name : {"list", "inspect", "release", "doctor"}) {
            app.get_subcommand(name)->add_flag("--json", raw.json);
        }
        hold_options(*app.get_subcommand("release"), raw);
        app.get_subcommand("release")->add_flag("--force", raw.release.force);
        app.get_subcommand("release")->add_option("--reason", raw.release.reason);
        hold_options(*app.get_subcommand("check"), raw);
        app.get_subcommand("check")->add_flag("-q,--quiet", raw.quiet);
        app.get_subcommand("check")->add_flag("-v,--verbose", raw.verbose);
    }
};

[[nodiscard]] command_line parse_command(const std::string& command, std::vector<std::string> words) {
    // What follows -- is the command to run and none of CLI11's business.
    const auto separator = std::find(words.begin(), words.end(), "--");
    const bool separated = separator != words.end();
    std::vector<std::string> program;
    if (command == "run" && separated) {
        program.assign(separator + 1, words.end());
        words.erase(separator, words.end());
    }
    parser all;
    try {
        std::reverse(words.begin(), words.end());
        all.app.parse(std::move(words));
        if (all.raw.help) {
            return help_request{command};
        }
        return command == "run" ? finish_run(all.raw, std::move(program), separated)
                                : finish_others(all.raw, command);
    } catch (const CLI::ParseError& error) {
        refuse(explain(error), command);
    }
}

}  // namespace

command_line parse_arguments(std::vector<std::string> words) {
    if (words.empty()) {
        refuse(
            "what to do? write holdfast run NAME -- COMMAND, or list, inspect, release, check, doctor");
    }
    const auto& first = words.front();
    if (first == "-h" || first == "--help" || first == "help") {
        return help_request{words.size() > 1 ? words[1] : std::string{}};
    }
    if (first == "version" || first == "--version" || first == "-V") {
        return version_request{};
    }
    static const std::array<std::string_view, 6> commands{"run",     "list",  "inspect",
                                                          "release", "check", "doctor"};
    if (std::find(commands.begin(), commands.end(), first) == commands.end()) {
        refuse(fmt::format(
            "there is no command \"{}\"; there are run, list, inspect, release, check, doctor, version",
            first));
    }
    const auto command = first;
    return parse_command(command, std::move(words));
}

}  // namespace holdfast::cli
