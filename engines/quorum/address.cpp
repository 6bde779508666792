#include <quorum/address.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using std::chrono::milliseconds;

[[nodiscard]] milliseconds parse_duration(std::string_view name, std::string_view text) {
    const std::map<std::string_view, milliseconds> units{{"ms", milliseconds{1}},
                                                         {"s", std::chrono::seconds{1}},
                                                         {"m", std::chrono::minutes{1}},
                                                         {"h", std::chrono::hours{1}}};
    std::uint32_t number{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto unit = units.find({end, static_cast<std::size_t>(text.data() + text.size() - end)});
    if (problem != std::errc{} || unit == units.end()) {
        refuse_quorum("write " + std::string{name} + " as 500ms, 30s, 2m or 1h");
    }
    return number * unit->second;
}

void parse_option(std::string_view text, quorum& result) {
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    const auto value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    if (name == "member_timeout") {
        result.member_timeout = parse_duration(name, value);
    } else if (name == "drift") {
        result.drift = parse_duration(name, value);
    } else if (name == "restart_grace") {
        result.restart_grace = parse_duration(name, value);
    } else {
        // Anything else may be a part of a password with white space in it.
        const bool plain = equals != std::string_view::npos &&
                           std::all_of(name.begin(), name.end(),
                                       [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
        refuse_quorum(
            (plain ? "there is no option \"" + std::string{name} + "\"" : "this is no option") +
            "; there are member_timeout, drift and restart_grace");
    }
}

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto begin = text.find_first_not_of(separators);
        if (begin == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(begin);
        const auto length = std::min(text.find_first_of(separators), text.size());
        parts.push_back(text.substr(0, length));
        text.remove_prefix(length);
    }
}

}  // namespace

void refuse_quorum(std::string reason) {
    failure{errc::bad_configuration, std::move(reason)}.raise("cannot use the quorum");
}

quorum parse_quorum(std::string_view rest) {
    quorum result;
    for (const auto part : split(rest, " \t\r\n")) {
        if (part.front() != '?') {
            result.stores.emplace_back(part);
            continue;
        }
        for (const auto option : split(part.substr(1), "&")) {
            parse_option(option, result);
        }
    }
    return result;
}

std::string text_of(const quorum_options& options, const std::vector<std::string>& stores) {
    std::string settings;
    const auto add = [&](const char* name, milliseconds value) {
        settings += (settings.empty() ? "?" : "&") + std::string{name} + "=" +
                    std::to_string(value.count()) + "ms";
    };
    if (options.member_timeout) {
        add("member_timeout", *options.member_timeout);
    }
    if (options.drift) {
        add("drift", *options.drift);
    }
    if (options.restart_grace.count() > 0) {
        add("restart_grace", options.restart_grace);
    }
    for (const auto& each : stores) {
        settings += (settings.empty() ? "" : " ") + each;
    }
    return "quorum:" + settings;
}

std::string identity_of(std::vector<std::string> members) {
    std::sort(members.begin(), members.end());
    std::string text = "quorum:";
    for (const auto& each : members) {
        text += std::to_string(each.size()) + ":" + each;
    }
    return text;
}

}  // namespace holdfast::engines::quorums
