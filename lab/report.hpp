#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "scenario.hpp"

namespace lab {

/// One side of a scenario, told once.
struct telling {
    std::vector<entry> timeline;
    ending found;
    verdict expected{};
    std::chrono::milliseconds took{};

    [[nodiscard]] bool as_expected() const { return found.found == expected; }
};

struct result {
    const scenario* played{};
    telling naive;
    telling with_holdfast;

    [[nodiscard]] bool as_expected() const {
        return naive.as_expected() && with_holdfast.as_expected();
    }
};

/// Plays a scenario once. An error of the servers themselves becomes the ending.
[[nodiscard]] result play(const scenario& played);

/// How often each side of a scenario ended as it should.
struct tally {
    const scenario* played{};
    std::uint32_t rounds{};
    std::uint32_t broken{};
    std::uint32_t kept{};
    std::chrono::milliseconds longest{};

    void add(const result& round);
    [[nodiscard]] bool as_expected() const { return broken == rounds && kept == rounds; }
};

/// Colours only where somebody sees them.
[[nodiscard]] std::string as_text(const result& round);
[[nodiscard]] std::string heading_of_tallies();
[[nodiscard]] std::string as_text(const tally& sum);
/// One object in one line.
[[nodiscard]] std::string as_json(const result& round);
[[nodiscard]] std::string emphasised(const std::string& text);

}  // namespace lab
