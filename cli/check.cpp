#include <fmt/format.h>

#include <algorithm>

#include "commands.hpp"
#include "exit_code.hpp"
#include "store.hpp"

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

}  // namespace

int check(const check_arguments& arguments) {
    const messages out{arguments.level};
    const auto store = open_store(arguments.store);
    const auto lock = store->inspect(arguments.name);
    const bool held =
        std::any_of(lock.holders.begin(), lock.holders.end(),
                    [&](const holder_info& holder) { return is_meant(holder, arguments); });
    if (held) {
        out.detail(fmt::format("\"{}\" is still held", lock.name));
        return to_status(exit_code::success);
    }
    out.say(fmt::format("\"{}\" is no longer held: stop, and undo what is not finished", lock.name));
    return to_status(exit_code::lost);
}

}  // namespace holdfast::cli
