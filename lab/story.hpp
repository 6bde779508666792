#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/token.hpp>

/// The lab: every flaw of a home-made lock, made to happen on real servers, and what holdfast does in
/// the same situation.
namespace lab {

/// One line of a timeline.
struct entry {
    std::chrono::milliseconds at{};
    std::string speaker;
    std::string text;
    std::optional<std::uint64_t> token;
};

/// What happened, in order. Thread safety: full.
class story {
public:
    void tell(std::string speaker, std::string text, std::optional<std::uint64_t> token = {});
    void tell(std::string speaker, std::string text, holdfast::fencing_token token) {
        tell(std::move(speaker), std::move(text), token.value);
    }
    [[nodiscard]] std::vector<entry> entries() const;
    /// Since the story began, which is when its servers were ready: see `begin`.
    [[nodiscard]] std::chrono::milliseconds now() const;
    /// Starting servers is not part of it.
    void begin();

private:
    mutable std::mutex guard_;
    std::chrono::steady_clock::time_point begin_{std::chrono::steady_clock::now()};
    std::vector<entry> entries_;
};

enum class verdict : std::uint8_t {
    /// Two holders, a lock that nobody can get, a write that is lost.
    broken,
    safe,
    /// Not prevented, since no lock can prevent it; but noticed, and without damage.
    limit,
};

[[nodiscard]] std::string_view to_string(verdict found) noexcept;

/// How a story ended.
struct ending {
    verdict found{};
    std::string sentence;
};

/// `sentence` says what `happened` means.
[[nodiscard]] ending broken_if(bool happened, std::string sentence);
[[nodiscard]] ending safe_if(bool happened, std::string sentence);
[[nodiscard]] ending limit_if(bool happened, std::string sentence);

[[nodiscard]] std::string in_ms(std::chrono::nanoseconds time);

}  // namespace lab
