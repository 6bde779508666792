#pragma once

#include <chrono>
#include <thread>

namespace holdfast::testing {

/// How long a test waits for something that must happen before the test fails. Far longer than a loaded
/// machine needs: only a failing test waits so long.
inline constexpr std::chrono::seconds patience{20};

/// Asks `condition` again and again until it holds, or until `limit` has passed.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& condition, std::chrono::milliseconds limit = patience) {
    constexpr std::chrono::milliseconds between_questions{2};
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (true) {
        if (condition()) {
            return true;
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            return false;
        }
        std::this_thread::sleep_for(between_questions);  // not a guess: the condition is asked again
    }
}

}  // namespace holdfast::testing
