#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

enum class verbosity : std::uint8_t { quiet, normal, verbose };

/// Lines for people, on standard error and each in one write, so that they do not mix with what the
/// command writes there.
///
/// Thread safety: all functions may be called from any thread.
class messages {
public:
    explicit messages(verbosity level) noexcept : level_{level} {}

    /// Only with `--verbose`.
    void detail(std::string_view text) const;
    /// Not with `--quiet`: normal outcomes and advice.
    void say(std::string_view text) const;
    /// Always: what somebody has to look at.
    void error(std::string_view text) const;

    [[nodiscard]] bool verbose() const noexcept { return level_ == verbosity::verbose; }
    [[nodiscard]] bool quiet() const noexcept { return level_ == verbosity::quiet; }

private:
    verbosity level_;
};

/// Writes all of `text` to a descriptor; gives up silently when nobody reads it.
void write_all(int descriptor, std::string_view text) noexcept;

}  // namespace holdfast::cli
