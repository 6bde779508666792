#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <set>

#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using row = std::vector<std::string>;
using std::chrono::system_clock;

[[nodiscard]] std::string short_holder(const holder_info& holder) {
    if (!holder.card) {
        return describe_holder(holder);
    }
    return printable(
        fmt::format("{}:{} {}", holder.card->host, holder.card->pid, holder.card->program));
}

[[nodiscard]] std::vector<lock_info> all_locks(client& store, const std::string& prefix) {
    std::vector<lock_info> all;
    std::set<std::string> names;
    std::string from;
    do {
        auto page = store.list(prefix, from);
        for (auto& lock : page.locks) {
            // A quorum may name a lock again on a later page.
            if (names.insert(lock.name).second) {
                all.push_back(std::move(lock));
            }
        }
        from = page.next;
    } while (!from.empty());
    return all;
}

[[nodiscard]] std::string format_locks(const std::vector<lock_info>& locks) {
    const auto now = system_clock::now();
    std::vector<row> rows{
        {"NAME", "MODE", "HOLDER", "SINCE", "TTL-LEFT", "TOKEN", "WAITERS", "STATUS"}};
    for (const auto& lock : locks) {
        const auto waiters = lock.waiters ? fmt::format("{}", *lock.waiters) : std::string{"-"};
        for (const auto& holder : lock.holders) {
            rows.push_back({printable(lock.name), format_mode(holder, lock), short_holder(holder),
                            format_since(holder, now), format_duration(holder.remaining),
                            format_tokens(holder), waiters, std::string{format_status(holder)}});
        }
    }
    return rows.size() > 1 ? format_table(rows) : std::string{};
}

[[nodiscard]] std::string describe_empty(const std::string& prefix, const client& store) {
    const auto which =
        prefix.empty() ? std::string{} : fmt::format(" with names starting with \"{}\"", prefix);
    return fmt::format("no locks{} are held in {}", which, store.store());
}

}  // namespace

int list(const list_arguments& arguments) {
    const auto store = open_store(arguments.store);
    const auto locks = all_locks(*store, arguments.prefix);
    if (arguments.json) {
        boost::json::array names;
        for (const auto& lock : locks) {
            names.push_back(to_json(lock));
        }
        print_json(STDOUT_FILENO, {{"store", to_json(*store)}, {"locks", std::move(names)}});
        return to_status(exit_code::success);
    }
    const auto table = format_locks(locks);
    if (table.empty()) {
        messages{verbosity::normal}.say(describe_empty(arguments.prefix, *store));
    }
    write_all(STDOUT_FILENO, table);
    return to_status(exit_code::success);
}

}  // namespace holdfast::cli
