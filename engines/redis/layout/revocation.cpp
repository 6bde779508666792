#include <redis/layout/revocation.hpp>

#include <redis/number.hpp>

namespace holdfast::engines::redis {

namespace {

using std::chrono::milliseconds;

/// What comes before the next blank; the rest stays in `text`.
[[nodiscard]] std::string_view take_word(std::string_view& text) {
    const auto blank = text.find(' ');
    const auto word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    return word;
}

}  // namespace

std::string write_revocation(const revocation_info& what) {
    const auto at = std::chrono::duration_cast<milliseconds>(what.at.time_since_epoch());
    return what.owner.text() + ' ' + std::to_string(what.token.value) + ' ' +
           std::to_string(at.count()) + ' ' + std::to_string(what.actor.size()) + ' ' + what.actor +
           ' ' + what.reason;
}

std::optional<revocation_info> read_revocation(std::string_view text) {
    revocation_info result;
    const auto owner = owner_id::parse(take_word(text));
    milliseconds::rep at{};
    std::size_t length{};
    if (!owner || !read_number(take_word(text), result.token.value) ||
        !read_number(take_word(text), at) || !read_number(take_word(text), length) ||
        length >= text.size()) {
        return std::nullopt;
    }
    result.owner = *owner;
    result.at = std::chrono::system_clock::time_point{milliseconds{at}};
    result.actor = text.substr(0, length);
    result.reason = text.substr(length + 1);
    return result;
}

}  // namespace holdfast::engines::redis
