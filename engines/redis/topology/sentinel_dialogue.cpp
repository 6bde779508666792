#include <redis/topology/sentinel_dialogue.hpp>

#include <redis/errors.hpp>
#include <redis/number.hpp>
#include <utility>
#include <vector>

namespace holdfast::engines::redis {

namespace {

constexpr std::string_view channel = "+switch-master";

void append(std::string& out, std::initializer_list<std::string_view> words) {
    append_command(out, std::span{words.begin(), words.size()});
}

[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> result;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        result.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result;
}

/// The connection is of no use, unless there is no reason.
[[nodiscard]] sentinel_dialogue::news fault(failure reason) {
    return {.view = {}, .switched = false, .checkup = {}, .error = std::move(reason)};
}

[[nodiscard]] bool is_message(const value& answer) {
    return answer.items.size() == 3 && answer.items[0].text == "message";
}

}  // namespace

sentinel_dialogue::sentinel_dialogue(std::string service, credentials login)
    : service_{std::move(service)}, login_{std::move(login)} {}

std::string sentinel_dialogue::opening() {
    std::string out;
    expected_.clear();
    login_ = up_to_date(std::move(login_));
    if (!login_.user.empty()) {
        append(out, {"AUTH", login_.user, login_.password});
        expected_.push_back(part::login);
    } else if (!login_.password.empty()) {
        append(out, {"AUTH", login_.password});
        expected_.push_back(part::login);
    }
    append_question(out, wish::master);
    return out;
}

std::string sentinel_dialogue::question() {
    return ask_again(wish::master);
}

std::string sentinel_dialogue::checkup() {
    return ask_again(wish::checkup);
}

std::string sentinel_dialogue::ask_again(wish purpose) {
    std::string out;
    append(out, {"UNSUBSCRIBE", channel});
    expected_.push_back(part::silence);
    append_question(out, purpose);
    return out;
}

void sentinel_dialogue::append_question(std::string& out, wish purpose) {
    append(out, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service_});
    append(out, {"SENTINEL", "MASTER", service_});
    expected_.insert(expected_.end(), {part::address, part::details});
    if (purpose == wish::checkup) {
        append(out, {"SENTINEL", "CKQUORUM", service_});
        expected_.push_back(part::quorum);
    }
    append(out, {"SUBSCRIBE", channel});
    expected_.push_back(part::listening);
}

sentinel_dialogue::news sentinel_dialogue::take(const value& answer) {
    if (is_message(answer)) {
        return take_message(answer);
    }
    if (says_full(answer)) {
        return fault(meaning_of(answer));
    }
    if (expected_.empty()) {
        return fault(senseless_answer("nothing"));
    }
    const part answered = expected_.front();
    expected_.pop_front();
    switch (answered) {
        case part::login:
            if (answer.is_error()) {
                return fault({errc::unauthorised, "refused user name or password"});
            }
            return {};
        case part::address:
            return take_address(answer);
        case part::details:
            take_details(answer);
            return {};
        case part::quorum:
            return {
                .view = {},
                .switched = false,
                .checkup =
                    sentinel_checkup{.where = {}, .silence = {}, .others = others_, .quorum = answer},
                .error = {}};
        case part::silence:
            return fault(answer.is_error() ? meaning_of(answer) : failure{});
        case part::listening:
            return take_listening(answer);
    }
    return {};
}

/// "<service> <old host> <old port> <new host> <new port>"
sentinel_dialogue::news sentinel_dialogue::take_message(const value& message) {
    const auto words = words_of(message.items[2].text);
    if (words.size() != 5 || words[0] != service_) {
        return {};
    }
    sentinel_view told;
    told.master.host = words[3];
    if (!read_number(words[4], told.master.port)) {
        return {};
    }
    // The number is not told; that it is a higher one is certain.
    told.epoch = view_.epoch + 1;
    view_ = told;
    return {.view = told, .switched = true, .checkup = {}, .error = {}};
}

sentinel_dialogue::news sentinel_dialogue::take_address(const value& answer) {
    if (answer.error_code() == "ERR") {
        return fault(
            {errc::bad_configuration, "this is not a sentinel; use redis:// (" + answer.text + ")"});
    }
    if (answer.is_error()) {
        return fault(meaning_of(answer));
    }
    if (answer.type == value::kind::nil) {
        return fault({errc::bad_configuration, "does not know a service called \"" + service_ +
                                                   "\"; the address must end in the name that the "
                                                   "sentinels' configuration gives it"});
    }
    sentinel_view told;
    if (answer.items.size() != 2 || answer.items[0].text.empty() ||
        !read_number(answer.items[1].text, told.master.port)) {
        return fault(senseless_answer("SENTINEL GET-MASTER-ADDR-BY-NAME"));
    }
    told.master.host = answer.items[0].text;
    view_ = told;
    return {};
}

/// A list of names and values. Those who may not ask for it get along without.
void sentinel_dialogue::take_details(const value& answer) {
    others_.reset();
    for (std::size_t index = 0; index + 1 < answer.items.size(); index += 2) {
        const auto& name = answer.items[index].text;
        const auto& number = answer.items[index + 1].text;
        std::uint32_t others{};
        if (name == "config-epoch" && !read_number(number, view_.epoch)) {
            view_.epoch = 0;
        } else if (name == "num-other-sentinels" && read_number(number, others)) {
            others_ = others;
        }
    }
}

sentinel_dialogue::news sentinel_dialogue::take_listening(const value& answer) {
    if (!answer.is_error()) {
        return {.view = view_, .switched = false, .checkup = {}, .error = {}};
    }
    failure reason = meaning_of(answer);
    if (refuses_keys(answer)) {
        reason.detail += "; run: ACL SETUSER " + (login_.user.empty() ? "default" : login_.user) +
                         " &" + std::string{channel};
    }
    return fault(std::move(reason));
}

}  // namespace holdfast::engines::redis
