#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <holdfast/error.hpp>
#include <iostream>
#include <system_error>

#include "card.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "text.hpp"
#include "time_limit.hpp"

namespace holdfast::cli {

namespace {

/// The outcome in one line, for a person or a program.
int finish(const release_arguments& arguments, const std::optional<holder_info>& holder, bool released,
           const std::string& message) {
    const auto code = released ? exit_code::success : exit_code::not_acquired;
    if (arguments.json) {
        boost::json::object object{{"name", to_json_text(arguments.name)},
                                   {"released", released},
                                   {"status", to_status(code)},
                                   {"message", to_json_text(message)}};
        if (holder) {
            object["holder"] = to_json(*holder);
        }
        if (!released) {
            object["error"] = to_word(code);
        }
        print_json(object);
    }
    if (!arguments.json || !released) {
        messages{verbosity::normal}.say(message);
    }
    return to_status(code);
}

/// False when the lock has changed hands. A store that refuses has changed nothing, and says so: a
/// missing permission is no outage.
[[nodiscard]] bool take_away(client& store, const lock_info& lock, const holder_info& holder,
                             const std::string& reason) {
    try {
        return store.revoke(lock.name, holder.owner, holder.token, reason);
    } catch (const std::system_error& error) {
        if (error.code() != errc::unauthorised) {
            throw;
        }
        throw stop_program{exit_code::unauthorised,
                           fmt::format("{}; \"{}\" was left alone, and {} still holds it", error.what(),
                                       lock.name, describe_holder(holder))};
    }
}

[[nodiscard]] bool fits(const holder_info& holder, const release_arguments& arguments) {
    return (!arguments.owner || holder.owner == *arguments.owner) &&
           (!arguments.token || holder.token == *arguments.token);
}

/// The holder that is meant; nothing when it is not (or no longer) among the holders.
[[nodiscard]] std::optional<holder_info> choose(const lock_info& lock,
                                                const release_arguments& arguments) {
    std::vector<holder_info> fitting;
    std::copy_if(lock.holders.begin(), lock.holders.end(), std::back_inserter(fitting),
                 [&](const holder_info& holder) { return fits(holder, arguments); });
    if (fitting.size() > 1) {
        throw stop_program{
            exit_code::usage,
            fmt::format("\"{}\" has {} holders; say which with --owner (holdfast inspect shows them)",
                        lock.name, fitting.size())};
    }
    return fitting.empty() ? std::nullopt : std::optional{fitting.front()};
}

[[nodiscard]] bool is_confirmed(const lock_info& lock, const holder_info& holder) {
    write_all(STDERR_FILENO,
              fmt::format("Take \"{}\" from {} (token {})? It may still be working under it.\n"
                          "Type yes to go on: ",
                          printable(lock.name), describe_holder(holder), format_tokens(holder)));
    std::string answer;
    return std::getline(std::cin, answer) && answer == "yes";
}

/// Why the lock may not be taken away; empty when it may. A dead holder does not miss the lock. A
/// lingering holder has released it already.
[[nodiscard]] std::string objection(const lock_info& lock, const holder_info& holder,
                                    const release_arguments& arguments) {
    if (arguments.force || holder.process == liveness::dead || holder.lingering) {
        return {};
    }
    if (isatty(STDIN_FILENO) == 0) {
        return fmt::format(
            "\"{}\" is held by {}, which may still be working; without a terminal to ask on, add "
            "--force",
            lock.name, describe_holder(holder));
    }
    return is_confirmed(lock, holder) ? std::string{} : fmt::format("\"{}\" was left alone", lock.name);
}

}  // namespace

int release(const release_arguments& arguments) {
    time_limit looking{arguments.store.timeout, time_limit::request::looks, format_of(arguments)};
    const auto store = open_store(arguments.store);
    const auto lock = store->inspect(arguments.name);
    looking.finish();
    if (lock.holders.empty()) {
        const bool lock_or_nothing = lock.kind == name_kind::lock;
        return finish(arguments, std::nullopt, false,
                      lock_or_nothing
                          ? fmt::format("\"{}\" is free already", lock.name)
                          : fmt::format("nobody holds anything of \"{}\", which is {}; left alone",
                                        lock.name, describe_unheld(lock)));
    }
    const auto holder = choose(lock, arguments);
    if (!holder) {
        return finish(arguments, std::nullopt, false,
                      fmt::format("\"{}\" is not held by that owner and token (any more); left alone",
                                  lock.name));
    }
    if (!arguments.json) {
        write_output(fmt::format("{}\n{}", printable(lock.name),
                                 format_card(lock, *holder, std::chrono::system_clock::now())));
    }
    if (const auto reason = objection(lock, *holder, arguments); !reason.empty()) {
        return finish(arguments, holder, false, reason);
    }
    const auto reason = arguments.reason.empty() ? std::string{"released by hand"} : arguments.reason;
    // Only from the holder that was shown: whoever got the lock since then keeps it.
    time_limit taking{arguments.store.timeout, time_limit::request::changes, format_of(arguments)};
    const bool taken = take_away(*store, lock, *holder, reason);
    taking.finish();
    if (!taken) {
        return finish(arguments, holder, false,
                      fmt::format("\"{}\" changed hands meanwhile; left alone", lock.name));
    }
    return finish(arguments, holder, true,
                  fmt::format("\"{}\" was taken from {}", lock.name, describe_holder(*holder)));
}

}  // namespace holdfast::cli
