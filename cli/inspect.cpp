#include <unistd.h>

#include <boost/json.hpp>

#include "card.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"

namespace holdfast::cli {

int inspect(const inspect_arguments& arguments) {
    const auto store = open_store(arguments.store);
    const auto lock = store->inspect(arguments.name);
    if (arguments.json) {
        auto object = to_json(lock);
        object["store"] = to_json(*store);
        print_json(STDOUT_FILENO, object);
    } else {
        write_all(STDOUT_FILENO, format_lock(lock, *store, std::chrono::system_clock::now()));
    }
    return to_status(exit_code::success);
}

}  // namespace holdfast::cli
