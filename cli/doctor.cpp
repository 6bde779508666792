#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

[[nodiscard]] bool warns(const finding& one) {
    return one.level == finding::severity::warning;
}

[[nodiscard]] std::string to_text(const finding& one) {
    const auto where = one.server.empty() ? std::string{} : one.server + ": ";
    return fmt::format("{:<8} {}\n", warns(one) ? "WARNING" : "ok", printable(where + one.text));
}

[[nodiscard]] boost::json::object to_json(const finding& one) {
    return {{"level", warns(one) ? "warning" : "fact"}, {"server", one.server}, {"text", one.text}};
}

}  // namespace

int doctor(const doctor_arguments& arguments) {
    const auto store = open_store(arguments.store);
    const auto findings = store->examine();
    const auto warnings = std::count_if(findings.begin(), findings.end(), warns);
    const auto status = to_status(warnings == 0 ? exit_code::success : exit_code::configuration);
    if (arguments.json) {
        boost::json::array all;
        for (const auto& one : findings) {
            all.push_back(to_json(one));
        }
        print_json(STDOUT_FILENO, {{"store", to_json(*store)}, {"findings", std::move(all)}});
        return status;
    }
    auto text = fmt::format("{:<8} {}: excludes {}\n", "ok", printable(store->store()),
                            store->promises().reach_text);
    for (const auto& one : findings) {
        text += to_text(one);
    }
    write_all(STDOUT_FILENO, text);
    return status;
}

}  // namespace holdfast::cli
