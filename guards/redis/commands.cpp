#include <algorithm>
#include <array>
#include <charconv>
#include <commands.hpp>

#include <holdfast/error.hpp>
#include <holdfast/owner.hpp>

#include <hiredis/hiredis.h>
#include <hiredis/sds.h>

namespace holdfast::guard {

void redis_fence::free_reply::operator()(redisReply* reply) const noexcept {
    ::freeReplyObject(reply);
}

namespace detail {

namespace {

constexpr std::array<std::string_view, 13> passing{
    "ASK",      "BUSY",       "CLUSTERDOWN", "LOADING",  "MASTERDOWN", "MISCONF",   "MOVED",
    "NOQUORUM", "NOREPLICAS", "OOM",         "READONLY", "TRYAGAIN",   "UNKILLABLE"};

/// How the scripts begin their refusal of a key that is a lock.
constexpr std::string_view of_a_lock = "HOLDFAST_LOCK";

errc code_of(std::string_view message) {
    const auto word = message.substr(0, message.find(' '));
    if (std::find(passing.begin(), passing.end(), word) != passing.end()) {
        return errc::store_unavailable;
    }
    if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM") {
        return errc::unauthorised;
    }
    return word == "WRONGTYPE" || word == of_a_lock ? errc::wrong_kind : errc::store_error;
}

/// An error of the server or of a script, in words.
std::string words_of(std::string_view message) {
    if (message.starts_with(of_a_lock)) {
        return std::string{message.substr(of_a_lock.size() + 1)};
    }
    // The code's own words are about locks.
    return code_of(message) == errc::wrong_kind
               ? "a key of the guard's command holds a value of another type: " + std::string{message}
               : std::string{message};
}

[[noreturn]] void fail(errc code, std::string_view detail) {
    failure{code, std::string{detail}}.raise("guard on redis");
}

/// What hiredis has not handed over yet.
std::size_t unsent(const redisContext& connection) {
    return connection.obuf == nullptr ? 0 : ::sdslen(connection.obuf);
}

/// Bytes of replies that hiredis has received and nobody has read.
bool has_unread(const redisContext& connection) {
    const auto* const reader = connection.reader;
    return reader != nullptr && (reader->pos < reader->len || reader->ridx >= 0);
}

void check_usable(const redisContext& connection) {
    if (connection.err != 0) {
        fail(errc::store_unavailable,
             std::string{connection.errstr} + "; nothing was sent, connect again");
    }
    if ((connection.flags & REDIS_BLOCK) == 0) {
        fail(errc::invalid_argument, "the connection is non-blocking; use a blocking one");
    }
    // Their replies would be taken for ours.
    if (unsent(connection) > 0 || has_unread(connection)) {
        fail(errc::invalid_argument,
             "commands from redisAppendCommand wait on this connection; read their replies first");
    }
}

void append(redisContext* connection, const words& sent) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto word : sent) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
    }
    if (::redisAppendCommandArgv(connection, static_cast<int>(texts.size()), texts.data(),
                                 lengths.data()) != REDIS_OK) {
        fail(errc::store_unavailable, connection->errstr);
    }
}

reply_handle next_reply(redisContext* connection) {
    void* reply = nullptr;
    return ::redisGetReply(connection, &reply) == REDIS_OK
               ? reply_handle{static_cast<redisReply*>(reply)}
               : reply_handle{};
}

bool is_status(const redisReply& reply, std::string_view text) {
    return reply.type == REDIS_REPLY_STATUS && text_of(reply) == text;
}

/// The connection gives replies to other requests than the last: nobody may use it any more, neither
/// for the guards nor for what it was used for besides.
[[noreturn]] void fail_out_of_step(redisContext* connection) {
    constexpr std::string_view words = "a reply to another request came first; connect again";
    connection->err = REDIS_ERR_OTHER;
    connection->errstr[words.copy(connection->errstr, sizeof connection->errstr - 1)] = '\0';
    fail(errc::outcome_unknown,
         "replies to requests from before had not been read on this connection, so the answer is not "
         "known; connect again");
}

std::string_view first_word(const redisReply& reply) {
    return text_of(reply).substr(0, text_of(reply).find(' '));
}

/// Whether the server refused the mark, and with it all that we send: it is loading, it wants a
/// password, or it does not let this connection use EVAL. The same errors to two other requests would
/// not name EVAL.
bool refuses_everything(const redisReply& reply, const redisReply& marked) {
    if (reply.type != REDIS_REPLY_ERROR || marked.type != REDIS_REPLY_ERROR ||
        first_word(reply) != first_word(marked)) {
        return false;
    }
    constexpr std::array<std::string_view, 4> states{"BUSY", "LOADING", "MASTERDOWN", "NOAUTH"};
    const auto words = text_of(marked);
    return std::find(states.begin(), states.end(), first_word(marked)) != states.end() ||
           words.find("'eval'") != std::string_view::npos ||
           words.find("'EVAL'") != std::string_view::npos;
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

/// A reply that somebody else's request left on its way here would be taken for ours: check_usable sees
/// only what hiredis has received. So each request is followed by one that returns a mark, and the
/// second reply must be that mark.
reply_handle command(redisContext* connection, const words& sent) {
    check_usable(*connection);
    const auto mark = owner_id::random_client().client_text();
    const auto is_mark = [&mark](const redisReply& one) {
        return one.type == REDIS_REPLY_STRING && text_of(one) == mark;
    };
    append(connection, sent);
    const auto request_size = unsent(*connection);
    append(connection, {"EVAL", "return ARGV[1]", "0", mark});
    const auto mark_size = unsent(*connection) - request_size;
    auto reply = next_reply(connection);
    if (!reply) {
        // Redis executes no request of which a part is missing.
        fail(unsent(*connection) <= mark_size ? errc::outcome_unknown : errc::store_unavailable,
             connection->errstr);
    }
    if (is_mark(*reply)) {
        fail_out_of_step(connection);  // CLIENT REPLY SKIP: ours will never come
    }
    const auto marked = next_reply(connection);
    if (!marked) {
        fail(errc::outcome_unknown, connection->errstr);
    }
    if (is_status(*reply, "QUEUED") && is_status(*marked, "QUEUED")) {
        // It would be carried out at EXEC, whatever we say here.
        const reply_handle discarded{static_cast<redisReply*>(::redisCommand(connection, "DISCARD"))};
        if (!discarded || !is_status(*discarded, "OK")) {
            fail_out_of_step(connection);
        }
        fail(errc::invalid_argument,
             "the connection is inside MULTI, where nothing is answered before EXEC; the transaction "
             "was discarded");
    }
    if (!is_mark(*marked) && !refuses_everything(*reply, *marked)) {
        fail_out_of_step(connection);
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        fail(code_of(text_of(*reply)), words_of(text_of(*reply)));
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
        fail(errc::invalid_name,
             "\"" + std::string{key} +
                 "\": a guard's key must not be empty, and with a } it needs a whole {tag}");
    }
    return text.append("{").append(key).append("}");
}

std::string_view text_of(const redisReply& reply) noexcept {
    return {reply.str, static_cast<std::size_t>(reply.len)};
}

std::int64_t number_of(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_NIL) {
        return 0;
    }
    const auto text = text_of(reply);
    std::int64_t value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    // Also not "07" or "+7": the scripts compare texts.
    if (std::to_string(value) != text) {
        fail(errc::store_error, "\"" + std::string{text} + "\" is not a number");
    }
    return value;
}

}  // namespace detail

}  // namespace holdfast::guard
