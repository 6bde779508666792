#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace holdfast::testing::sim {

[[nodiscard]] inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr || *text == '\0' ? otherwise : std::stoull(text);
}

/// The seed every campaign starts from.
[[nodiscard]] inline std::uint64_t base_seed() {
    return number_from_environment("HOLDFAST_SIM_BASE_SEED", 1);
}

}  // namespace holdfast::testing::sim
