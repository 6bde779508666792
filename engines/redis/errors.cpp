#include <redis/errors.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

namespace holdfast::engines::redis {

namespace {

struct meaning {
    std::string_view code;
    errc result;
    /// What to say in place of the server's words, or before them.
    std::string_view words;
};

/// Of our scripts: they say all themselves.
constexpr std::string_view ours{};

constexpr std::array meanings{
    meaning{"READONLY", errc::store_unavailable,
            "the server is a replica now; its master must be used"},
    meaning{"LOADING", errc::store_unavailable, "the server is still loading its data"},
    meaning{"MASTERDOWN", errc::store_unavailable, "the server has lost its master"},
    meaning{"CLUSTERDOWN", errc::store_unavailable, "the cluster is down"},
    meaning{"TRYAGAIN", errc::store_unavailable,
            "the slot is being moved to another server; locks are granted again when it is there"},
    meaning{"MOVED", errc::store_unavailable,
            "the slot has moved; is this a cluster? use redis+cluster://"},
    meaning{"ASK", errc::store_unavailable,
            "the slot is being moved; is this a cluster? use redis+cluster://"},
    meaning{"CROSSSLOT", errc::bad_configuration,
            "this is a server of a cluster; use redis+cluster://"},
    meaning{"BUSY", errc::store_unavailable,
            "the server is busy with somebody's script; an operator can end it with SCRIPT KILL"},
    meaning{"OOM", errc::store_unavailable,
            "the server has reached its maxmemory; release and renewal still work, new locks do not"},
    meaning{"MISCONF", errc::store_unavailable, "the server refuses writes because it cannot save"},
    meaning{"NOREPLICAS", errc::store_unavailable,
            "the server refuses writes because it has too few replicas"},
    meaning{"NOAUTH", errc::unauthorised, "the server wants a password"},
    meaning{"WRONGPASS", errc::unauthorised, "the server refused user name or password"},
    meaning{"NOPERM", errc::unauthorised, "this user lacks a permission"},
    meaning{"WRONGTYPE", errc::wrong_kind,
            "one of the keys of this name holds what locks do not keep there; remove it, or take "
            "another name"},
    meaning{"WRONGCOUNT", errc::invalid_argument, ours},
    meaning{"WRONGKIND", errc::wrong_kind, ours},
};

[[nodiscard]] std::string in_small_letters(std::string_view text) {
    std::string small{text};
    std::transform(small.begin(), small.end(), small.begin(),
                   [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
    return small;
}

/// The command that a user may not run: "… no permissions to run the 'hset' command", "… in `HSET`" of
/// a script that passes a refusal on, or the line of a script that `name_forbidden_command` has added,
/// which may have several. Empty when it is not said.
[[nodiscard]] std::vector<std::string> forbidden_commands(std::string_view text) {
    constexpr std::string_view said{" run the '"};
    if (const auto found = text.find(said); found != std::string_view::npos) {
        text.remove_prefix(found + said.size());
        return {in_small_letters(text.substr(0, text.find('\'')))};
    }
    constexpr std::string_view place{" in `"};
    if (const auto found = text.find(place); found != std::string_view::npos) {
        const auto quoted = text.substr(found + place.size());
        const auto word = quoted.substr(0, quoted.find('`'));
        if (!word.empty() && std::all_of(word.begin(), word.end(),
                                         [](char each) { return each >= 'A' && each <= 'Z'; })) {
            return {in_small_letters(word)};
        }
    }
    constexpr std::string_view call{"call('"};
    std::vector<std::string> all;
    for (auto found = text.find(call); found != std::string_view::npos; found = text.find(call)) {
        text.remove_prefix(found + call.size());
        all.push_back(in_small_letters(text.substr(0, text.find('\''))));
    }
    return all;
}

[[nodiscard]] std::string joined_commands(const std::vector<std::string>& commands,
                                          std::string_view by) {
    std::string text;
    for (const auto& each : commands) {
        text += (text.empty() ? "" : std::string{by}) + "+" + each;
    }
    return text;
}

/// What to do about it, where the server's words tell.
[[nodiscard]] std::string advice_for(const value& error) {
    if (error.error_code() != "NOPERM") {
        return {};
    }
    const auto missing =
        refuses_keys(error) ? "" : joined_commands(forbidden_commands(error.text), " or ");
    return (missing.empty() ? "" : ", " + missing) + "; docs/redis.md has the ACL line";
}

/// What to do about a name that is in use for something else. In Redisson's layout a semaphore and a
/// latch are strings, which stay when nobody uses them any more, and a lock is a hash. Anything else is
/// not a lock of any kind.
[[nodiscard]] std::string remark_on(const value& error) {
    if (error.error_code() != "WRONGKIND") {
        return {};
    }
    const auto says = [&](std::string_view words) {
        return error.text.find(words) != std::string::npos;
    };
    if (says("; remove it: DEL ")) {
        return {};
    }
    const bool string = error.text.ends_with("holds a string");
    if (string || error.text.ends_with("holds a hash")) {
        return std::string{string ? ", as semaphores (--permits) and latches do, also while nobody "
                                    "uses them"
                                  : ", as locks do"} +
               "; if holdfast inspect shows one, use it in the same way; else take another name, or "
               "remove it";
    }
    if (says("holds a ") || says("holds no ") || says("its hash has ")) {
        return "; take another name, or remove it";
    }
    return "; use it in the same way, which holdfast inspect shows, or take another name";
}

/// Without the place in the script, which servers since 7.0 append to what it raises.
[[nodiscard]] std::string words_behind(std::string_view code, std::string_view text) {
    text.remove_prefix(std::min(text.find(code) + code.size() + 1, text.size()));
    const auto place = text.rfind(" script: ");
    const bool raised = place != std::string_view::npos &&
                        text.find(", on @user_script:", place) != std::string_view::npos;
    return std::string{text.substr(0, raised ? place : text.size())};
}

}  // namespace

void name_forbidden_command(value& answer, std::string_view script, std::string_view publish) {
    constexpr std::string_view place = "user_script:";
    const auto found = answer.text.rfind(place);
    if (answer.error_code() != "NOPERM" || found == std::string::npos) {
        return;
    }
    const auto digits = answer.text.find_first_of("0123456789", found + place.size());
    std::size_t number{};
    if (digits == std::string::npos ||
        std::from_chars(answer.text.data() + digits, answer.text.data() + answer.text.size(), number)
                .ec != std::errc{}) {
        return;
    }
    for (; number > 1 && !script.empty(); --number) {
        script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
    }
    std::string line{script.substr(0, script.find('\n'))};
    line.erase(0, line.find_first_not_of(' '));
    constexpr std::string_view variable{"call(publish,"};
    if (const auto at = line.find(variable); at != std::string::npos) {
        line.replace(at, variable.size(), "call('" + std::string{publish} + "',");
    }
    answer.text += " in `" + line + "`";
}

std::string line_that_allows(std::string_view words, std::string_view user) {
    const auto missing = words.find("NOPERM") == std::string_view::npos
                             ? ""
                             : joined_commands(forbidden_commands(words), " ");
    return missing.empty()
               ? ""
               : "; run: ACL SETUSER " + std::string{user.empty() ? "default" : user} + " " + missing;
}

bool refuses_keys(const value& answer) noexcept {
    // "can't access at least one of the keys", "can't publish to the channel"; of a command it is said
    // that it may not be run. The line of the script, if it follows, is ours and names keys, too.
    const auto words = std::string_view{answer.text}.substr(0, answer.text.find(" in `"));
    const bool of_keys = words.find("access") != std::string_view::npos ||
                         words.find("channel") != std::string_view::npos;
    return of_keys && answer.error_code() == "NOPERM";
}

void name_keys(value& answer, const word_list& keys) {
    const bool forbidden = refuses_keys(answer);
    if (!forbidden && answer.error_code() != "WRONGTYPE") {
        return;
    }
    answer.text += forbidden ? "; the user needs access to these keys and channels:"
                             : "; TYPE tells which of these it is:";
    for (const auto& each : keys.words()) {
        answer.text += " " + each;
    }
}

bool says_full(const value& answer) noexcept {
    // "max number of clients reached", "max number of clients + cluster connections reached"
    return answer.is_error() && answer.text.starts_with("ERR max number of clients");
}

failure meaning_of(const value& error) {
    if (says_full(error)) {
        return {errc::store_unavailable,
                "the server has as many clients as its maxclients allows (" + error.text + ")"};
    }
    const auto code = error.error_code();
    for (const auto& one : meanings) {
        if (one.code != code) {
            continue;
        }
        if (one.words == ours) {
            return {one.result, words_behind(code, error.text) + remark_on(error)};
        }
        return {one.result, std::string{one.words} + advice_for(error) + " (" + error.text + ")"};
    }
    return {errc::store_error, "the server answered: " + error.text};
}

failure senseless_answer(std::string_view to) {
    return {errc::store_error, "the server's answer to " + std::string{to} + " makes no sense"};
}

}  // namespace holdfast::engines::redis
