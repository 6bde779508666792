#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

enum class verbosity : std::uint8_t { quiet, normal, verbose };

class background_writer;

/// Lines for people, on standard error and each in one write, so that they do not mix with what the
/// command writes there.
///
/// With a `background_writer` no function ever waits for the reader of standard error. `run` needs
/// this: a reader that has stopped must not keep a command alive past its lease.
///
/// Thread safety: all functions may be called from any thread.
class messages {
public:
    explicit messages(verbosity level) noexcept : level_{level} {}
    /// The writer must outlive this object and its copies.
    messages(verbosity level, background_writer& writer) noexcept : level_{level}, writer_{&writer} {}

    /// Only with `--verbose`.
    void detail(std::string_view text) const;
    /// Not with `--quiet`: normal outcomes and advice.
    void say(std::string_view text) const;
    /// Always: what somebody has to look at.
    void error(std::string_view text) const;
    /// Always, and as it is: a document for programs.
    void document(std::string text) const;

    [[nodiscard]] bool verbose() const noexcept { return level_ == verbosity::verbose; }
    [[nodiscard]] bool quiet() const noexcept { return level_ == verbosity::quiet; }

private:
    void line(std::string_view text) const;

    verbosity level_;
    background_writer* writer_{};
};

/// Writes all of `text` to a descriptor, waiting for its reader if need be. Returns zero, or the error.
int write_all(int descriptor, std::string_view text) noexcept;

/// Writes what a command was asked for to standard output, unless its reader has gone. Throws
/// `stop_program` if it cannot be written, also because it is closed: half of an answer, or none, looks
/// like an answer.
void write_output(std::string_view text);

}  // namespace holdfast::cli
