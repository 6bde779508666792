#include <redis/script_call.hpp>

namespace holdfast::engines::redis {

connection::expected script_call::append(std::string& out, const server_facts& server, form as) const {
    // Whatever else goes along before it does as well.
    const bool asks_ahead = tells_first && out.empty();
    if (asks_ahead) {
        append_word_count(out, 1);
        append_word(out, "PING");
    }
    append_word_count(out, 3 + keys.size() + arguments.size() + (floor_at ? 1 : 0));
    append_word(out, as == form::text ? "EVAL" : "EVALSHA");
    append_word(out, as == form::text ? source->text : std::string_view{source->sha});
    append_word(out, keys.size());
    out += keys.text();
    const std::string_view words = arguments.text();
    out += words.substr(0, floor_at.value_or(0));
    if (floor_at) {
        append_word(out, server.token_floor());
    }
    out += words.substr(floor_at.value_or(0));
    if (then.size() > 0) {
        append_word_count(out, then.size());
        out += then.text();
    }
    return {then.size() > 0 ? 2U : 1U, asks_ahead ? 1U : 0U};
}

}  // namespace holdfast::engines::redis
