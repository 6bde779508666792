#include <redis/errors.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace holdfast::engines::redis {

namespace {

struct meaning {
    std::string_view code;
    errc result;
    /// What to say in place of the server's words, or before them.
    std::string_view words;
};

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
    meaning{"BUSY", errc::store_unavailable,
            "the server is busy with somebody's script; an operator can end it with SCRIPT KILL"},
    meaning{"OOM", errc::store_unavailable,
            "the server has reached its maxmemory; release and renewal still work, new locks do not"},
    meaning{"MISCONF", errc::store_unavailable, "the server refuses writes because it cannot save"},
    meaning{"NOREPLICAS", errc::store_unavailable,
            "the server refuses writes because it has too few replicas"},
    meaning{"NOAUTH", errc::unauthorised, "the server wants a password"},
    meaning{"WRONGPASS", errc::unauthorised, "the server refused user name or password"},
    meaning{"NOPERM", errc::unauthorised, "this user may not do this; docs/redis.md has the ACL line"},
    meaning{"WRONGTYPE", errc::wrong_kind,
            "the name is in use for something that is not this kind of lock"},
    meaning{"WRONGCOUNT", errc::invalid_argument,
            "the owner asked for another number of permits before"},
    meaning{"WRONGKIND", errc::wrong_kind, "the name is in use for another kind of lock"},
};

}  // namespace

void name_forbidden_command(value& answer, std::string_view script) {
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
    auto line = script.substr(0, script.find('\n'));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    answer.text += " in `" + std::string{line} + "`";
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
        if (one.code == code) {
            return {one.result, std::string{one.words} + " (" + error.text + ")"};
        }
    }
    return {errc::store_error, "the server answered: " + error.text};
}

failure senseless_answer(std::string_view to) {
    return {errc::store_error, "the server's answer to " + std::string{to} + " makes no sense"};
}

}  // namespace holdfast::engines::redis
