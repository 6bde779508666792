#include <array>
#include <charconv>
#include <redis/errors.hpp>
#include <redis/net/handshake.hpp>

#include <openssl/crypto.h>
#include <poll.h>

namespace holdfast::engines::redis {

namespace {

/// Holds a password: wiped when done with.
struct secret_text {
    std::string text;
    ~secret_text() { ::OPENSSL_cleanse(text.data(), text.size()); }
};

/// The conversation, and in which place which answer comes.
struct script {
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

void write_script(script& into, const connection_settings& how, const peer_name& predecessor,
                  const commands& greeting) {
    const credentials& login = how.login;
    if (!login.user.empty()) {
        into.login = into.add({"AUTH", login.user, login.password});
    } else if (!login.password.empty()) {
        into.login = into.add({"AUTH", login.password});
    }
    if (!predecessor.id.empty()) {
        into.add({"CLIENT", "KILL", "ID", predecessor.id, "ADDR", predecessor.address});
    }
    if (how.database != 0) {
        into.select = into.add({"SELECT", std::to_string(how.database)});
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
std::string guess(const connection_settings& how) {
    if (!how.tls) {
        return "; is the server up? If it expects TLS, write rediss://";
    }
    if (how.tls->certificate_file.empty()) {
        return "; is the server up? If it demands a client certificate, give cert=FILE&key=FILE";
    }
    return {};
}

failure write_all(stream& to, std::string_view bytes, clock::time_point deadline, const waiting& wait,
                  const std::string& name) {
    while (!bytes.empty()) {
        const io_result result = to.write_now(bytes);
        if (result.lost()) {
            return result.why;
        }
        bytes.remove_prefix(result.bytes);
        if (result.what == io_result::outcome::again && !wait(to.socket(), result.wants, deadline)) {
            return {errc::store_unavailable, name + ": no answer in time; is the server up?"};
        }
    }
    return {};
}

/// Reads up to `count` answers; fewer when there is an error.
failure read_all(stream& from, reply_reader& reader, std::size_t count, std::vector<value>& into,
                 clock::time_point deadline, const waiting& wait, const std::string& name) {
    std::array<char, 4096> buffer{};
    bool first = true;
    while (into.size() < count) {
        const io_result result = from.read_now(buffer);
        if (result.lost()) {
            return result.why;
        }
        if (result.what == io_result::outcome::again) {
            if (!wait(from.socket(), result.wants, deadline)) {
                return {errc::store_unavailable, name + ": no answer in time; is the server up?"};
            }
            continue;
        }
        // What a TLS server sends to those who do not speak TLS starts so.
        if (std::exchange(first, false) && buffer[0] == '\x15') {
            return {errc::bad_configuration, name + ": the server expects TLS; write rediss://"};
        }
        reader.feed({buffer.data(), result.bytes});
        value answer;
        auto progress = reader.next(answer);
        for (; progress == reply_reader::progress::complete; progress = reader.next(answer)) {
            into.push_back(std::exchange(answer, {}));
        }
        if (progress == reply_reader::progress::broken) {
            return {errc::bad_configuration,
                    name + ": this is not a Redis server (" + reader.problem() + ")"};
        }
    }
    return {};
}

/// The server's own words, as far as they are of use.
std::string quote(const value& answer, const credentials& login) {
    constexpr std::size_t longest = 160;
    if (!login.password.empty() && answer.text.find(login.password) != std::string::npos) {
        return "the server's words are withheld: they hold the password";
    }
    return answer.text.size() <= longest ? answer.text : answer.text.substr(0, longest) + "…";
}

failure refusal(const value& answer, const connection_settings& how) {
    const std::string_view code = answer.error_code();
    const std::string words = quote(answer, how.login);
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
    return {errc::store_unavailable, "the server refused the connection (" + words + ")"};
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
failure turned_away(const script& sent, const std::vector<value>& answers,
                    const connection_settings& how) {
    if (answers.empty()) {
        return {};
    }
    if (says_full(answers.front())) {
        return meaning_of(answers.front());
    }
    const bool alone = answers.size() == 1 && sent.count > 1;
    return alone && answers.front().error_code() == "ERR" ? refusal(answers.front(), how) : failure{};
}

/// The first answer that is in the way, if any.
failure judge(const script& sent, const std::vector<value>& answers, const connection_settings& how) {
    if (failure why = turned_away(sent, answers, how)) {
        return why;
    }
    if (sent.login < answers.size() && answers[sent.login].is_error()) {
        failure why = refusal(answers[sent.login], how);
        if (why.code == errc::store_unavailable && answers[sent.login].error_code() == "ERR") {
            why = {errc::unauthorised, "the server did not take the user or the password (" +
                                           quote(answers[sent.login], how.login) + ")"};
        }
        return why;
    }
    if (sent.select < answers.size() && answers[sent.select].error_code() == "ERR") {
        return {errc::bad_configuration,
                "database " + std::to_string(how.database) +
                    " cannot be used: " + quote(answers[sent.select], how.login)};
    }
    for (const std::size_t place : {sent.select, sent.time}) {
        if (place < answers.size() && answers[place].is_error()) {
            return refusal(answers[place], how);
        }
    }
    for (std::size_t place = sent.greeting; place < answers.size(); ++place) {
        if (answers[place].error_code() == "LOADING") {
            return refusal(answers[place], how);
        }
    }
    if (!answers.empty() && answers.size() < sent.count && answers.front().is_error()) {
        return refusal(answers.front(), how);
    }
    return {};
}

}  // namespace

introduction introduce(stream& to, reply_reader& reader, const node_address& where,
                       const connection_settings& how, const peer_name& predecessor,
                       const commands& greeting, clock::time_point deadline, const waiting& wait) {
    const std::string name = where.text();
    script sent;
    write_script(sent, how, predecessor, greeting);
    introduction result;
    std::vector<value> answers;
    failure lost = write_all(to, sent.out.text, deadline, wait, name);
    // Even when writing failed: what the server said before it hung up may tell why.
    if (failure unread = read_all(to, reader, sent.count, answers, deadline, wait, name)) {
        lost = std::move(unread);
    }
    if (failure refused = judge(sent, answers, how)) {
        result.error = {refused.code, name + ": " + refused.detail};
        return result;
    }
    if (lost) {
        if (lost.code == errc::store_unavailable && answers.empty() && clock::now() < deadline) {
            lost.detail += guess(how);
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
