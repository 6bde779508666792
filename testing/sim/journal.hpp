#pragma once

#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/clock.hpp>
#include <schedule.hpp>

namespace holdfast::testing::sim {

/// What happened: always as a hash, in words when somebody wants to read it. Also takes note of the
/// first promise that was broken, which ends the run.
class journal {
public:
    journal(const schedule& time, bool tracing) noexcept : time_{time}, tracing_{tracing} {}

    void hash(std::uint64_t value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3U; }
    void hash(std::initializer_list<std::uint64_t> values) noexcept {
        for (const auto value : values) {
            hash(value);
        }
    }

    /// The words are put together only when they are wanted.
    template <class... Words>
    void note(const Words&... words) {
        if (tracing_) {
            std::ostringstream line;
            line << stamp();
            (line << ... << words);
            trace_.push_back(line.str());
        }
    }

    template <class... Words>
    void violated(std::string_view invariant, const Words&... words) {
        if (!invariant_.empty()) {
            return;
        }
        std::ostringstream text;
        (text << ... << words);
        invariant_ = invariant;
        message_ = text.str();
        note("*** ", invariant_, ": ", message_);
    }

    [[nodiscard]] bool tracing() const noexcept { return tracing_; }
    [[nodiscard]] bool failed() const noexcept { return !invariant_.empty(); }
    [[nodiscard]] const std::string& invariant() const noexcept { return invariant_; }
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] std::vector<std::string>& trace() noexcept { return trace_; }

private:
    [[nodiscard]] std::string stamp() const;

    const schedule& time_;
    bool tracing_;
    std::uint64_t hash_{0xcbf29ce484222325U};
    std::string invariant_;
    std::string message_;
    std::vector<std::string> trace_;
};

/// For notes: "+12.345 ms" since the start of the run.
[[nodiscard]] std::string relative(clock::time_point when);

}  // namespace holdfast::testing::sim
