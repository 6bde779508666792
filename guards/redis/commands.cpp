#include <algorithm>
#include <array>
#include <commands.hpp>

#include <holdfast/error.hpp>

#include <hiredis/hiredis.h>

namespace holdfast::guard {

void redis_fence::free_reply::operator()(redisReply* reply) const noexcept {
    ::freeReplyObject(reply);
}

namespace detail {

namespace {

constexpr std::array<std::string_view, 13> passing{
    "ASK",      "BUSY",       "CLUSTERDOWN", "LOADING",  "MASTERDOWN", "MISCONF",   "MOVED",
    "NOQUORUM", "NOREPLICAS", "OOM",         "READONLY", "TRYAGAIN",   "UNKILLABLE"};

errc code_of(std::string_view message) {
    const auto word = message.substr(0, message.find(' '));
    if (std::find(passing.begin(), passing.end(), word) != passing.end()) {
        return errc::store_unavailable;
    }
    if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM") {
        return errc::unauthorised;
    }
    return word == "WRONGTYPE" ? errc::wrong_kind : errc::store_error;
}

/// What a server hashes of a key with a tag: never empty.
bool has_tag(std::string_view key) noexcept {
    const auto open = key.find('{');
    if (open == std::string_view::npos) {
        return false;
    }
    const auto close = key.find('}', open + 1);
    return close != std::string_view::npos && close != open + 1;
}

}  // namespace

reply_handle command(redisContext* connection, const words& sent) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto word : sent) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
    }
    reply_handle reply{static_cast<redisReply*>(
        ::redisCommandArgv(connection, static_cast<int>(texts.size()), texts.data(), lengths.data()))};
    if (!reply) {
        failure{errc::outcome_unknown, connection->errstr}.raise("guard on redis");
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        failure{code_of(text_of(*reply)), std::string{text_of(*reply)}}.raise("guard on redis");
    }
    return reply;
}

reply_handle eval(redisContext* connection, std::string_view script, const words& keys,
                  const words& arguments) {
    const auto count = std::to_string(keys.size());
    words sent{"EVAL", script, count};
    sent.insert(sent.end(), keys.begin(), keys.end());
    sent.insert(sent.end(), arguments.begin(), arguments.end());
    return command(connection, sent);
}

std::string companion(std::string_view prefix, std::string_view key) {
    std::string text{prefix};
    if (has_tag(key)) {
        // Not what `{` and `}` around another key would give.
        return text.append(":").append(key);
    }
    // Inside braces it would end early, and lie in another slot.
    if (key.empty() || key.find('}') != std::string_view::npos) {
        failure{errc::invalid_name, "\"" + std::string{key} + "\": empty, or with a brace but no {tag}"}
            .raise("guard on redis");
    }
    return text.append("{").append(key).append("}");
}

std::string_view text_of(const redisReply& reply) noexcept {
    return {reply.str, static_cast<std::size_t>(reply.len)};
}

}  // namespace detail

}  // namespace holdfast::guard
