#include <unistd.h>

#include <boost/json.hpp>

#include "card.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "once_per.hpp"
#include "store.hpp"
#include "time_limit.hpp"

namespace holdfast::cli {

int inspect(const inspect_arguments& arguments) {
    time_limit limit{arguments.store.timeout, time_limit::request::looks, format_of(arguments)};
    const auto store = open_store(arguments.store);
    const auto lock = store->inspect(arguments.name);
    const auto earlier = find_earlier_run(*store, arguments.name);
    limit.finish();
    if (arguments.json) {
        auto object = to_json(lock);
        object["status"] = to_status(exit_code::success);
        object["store"] = to_json(*store);
        if (earlier.marker) {
            object["once_per"] = to_json(*earlier.marker);
        }
        print_json(object);
    } else {
        write_output(format_lock(lock, earlier, *store, std::chrono::system_clock::now()));
    }
    return to_status(exit_code::success);
}

}  // namespace holdfast::cli
