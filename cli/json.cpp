#include "json.hpp"

#include <unistd.h>

#include <boost/json.hpp>

#include "messages.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace json = boost::json;

namespace {

[[nodiscard]] std::string_view to_word(name_kind kind) noexcept {
    switch (kind) {
        case name_kind::lock:
            return "lock";
        case name_kind::semaphore:
            return "semaphore";
        case name_kind::latch:
            return "latch";
        case name_kind::counter:
            return "counter";
    }
    return "unknown";
}

[[nodiscard]] json::object to_json(const revocation_info& revocation) {
    return {{"owner", revocation.owner.text()},
            {"token", revocation.token.value},
            {"actor", to_json_text(revocation.actor)},
            {"reason", to_json_text(revocation.reason)},
            {"at_ms", epoch_milliseconds(revocation.at)}};
}

}  // namespace

std::int64_t epoch_milliseconds(std::chrono::system_clock::time_point when) noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

json::string to_json_text(std::string_view text) {
    json::string result;
    while (!text.empty()) {
        const auto length = valid_utf8_prefix(text);
        result.append(text.substr(0, length));
        text.remove_prefix(length);
        if (!text.empty()) {
            result.append("\xEF\xBF\xBD");
            text.remove_prefix(1);
        }
    }
    return result;
}

json::object to_json(const holder_info& holder) {
    json::object result{{"owner", holder.owner.text()},      {"mode", to_string(holder.mode)},
                        {"permits", holder.permits},         {"token", holder.token.value},
                        {"token_count", holder.token_count}, {"since_ms", nullptr},
                        {"remaining_ms", nullptr},           {"status", format_status(holder)}};
    if (holder.remaining != std::chrono::milliseconds::max()) {
        result["remaining_ms"] = holder.remaining.count();
    }
    if (holder.since != std::chrono::system_clock::time_point{}) {
        result["since_ms"] = epoch_milliseconds(holder.since);
    }
    if (holder.card) {
        result["host"] = to_json_text(holder.card->host);
        result["pid"] = holder.card->pid;
        result["program"] = to_json_text(holder.card->program);
        result["label"] = to_json_text(holder.card->label);
    }
    return result;
}

json::object to_json(const lock_info& lock) {
    json::array holders;
    for (const auto& holder : lock.holders) {
        holders.push_back(to_json(holder));
    }
    // Some stores keep nothing of a semaphore once its permits are back: then only the limit tells.
    const auto kind = lock.limit > 0 ? name_kind::semaphore : lock.kind;
    json::object result{{"name", to_json_text(lock.name)},
                        {"free", is_free(lock)},
                        {"kind", to_word(kind)},
                        {"holders", holders}};
    if (lock.count) {
        result["count"] = *lock.count;
    }
    if (lock.limit > 0) {
        result["limit"] = lock.limit;
    }
    if (lock.waiters) {
        result["waiters"] = *lock.waiters;
    }
    if (lock.last_revocation) {
        result["last_revocation"] = to_json(*lock.last_revocation);
    }
    return result;
}

json::object to_json(const client& store) {
    const auto& promises = store.promises();
    return {{"address", to_json_text(store.store())},
            {"scope", to_string(promises.reach)},
            {"scope_text", to_json_text(promises.reach_text)},
            {"fencing", to_string(promises.tokens)},
            {"notices_dead_holders", promises.notices_dead_holders}};
}

json::object to_json(const problem& reason) {
    return {{"status", to_status(reason.code)},
            {"error", to_word(reason.code)},
            {"message", to_json_text(reason.message)}};
}

std::string to_document(const json::object& value) {
    return escape_invisible(json::serialize(value));
}

void print_problem(const problem& reason, output_format format) {
    messages{verbosity::normal}.error(reason.message);
    if (format == output_format::json) {
        // An error of this write is ignored: the problem itself is more important.
        static_cast<void>(write_all(STDOUT_FILENO, to_document(to_json(reason)) + "\n"));
    }
}

void print_json(const json::object& value) {
    write_output(to_document(value) + "\n");
}

}  // namespace holdfast::cli
