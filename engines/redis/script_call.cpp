#include <redis/script_call.hpp>

#include <array>
#include <charconv>

namespace holdfast::engines::redis {

namespace {

void append_number(std::string& out, std::size_t number) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    out.append(digits.data(), end.ptr);
}

void append_word(std::string& out, std::string_view word) {
    out += '$';
    append_number(out, word.size());
    out += "\r\n";
    out += word;
    out += "\r\n";
}

}  // namespace

std::size_t script_call::append(std::string& out, const server_facts& server, form how) const {
    out += '*';
    append_number(out, 3 + keys.size() + arguments.size());
    out += "\r\n";
    if (how == form::text) {
        append_word(out, "EVAL");
        append_word(out, what->text);
    } else {
        append_word(out, "EVALSHA");
        append_word(out, what->sha);
    }
    append_word(out, std::to_string(keys.size()));
    for (const auto& key : keys) {
        append_word(out, key);
    }
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        if (floor == index) {
            append_word(out, std::to_string(server.time));
        } else {
            append_word(out, arguments[index]);
        }
    }
    if (then.empty()) {
        return 1;
    }
    append_command(out, std::vector<std::string_view>{then.begin(), then.end()});
    return 2;
}

}  // namespace holdfast::engines::redis
