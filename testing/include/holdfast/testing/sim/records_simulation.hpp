#pragma once

#include <cstdint>
#include <string>

namespace holdfast::testing::sim {

struct records_result {
    /// Empty: no promise was broken.
    std::string violation;
    std::uint64_t grants{};
    std::uint64_t events{};
    std::uint64_t conflicts{};
    /// Writes that the store performed and whose client was not told.
    std::uint64_t unanswered{};
};

/// Several clients use a lock, a semaphore and a latch in a store with one record for each name, in
/// virtual time: requests and answers are slow, come late or get lost, clients crash, clocks run
/// unevenly and show different times, the store removes records that are not needed any more.
[[nodiscard]] records_result run_records(std::uint64_t seed);

}  // namespace holdfast::testing::sim
