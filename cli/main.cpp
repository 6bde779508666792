#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/version.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "descriptor.hpp"
#include "engine_loading.hpp"
#include "exit_code.hpp"
#include "help.hpp"
#include "json.hpp"
#include "messages.hpp"
#include "secrets.hpp"
#include "shortage.hpp"

namespace holdfast::cli {

namespace {

struct dispatcher {
    int operator()(const help_request& request) const {
        const auto text = help_text(request.command);
        if (text.empty()) {
            throw stop_program{
                exit_code::usage,
                fmt::format("there is no command \"{}\" (see holdfast --help)", request.command)};
        }
        if (request.json) {
            print_json({{"status", to_status(exit_code::success)}, {"text", text}});
        } else {
            write_output(text);
        }
        return to_status(exit_code::success);
    }
    int operator()(const version_request& request) const {
        if (request.json) {
            print_json({{"status", to_status(exit_code::success)}, {"version", version()}});
        } else {
            write_output(fmt::format("holdfast {}\n", version()));
        }
        return to_status(exit_code::success);
    }
    int operator()(const run_arguments& arguments) const { return run(arguments); }
    int operator()(const list_arguments& arguments) const { return list(arguments); }
    int operator()(const inspect_arguments& arguments) const { return inspect(arguments); }
    int operator()(const release_arguments& arguments) const { return release(arguments); }
    int operator()(const check_arguments& arguments) const { return check(arguments); }
    int operator()(const doctor_arguments& arguments) const { return doctor(arguments); }
};

/// `run` keeps standard output for its command.
void report(const problem& reason, const std::vector<std::string>& words) {
    const messages out{verbosity::normal};
    if (!asks_for_json(words)) {
        out.error(reason.message);
    } else if (words.front() == "run") {
        auto object = to_json(reason);
        object["outcome"] = "failed";
        out.document(to_document(object) + "\n");
    } else {
        print_problem(reason, output_format::json);
    }
}

}  // namespace

}  // namespace holdfast::cli

int main(int argc, char** argv) {
    using namespace holdfast::cli;
    reserve_standard_descriptors();
    reserve_less_memory();
#ifdef HOLDFAST_LOADS_ENGINES
    holdfast::engines::load_engines_with(load_engine);
#endif
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    try {
        hide_passwords(argc, argv);
        const auto request = parse_arguments(words);
        hide_password_in_environment();
        require_descriptors();
        require_memory();
        require_threads();
        return std::visit(dispatcher{}, request);
    } catch (...) {
        auto reason = describe_current_exception();
        reason.message = without_addresses(std::move(reason.message), words);
        report(reason, words);
        return to_status(reason.code);
    }
}
