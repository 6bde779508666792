#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "json.hpp"

namespace holdfast::cli {

/// `--timeout`: ends the program with `exit_code::unavailable` when `finish` has not been called by
/// then. It covers what no deadline of the library's covers: finding the store, connecting, and many
/// pages.
///
/// Thread safety: one thread only.
class time_limit {
public:
    /// What a request does that is not answered in time: it only looks, or it may have changed
    /// something.
    enum class request : std::uint8_t { looks, changes };
    /// Tells the user, as the last thing that the program does. Runs on a thread of its own.
    using reporter = std::function<void(const problem& reason)>;

    /// Without a timeout it does nothing.
    time_limit(std::optional<std::chrono::milliseconds> timeout, request kind, reporter report);
    /// Reports the end of the time like every other failure.
    time_limit(std::optional<std::chrono::milliseconds> timeout, request kind, output_format format);
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;
    ~time_limit() { finish(); }

    /// What is told when the time is over.
    [[nodiscard]] static problem reason_of(std::chrono::milliseconds timeout, request kind);

    /// The answer is there. Call it before the answer is written: a slow reader is no reason to give
    /// up.
    void finish();

private:
    void watch(const std::stop_token& stop, std::chrono::milliseconds timeout);

    request kind_;
    reporter report_;
    std::mutex guard_;
    std::condition_variable_any changed_;
    std::jthread watcher_;
};

/// The format that a command's arguments ask for.
template <class Arguments>
[[nodiscard]] output_format format_of(const Arguments& arguments) noexcept {
    return arguments.json ? output_format::json : output_format::text;
}

}  // namespace holdfast::cli
