#include <redis/topology/redirect.hpp>

#include <algorithm>
#include <array>
#include <redis/errors.hpp>
#include <redis/number.hpp>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// Takes the next word off the front.
[[nodiscard]] std::string_view next_word(std::string_view& text) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

/// Takes "*12\r\n" off the front, with the given first character.
[[nodiscard]] bool take_count(std::string_view& text, char kind, std::size_t& into) {
    const auto end = text.find("\r\n");
    if (end == std::string_view::npos || text.front() != kind ||
        !read_number(text.substr(1, end - 1), into)) {
        return false;
    }
    text.remove_prefix(end + 2);
    return true;
}

/// Takes one command off the front; empty if there is none.
[[nodiscard]] std::string_view take_command(std::string_view& text) {
    const auto whole = text;
    std::size_t words = 0;
    if (!take_count(text, '*', words)) {
        return {};
    }
    for (; words > 0; --words) {
        std::size_t length = 0;
        if (!take_count(text, '$', length) || text.size() < 2 || length > text.size() - 2) {
            return {};
        }
        text.remove_prefix(length + 2);
    }
    return whole.substr(0, whole.size() - text.size());
}

}  // namespace

std::optional<redirect> read_redirect(const value& answer, const node_address& asked) {
    if (!answer.is_error()) {
        return std::nullopt;
    }
    std::string_view text = answer.text;
    const auto code = next_word(text);
    redirect result;
    if (code == "MOVED") {
        result.type = redirect::kind::moved;
    } else if (code == "ASK") {
        result.type = redirect::kind::ask;
    } else {
        return std::nullopt;
    }
    const auto slot = next_word(text);
    const auto place = next_word(text);
    // An IPv6 address has colons of its own, and no brackets.
    const auto colon = place.rfind(':');
    if (colon == std::string_view::npos || !read_number(slot, result.slot) ||
        !read_number(place.substr(colon + 1), result.server.port)) {
        return std::nullopt;
    }
    const auto host = place.substr(0, colon);
    if (host == "?") {
        return std::nullopt;
    }
    result.server.host = host.empty() ? asked.host : std::string{host};
    return result;
}

failure not_now(const value& answer) {
    const auto code = answer.error_code();
    constexpr std::array<std::string_view, 3> others{"CLUSTERDOWN", "LOADING", "MASTERDOWN"};
    if (code == "READONLY") {
        return {errc::store_unavailable,
                "the server is a replica now; its master must be used (" + answer.text + ")"};
    }
    if (!code.empty() && std::find(others.begin(), others.end(), code) != others.end()) {
        return meaning_of(answer);
    }
    return {};
}

std::optional<std::size_t> append_with_asking(std::string& out, std::string_view commands,
                                              std::size_t left_out) {
    constexpr std::array<std::string_view, 1> asking{"ASKING"};
    std::size_t answers = 0;
    while (!commands.empty()) {
        const auto command = take_command(commands);
        if (command.empty()) {
            return std::nullopt;
        }
        if (left_out > 0) {
            --left_out;
            continue;
        }
        append_command(out, asking);
        out += command;
        answers += 2;
    }
    return answers;
}

void drop_asking(std::vector<value>& replies) {
    std::size_t kept = 0;
    for (std::size_t index = 1; index < replies.size(); index += 2) {
        if (replies[index - 1].is_error() && replies[index].error_code() == "MOVED") {
            replies[index] = std::move(replies[index - 1]);
        }
        if (kept != index) {
            replies[kept] = std::move(replies[index]);
        }
        ++kept;
    }
    replies.resize(kept);
}

}  // namespace holdfast::engines::redis
