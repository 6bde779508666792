#include <algorithm>
#include <array>
#include <charconv>
#include <redis/errors.hpp>
#include <redis/net/foreign.hpp>
#include <redis/net/handshake.hpp>

#include <openssl/crypto.h>
#include <poll.h>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;

namespace {

/// Holds a password: wiped when done with.
struct secret_text {
    std::string text;
    ~secret_text() { ::OPENSSL_cleanse(text.data(), text.size()); }
};

/// The conversation, and in which place which answer comes.
struct dialogue {
    secret_text out;
    std::size_t count{};
    std::size_t login{none};
    std::size_t select{none};
    std::size_t time{};
    std::size_t name{};
    std::size_t greeting{};

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::size_t add(std::initializer_list<std::string_view> words) {
        append_command(out.text, std::span{words.begin(), words.size()});
        return count++;
    }
};

void write_dialogue(dialogue& into, const connection_settings& settings, const peer_name& predecessor,
                    const commands& greeting) {
    const credentials& login = settings.login;
    if (!login.user.empty()) {
        into.login = into.add({"AUTH", login.user, login.password});
    } else if (!login.password.empty()) {
        into.login = into.add({"AUTH", login.password});
    }
    if (!predecessor.id.empty()) {
        into.add({"CLIENT", "KILL", "ID", predecessor.id, "ADDR", predecessor.address});
    }
    if (settings.database != 0) {
        into.select = into.add({"SELECT", std::to_string(settings.database)});
    }
    into.time = into.add({"TIME"});
    into.add({"CLIENT", "SETNAME", "holdfast"});
    into.name = into.add({"CLIENT", "INFO"});
    into.greeting = into.count;
    for (const auto& command : greeting) {
        const std::vector<std::string_view> words{command.begin(), command.end()};
        append_command(into.out.text, words);
        ++into.count;
    }
}

/// A server that hangs up before it has answered usually expects something else of us.
std::string guess(const connection_settings& settings) {
    if (!settings.tls) {
        return "; is the server up, and is this its port?";
    }
    if (settings.tls->certificate_file.empty()) {
        return "; is the server up? If it demands a client certificate, give cert=FILE&key=FILE";
    }
    return {};
}

failure write_all(net::stream& to, std::string_view bytes, clock::time_point deadline,
                  const net::waiting& wait, const std::string& name) {
    while (!bytes.empty()) {
        const net::io_result result = to.write_now(bytes);
        if (result.lost()) {
            return result.error;
        }
        bytes.remove_prefix(result.bytes);
        if (result.outcome == net::io_result::status::again &&
            !wait(to.socket(), result.events, deadline)) {
            return {errc::store_unavailable, name + ": no answer in time; is the server up?"};
        }
    }
    return {};
}

/// Reads up to `count` answers; fewer when there is an error.
failure read_all(net::stream& from, reply_reader& reader, std::size_t count, std::vector<value>& into,
                 clock::time_point deadline, const net::waiting& wait, const std::string& name) {
    std::array<char, 4096> buffer{};
    bool first = true;
    while (into.size() < count) {
        const net::io_result result = from.read_now(buffer);
        if (result.lost()) {
            return result.error;
        }
        if (result.outcome == net::io_result::status::again) {
            if (!wait(from.socket(), result.events, deadline)) {
                return {errc::store_unavailable, name + ": no answer in time; is the server up?"};
            }
            continue;
        }
        const std::string_view words{buffer.data(), result.bytes};
        if (const failure reason = std::exchange(first, false) ? foreign_protocol(words) : failure{}) {
            return {reason.code, name + ": " + reason.detail};
        }
        reader.feed(words);
        value answer;
        auto progress = reader.next(answer);
        for (; progress == reply_reader::progress::complete; progress = reader.next(answer)) {
            into.push_back(std::exchange(answer, {}));
        }
        if (progress == reply_reader::progress::broken) {
            return {errc::bad_configuration, name + ": this is not a Redis server (" +
                                                 reader.problem() + "); is the port right?"};
        }
    }
    return {};
}

/// The server's own words, as far as they are of use.
std::string quote(const value& answer) {
    constexpr std::size_t longest = 160;
    return answer.text.size() <= longest ? answer.text : answer.text.substr(0, longest) + "…";
}

/// Of the answer to AUTH. A server or proxy may repeat any part of the password there, as Redis does of
/// the arguments of a command that it does not know: nothing is quoted but what servers are known to
/// say to everybody.
std::string quote_login(const value& answer) {
    constexpr std::array<std::string_view, 4> harmless{
        "WRONGPASS invalid username-password pair or user is disabled.",
        "ERR AUTH <password> called without any password configured for the default user. Are you sure "
        "your configuration is correct?",
        "ERR Client sent AUTH, but no password is set", "ERR invalid password"};
    if (std::find(harmless.begin(), harmless.end(), answer.text) != harmless.end()) {
        return answer.text;
    }
    if (answer.text.starts_with("DENIED Redis is running in protected mode")) {
        return quote(answer);
    }
    if (answer.text.starts_with("ERR unknown command")) {
        return "it does not know the command AUTH";
    }
    return "the server's words are withheld: they may repeat the password";
}

/// Why the answer at this place is in the way.
failure refusal(const dialogue& sent, const std::vector<value>& answers, std::size_t place) {
    const auto& answer = answers[place];
    const std::string_view code = answer.error_code();
    const bool to_login = place == sent.login;
    const std::string words = to_login ? quote_login(answer) : quote(answer);
    if (code == "NOAUTH") {
        return {errc::unauthorised, "the server demands a password (" + words +
                                        "); give it in HOLDFAST_REDIS_PASSWORD or password_file=FILE"};
    }
    if (code == "WRONGPASS") {
        return {errc::unauthorised, "the server refused the user or the password (" + words + ")"};
    }
    if (code == "NOPERM" || code == "DENIED") {
        return {errc::unauthorised, "the server does not allow this (" + words + ")"};
    }
    if (code == "LOADING") {
        return {errc::store_unavailable, "the server is still loading its data (" + words + ")"};
    }
    if (code == "BUSY") {
        return {errc::store_unavailable,
                "the server is busy with somebody's script; an operator can end it with SCRIPT KILL (" +
                    words + ")"};
    }
    if (to_login && code == "ERR" && answers.size() > 1) {
        return {errc::unauthorised, "the server did not take the user or the password (" + words + ")"};
    }
    return {errc::store_unavailable, "the server refused the connection (" + words + ")"};
}

/// ROLE answers ["sentinel", …].
bool says_sentinel(const value& role) {
    return role.type == value::kind::array && !role.items.empty() && role.items[0].text == "sentinel";
}

/// Every Redis server knows TIME. A sentinel, or what merely speaks the same protocol, does not.
failure unfit(const dialogue& sent, const std::vector<value>& answers, const node_address& server,
              const connection_settings& settings) {
    const std::string instead =
        std::string{settings.tls ? "rediss" : "redis"} + "+sentinel://" + server.text() + "/SERVICE";
    for (std::size_t place = sent.greeting; place < answers.size(); ++place) {
        if (says_sentinel(answers[place])) {
            return {errc::bad_configuration, "this is a sentinel, not a server; use " + instead};
        }
    }
    if (sent.time >= answers.size()) {
        return {};
    }
    const value& time = answers[sent.time];
    if (time.text.starts_with("ERR unknown command") || time.text.starts_with("ERR unsupported")) {
        return {errc::bad_configuration,
                "the server does not know the command TIME; if it is a "
                "sentinel, use " +
                    instead};
    }
    if (!time.is_error() && (time.type != value::kind::array || time.items.size() != 2)) {
        return {errc::bad_configuration,
                "this is not a Redis server: its answer to TIME makes no sense; is the port right?"};
    }
    return {};
}

std::int64_t microseconds_of(const value& time) {
    const auto number = [](const std::string& text) {
        std::int64_t result{};
        std::from_chars(text.data(), text.data() + text.size(), result);
        return result;
    };
    if (time.type != value::kind::array || time.items.size() != 2) {
        return 0;
    }
    return number(time.items[0].text) * 1'000'000 + number(time.items[1].text);
}

/// CLIENT INFO answers "id=7 addr=10.0.0.9:51234 laddr=…". A Unix socket's address is a path.
peer_name name_in(const value& info) {
    const auto field = [words = " " + info.text](const std::string& name) {
        const auto found = words.find(" " + name + "=");
        const auto begin = found + name.size() + 2;
        return found == std::string::npos ? std::string{}
                                          : words.substr(begin, words.find(' ', begin) - begin);
    };
    peer_name named;
    if (info.type == value::kind::text) {
        named = {field("id"), field("addr")};
    }
    const bool usable = !named.id.empty() && !named.address.empty() && named.address[0] != '/';
    return usable ? named : peer_name{};
}

/// A server that does not want us says why, unasked, and hangs up. That is no answer to AUTH or SELECT:
/// a server that refuses those goes on to answer the rest.
failure turned_away(const dialogue& sent, const std::vector<value>& answers) {
    if (answers.empty()) {
        return {};
    }
    if (says_full(answers.front())) {
        return meaning_of(answers.front());
    }
    const bool alone = answers.size() == 1 && sent.count > 1;
    return alone && answers.front().error_code() == "ERR" ? refusal(sent, answers, 0) : failure{};
}

/// The first answer that is in the way, if any.
failure judge(const dialogue& sent, const std::vector<value>& answers, const node_address& server,
              const connection_settings& settings) {
    if (failure reason = turned_away(sent, answers)) {
        return reason;
    }
    if (failure reason = unfit(sent, answers, server, settings)) {
        return reason;
    }
    if (sent.login < answers.size() && answers[sent.login].is_error()) {
        return refusal(sent, answers, sent.login);
    }
    if (sent.select < answers.size() && answers[sent.select].error_code() == "ERR") {
        return {errc::bad_configuration, "database " + std::to_string(settings.database) +
                                             " cannot be used: " + quote(answers[sent.select])};
    }
    for (const std::size_t place : {sent.select, sent.time}) {
        if (place < answers.size() && answers[place].is_error()) {
            return refusal(sent, answers, place);
        }
    }
    for (std::size_t place = sent.greeting; place < answers.size(); ++place) {
        if (answers[place].error_code() == "LOADING") {
            return refusal(sent, answers, place);
        }
    }
    if (!answers.empty() && answers.size() < sent.count && answers.front().is_error()) {
        return refusal(sent, answers, 0);
    }
    return {};
}

}  // namespace

introduction introduce(net::stream& to, reply_reader& reader, const node_address& server,
                       const connection_settings& settings, const peer_name& predecessor,
                       const commands& greeting, clock::time_point deadline, const net::waiting& wait) {
    const std::string name = server.text();
    connection_settings current = settings;
    current.login = up_to_date(settings.login);
    dialogue sent;
    write_dialogue(sent, current, predecessor, greeting);
    introduction result;
    std::vector<value> answers;
    // A server that has answered before needs no guess at what it is.
    const bool guessing = !current.tls && predecessor.id.empty();
    const auto for_guess = std::min<clock::duration>(200ms, (deadline - clock::now()) / 4);
    const auto until = guessing ? deadline - for_guess : deadline;
    failure lost = write_all(to, sent.out.text, until, wait, name);
    // Even when writing failed: what the server said before it hung up may tell why.
    if (failure unread = read_all(to, reader, sent.count, answers, until, wait, name)) {
        lost = std::move(unread);
    }
    if (failure refused = judge(sent, answers, server, current)) {
        result.error = {refused.code, name + ": " + refused.detail};
        return result;
    }
    if (lost) {
        const bool no_word = lost.code == errc::store_unavailable && answers.empty();
        if (no_word && guessing && net::stream::answers_tls(server, deadline, wait)) {
            result.error = {expects_tls().code, name + ": " + expects_tls().detail};
            return result;
        }
        if (no_word && clock::now() < until) {
            lost.detail += guess(current);
        }
        result.error = std::move(lost);
        return result;
    }
    result.time = microseconds_of(answers[sent.time]);
    result.name = name_in(answers[sent.name]);
    result.replies.assign(std::make_move_iterator(answers.begin() + static_cast<long>(sent.greeting)),
                          std::make_move_iterator(answers.end()));
    return result;
}

}  // namespace holdfast::engines::redis
