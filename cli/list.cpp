#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <holdfast/clock.hpp>
#include <map>
#include <mutex>
#include <system_error>

#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "store.hpp"
#include "text.hpp"
#include "time_limit.hpp"

namespace holdfast::cli {

namespace {

using row = std::vector<std::string>;
using std::chrono::system_clock;

[[nodiscard]] std::string short_holder(const holder_info& holder) {
    if (!holder.card) {
        return describe_holder(holder);
    }
    const auto& [host, pid, program, label] = *holder.card;
    auto text = fmt::format("{}:{} {}", host, pid, program);
    if (!label.empty()) {
        text += fmt::format(" \"{}\"", label);
    }
    return printable(text);
}

/// What has been found so far.
struct found_locks {
    std::map<std::string, lock_info> by_name;
    /// Why there may be others.
    problem missing{exit_code::success, {}};

    [[nodiscard]] bool complete() const noexcept { return missing.code == exit_code::success; }
};

[[nodiscard]] std::string format_locks(const std::map<std::string, lock_info>& locks) {
    const auto now = system_clock::now();
    std::vector<row> rows{
        {"NAME", "MODE", "HOLDER", "SINCE", "TTL-LEFT", "TOKEN", "WAITERS", "STATUS"}};
    for (const auto& [name, lock] : locks) {
        const auto waiters = lock.waiters ? fmt::format("{}", *lock.waiters) : std::string{"-"};
        for (const auto& holder : lock.holders) {
            rows.push_back({printable(name), format_mode(holder, lock), short_holder(holder),
                            format_since(holder, now), format_duration(holder.remaining),
                            format_tokens(holder), waiters, std::string{format_status(holder)}});
        }
    }
    return rows.size() > 1 ? format_table(rows) : std::string{};
}

[[nodiscard]] std::string describe_empty(const std::string& prefix, const client& store) {
    const auto condition =
        prefix.empty() ? std::string{} : fmt::format(" with names starting with \"{}\"", prefix);
    return fmt::format("no locks{} are held in {}", condition, store.store());
}

/// Collects a list page by page. `--timeout` may end the program at any moment: then the pages that
/// have arrived are shown.
class collection {
public:
    explicit collection(const list_arguments& arguments) noexcept : arguments_{arguments} {}

    /// Asks for all pages.
    void collect(client& store) {
        std::string from;
        do {
            lock_page page;
            try {
                page = store.list(arguments_.prefix, from, most_on_a_page, time_left());
            } catch (const std::system_error&) {
                const auto reason = time_is_over() ? time_limit::reason_of(*arguments_.store.timeout,
                                                                           time_limit::request::looks)
                                                   : describe_current_exception();
                if (from.empty()) {
                    throw stop_program{reason.code, reason.message};  // nothing is known
                }
                leave_out(reason);
                return;
            }
            add(store, page);
            from = page.next;
        } while (!from.empty());
    }

    /// Shows what there is. The exit status says whether that is all.
    int show() {
        const std::lock_guard lock{guard_};
        return print();
    }

    /// The time is over.
    void end_early(const problem& reason) {
        const std::lock_guard lock{guard_};
        if (store_ == nullptr) {
            print_problem(reason, format_of(arguments_));
            return;
        }
        found_.missing = reason;
        static_cast<void>(print());
    }

private:
    static constexpr std::size_t most_on_a_page = 1000;

    /// How long the next page may take. The library ends a page when part of this time is over, so most
    /// of the list is known when the time limit ends the program.
    [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const {
        const auto& timeout = arguments_.store.timeout;
        if (!timeout) {
            return std::nullopt;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(began_ + *timeout - clock::now());
        return std::max(left, std::chrono::milliseconds{1});
    }

    /// The library's own deadline ends a moment before, or after, the program's.
    [[nodiscard]] bool time_is_over() const {
        const auto left = time_left();
        return left && *left <= std::chrono::milliseconds{2};
    }

    void add(client& store, lock_page& page) {
        const std::lock_guard lock{guard_};
        store_ = &store;
        for (auto& each : page.locks) {
            // A store may name a lock again on a later page.
            found_.by_name.try_emplace(each.name, std::move(each));
        }
        if (page.missing) {
            auto& all = found_.missing;
            const bool known = all.message.find(page.missing.detail) != std::string::npos;
            all.message += known ? "" : (all.message.empty() ? "" : "; ") + page.missing.detail;
            all.code = exit_code::unavailable;
        }
    }

    void leave_out(problem reason) {
        const std::lock_guard lock{guard_};
        found_.missing = std::move(reason);
    }

    int print() const {
        const auto status = to_status(found_.missing.code);
        const auto missing = "the list is not complete: " + found_.missing.message;
        const messages out{verbosity::normal};
        if (arguments_.json) {
            boost::json::array names;
            for (const auto& [name, lock] : found_.by_name) {
                names.push_back(to_json(lock));
            }
            boost::json::object document{
                {"status", status}, {"store", to_json(*store_)}, {"locks", std::move(names)}};
            if (!found_.complete()) {
                document["error"] = to_word(found_.missing.code);
                document["message"] = to_json_text(missing);
            }
            print_json(document);
        } else {
            const auto table = format_locks(found_.by_name);
            if (table.empty() && found_.complete()) {
                out.say(describe_empty(arguments_.prefix, *store_));
            }
            write_output(table);
        }
        if (!found_.complete()) {
            out.error(missing);
        }
        return status;
    }

    const list_arguments& arguments_;
    const clock::time_point began_{clock::now()};
    std::mutex guard_;
    found_locks found_;
    /// Set when there is something to show.
    const client* store_{};
};

}  // namespace

int list(const list_arguments& arguments) {
    collection all{arguments};
    time_limit limit{arguments.store.timeout, time_limit::request::looks,
                     [&all](const problem& reason) { all.end_early(reason); }};
    const auto store = open_store(arguments.store);
    all.collect(*store);
    limit.finish();
    return all.show();
}

}  // namespace holdfast::cli
