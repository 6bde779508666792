#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "time_limit.hpp"

namespace holdfast::cli {

namespace {

[[nodiscard]] bool is_meant(const holder_info& holder, const check_arguments& arguments) {
    if (holder.lingering || (arguments.owner && holder.owner != *arguments.owner)) {
        return false;
    }
    if (!arguments.token) {
        return true;
    }
    const auto first = holder.token.value;
    return first <= arguments.token->value && arguments.token->value - first < holder.token_count;
}

[[nodiscard]] boost::json::object to_json(const check_arguments& arguments, bool held,
                                          const std::string& message) {
    boost::json::object object{{"status", to_status(held ? exit_code::success : exit_code::lost)},
                               {"name", to_json_text(arguments.name)},
                               {"held", held}};
    if (!held) {
        object["error"] = to_word(exit_code::lost);
        object["message"] = to_json_text(message);
    }
    return object;
}

}  // namespace

int check(const check_arguments& arguments) {
    const messages out{arguments.level};
    time_limit limit{arguments.store.timeout, time_limit::request::looks, format_of(arguments)};
    const auto store = open_store(arguments.store);
    const auto lock = store->inspect(arguments.name);
    limit.finish();
    const bool held =
        std::any_of(lock.holders.begin(), lock.holders.end(),
                    [&](const holder_info& holder) { return is_meant(holder, arguments); });
    const auto message =
        held ? fmt::format("\"{}\" is still held", lock.name)
             : fmt::format("\"{}\" is no longer held: stop, and undo what is not finished", lock.name);
    if (arguments.json) {
        print_json(to_json(arguments, held, message));
    }
    if (!held) {
        out.say(message);
    } else if (!arguments.json) {
        out.detail(message);
    }
    return to_status(held ? exit_code::success : exit_code::lost);
}

}  // namespace holdfast::cli
