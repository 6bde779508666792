#include "fixture.hpp"

namespace holdfast::cli::testing {

const std::string& program_path() {
    static const std::string path{HOLDFAST_CLI_PATH};
    return path;
}

std::unique_ptr<program> cli_test::start(const words& arguments, program_options options) const {
    words command{program_path()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    options.environment.merge(environment());
    return std::make_unique<program>(command, options);
}

std::unique_ptr<program> cli_test::finish(const words& arguments, program_options options) const {
    if (!options.input) {
        options.input = "";
    }
    auto started = start(arguments, std::move(options));
    started->wait();
    return started;
}

cli_test::words cli_test::run_script(const std::string& name, const words& options,
                                     const std::string& script) const {
    words arguments{"run", name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "sh", "-c", script});
    return arguments;
}

std::unique_ptr<program> cli_test::hold(const std::string& name, const words& options) const {
    auto holder = start(run_script(name, options, "echo holding; read line; exit 0"));
    holder->wait_for_output("holding");
    return holder;
}

boost::json::object cli_test::inspect(const std::string& name) const {
    const auto asked = finish({"inspect", name, "--json"});
    return parse(asked->output());
}

boost::json::object cli_test::holder_of(const std::string& name) const {
    return inspect(name).at("holders").as_array().at(0).as_object();
}

void cli_test::wait_for_waiters(const std::string& name, std::int64_t count) const {
    wait_until("waiters", [&] {
        const auto lock = inspect(name);
        const auto* waiters = lock.if_contains("waiters");
        return waiters != nullptr && waiters->to_number<std::int64_t>() == count;
    });
}

boost::json::object cli_test::parse(const std::string& text) {
    return boost::json::parse(text).as_object();
}

}  // namespace holdfast::cli::testing
