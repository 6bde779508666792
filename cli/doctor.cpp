#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "text.hpp"
#include "time_limit.hpp"

namespace holdfast::cli {

namespace {

[[nodiscard]] bool warns(const finding& found) {
    return found.level == finding::severity::warning;
}

struct level_names {
    const char* text;
    const char* json;
};

[[nodiscard]] level_names names_of(finding::severity level) {
    switch (level) {
        case finding::severity::warning:
            return {"WARNING", "warning"};
        case finding::severity::advice:
            return {"ADVICE", "advice"};
        case finding::severity::unchecked:
            return {"UNKNOWN", "unchecked"};
        case finding::severity::fact:
            break;
    }
    return {"ok", "fact"};
}

[[nodiscard]] std::string to_text(const finding& found) {
    const auto server = found.server.empty() ? std::string{} : found.server + ": ";
    return fmt::format("{:<8} {}\n", names_of(found.level).text, printable(server + found.text));
}

[[nodiscard]] std::string describe_reach(const client& store) {
    return fmt::format("{}: excludes {}", store.store(), store.promises().reach_text);
}

[[nodiscard]] boost::json::object to_json(const finding& found) {
    return {{"level", names_of(found.level).json},
            {"server", to_json_text(found.server)},
            {"text", to_json_text(found.text)}};
}

}  // namespace

int doctor(const doctor_arguments& arguments) {
    time_limit limit{arguments.store.timeout, time_limit::request::looks, format_of(arguments)};
    const auto store = open_store(arguments.store);
    auto findings = store->examine();
    limit.finish();
    findings.insert(findings.begin(), finding{finding::severity::fact, {}, describe_reach(*store)});
    const auto warnings = std::count_if(findings.begin(), findings.end(), warns);
    const auto status = to_status(warnings == 0 ? exit_code::success : exit_code::configuration);
    if (arguments.json) {
        boost::json::array all;
        for (const auto& found : findings) {
            all.push_back(to_json(found));
        }
        boost::json::object object{
            {"status", status}, {"store", to_json(*store)}, {"findings", std::move(all)}};
        if (warnings > 0) {
            const auto message =
                fmt::format("{} of {} findings {} locks; their level is warning", warnings,
                            findings.size(), warnings == 1 ? "endangers" : "endanger");
            object["error"] = to_word(exit_code::configuration);
            object["message"] = message;
            messages{verbosity::normal}.error(message);
        }
        print_json(object);
        return status;
    }
    std::string text;
    for (const auto& found : findings) {
        text += to_text(found);
    }
    write_output(text);
    return status;
}

}  // namespace holdfast::cli
