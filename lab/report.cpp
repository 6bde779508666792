#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace lab {

namespace {

enum class colour : std::uint8_t { bold, red, green, yellow, grey };

std::string painted(colour shade, const std::string& text) {
    static const bool seen = ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    static constexpr const char* codes[] = {"1", "31", "32", "33", "90"};
    if (!seen) {
        return text;
    }
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(shade)], text);
}

telling told(ending (*tell)(story&), verdict expected) {
    story timeline;
    telling once;
    once.expected = expected;
    try {
        once.found = tell(timeline);
    } catch (const std::exception& error) {
        // Neither side may end with an exception, so the verdict must differ from the expected one.
        const auto other = expected == verdict::broken ? verdict::safe : verdict::broken;
        once.found = {other, std::string{"the story could not be told: "} + error.what()};
    }
    once.took = timeline.now();
    once.timeline = timeline.entries();
    return once;
}

/// Words that follow a painted `start`; continued lines are indented.
std::string wrapped(std::size_t start, const std::string& text) {
    constexpr std::size_t width = 96;
    constexpr std::size_t indent = 4;
    std::string lines;
    std::size_t column = indent + start;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(' ', at), text.size());
        const bool fits = column + 1 + (end - at) <= width;
        lines += fits ? " " : "\n" + std::string(indent, ' ');
        lines.append(text, at, end - at);
        column = (fits ? column + 1 : indent) + (end - at);
        at = end + 1;
    }
    return lines;
}

std::string verdict_line(const telling& side) {
    auto words = std::string{to_string(side.found.found)};
    auto paint = side.found.found == verdict::safe ? colour::green : colour::yellow;
    if (!side.as_expected()) {
        words.insert(0, "UNEXPECTED ");
        paint = colour::red;
    } else if (side.expected == verdict::broken) {
        words += " as expected";
        paint = colour::red;
    }
    words += ":";
    return fmt::format("    {}{}\n", painted(paint, words), wrapped(words.size(), side.found.sentence));
}

std::string side_as_text(std::string_view side_name, std::string_view lock, const telling& side) {
    auto text = fmt::format("  {}  {}\n", painted(colour::bold, fmt::format("{:<8}", side_name)),
                            painted(colour::grey, std::string{lock}));
    for (const auto& each : side.timeline) {
        const auto token = each.token ? fmt::format("  token {}", *each.token) : std::string{};
        const auto line = fmt::format("    {:>5} ms  {:<8} {:<58}{}", each.at.count(), each.speaker,
                                      each.text, painted(colour::grey, token));
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text + verdict_line(side);
}

std::string json_text(std::string_view text) {
    std::string word{'"'};
    for (const char each : text) {
        if (each == '"' || each == '\\') {
            word += '\\';
        }
        word += each == '\n' ? ' ' : each;
    }
    return word + '"';
}

std::string side_as_json(const telling& side) {
    std::string lines;
    for (const auto& each : side.timeline) {
        lines += fmt::format(R"({}{{"ms":{},"who":{},"what":{},"token":{}}})", lines.empty() ? "" : ",",
                             each.at.count(), json_text(each.speaker), json_text(each.text),
                             each.token ? std::to_string(*each.token) : "null");
    }
    return fmt::format(R"({{"verdict":"{}","as_expected":{},"sentence":{},"ms":{},"timeline":[{}]}})",
                       to_string(side.found.found), side.as_expected(), json_text(side.found.sentence),
                       side.took.count(), lines);
}

}  // namespace

std::string emphasised(const std::string& text) {
    return painted(colour::bold, text);
}

result play(const scenario& played) {
    return {&played, told(played.naive, verdict::broken), told(played.with_holdfast, played.promised)};
}

void tally::add(const result& round) {
    played = round.played;
    ++rounds;
    broken += round.naive.as_expected() ? 1U : 0U;
    kept += round.with_holdfast.as_expected() ? 1U : 0U;
    longest = std::max(longest, round.naive.took + round.with_holdfast.took);
}

std::string as_text(const result& round) {
    return fmt::format("{}  {}\n{}{}\n", painted(colour::bold, std::string{round.played->name}),
                       round.played->title,
                       side_as_text("naive", round.played->naive_lock, round.naive),
                       side_as_text("holdfast", round.played->holdfast_lock, round.with_holdfast));
}

std::string heading_of_tallies() {
    return fmt::format("{:<28} {:>14} {:>16} {:>11}\n", "scenario", "naive", "holdfast", "longest");
}

std::string as_text(const tally& sum) {
    const auto broken = fmt::format("BROKEN {}/{}", sum.broken, sum.rounds);
    const auto kept = fmt::format("{} {}/{}", to_string(sum.played->promised), sum.kept, sum.rounds);
    return painted(sum.as_expected() ? colour::green : colour::red,
                   fmt::format("{:<28} {:>14} {:>16} {:>8} ms", sum.played->name, broken, kept,
                               sum.longest.count())) +
           "\n";
}

std::string as_json(const result& round) {
    return fmt::format(R"({{"scenario":"{}","title":{},"naive":{},"holdfast":{}}})", round.played->name,
                       json_text(round.played->title), side_as_json(round.naive),
                       side_as_json(round.with_holdfast));
}

}  // namespace lab
