#include "ending.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "duration.hpp"
#include "exit_code.hpp"

namespace holdfast::cli {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds longest_default_grace{10'000};
constexpr milliseconds shortest_slack{50};
constexpr milliseconds longest_slack{1'000};

[[noreturn]] void refuse(const std::string& problem) {
    throw stop_program{exit_code::usage, problem};
}

}  // namespace

milliseconds default_grace(milliseconds hold) noexcept {
    return std::min(hold / 4, longest_default_grace);
}

ending_terms make_ending_terms(milliseconds ttl, std::optional<milliseconds> grace,
                               std::optional<milliseconds> max_hold) {
    // A short hold gets a short end: the defaults must fit the ttl and `--max-hold` that were asked
    // for.
    const auto hold = std::min(ttl, max_hold.value_or(ttl));
    const auto slack = std::clamp(std::min(ttl / 10, hold / 4), shortest_slack, longest_slack);
    const ending_terms terms{grace.value_or(default_grace(hold)), slack};
    const auto longest_grace = std::max(ttl / 2 - slack, milliseconds{0});
    if (terms.grace > longest_grace) {
        const auto enough = std::max(terms.grace * 5 / 2, 2 * (terms.grace + shortest_slack));
        refuse(fmt::format(
            "--grace {} does not fit --ttl {}: when renewals fail, at most {} are left to end the "
            "command before its lease ends; use --ttl {} or a shorter --grace",
            format_duration(terms.grace), format_duration(ttl), format_duration(longest_grace),
            format_duration(enough)));
    }
    if (max_hold && *max_hold <= terms.grace + slack) {
        refuse(
            fmt::format("--max-hold {} leaves the command no time: ending it may take {}; use a longer "
                        "--max-hold or a shorter --grace",
                        format_duration(*max_hold), format_duration(terms.grace + slack)));
    }
    return terms;
}

}  // namespace holdfast::cli
