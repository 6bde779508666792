#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

using nanoseconds = std::chrono::duration<double, std::nano>;

/// A directory that vanishes with the object.
class temporary_directory {
public:
    temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory();
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// How long `work` takes.
[[nodiscard]] nanoseconds time_of(const std::function<void()>& work);
/// How much processor time `work` takes on this thread. For work that never waits: other load does not
/// change the result.
[[nodiscard]] nanoseconds processor_time_of(const std::function<void()>& work);
template <class Value>
[[nodiscard]] Value median(std::vector<Value> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Two ways to do the same, measured in turns, so that other load on the machine affects both alike.
/// Each round runs both; the medians over all rounds are compared.
struct comparison {
    nanoseconds ours;
    nanoseconds theirs;
    [[nodiscard]] double ratio() const { return ours / theirs; }
};
[[nodiscard]] comparison compare(std::size_t rounds, std::size_t operations,
                                 const std::function<void()>& ours,
                                 const std::function<void()>& theirs);

/// One line of the report.
struct figure {
    std::string subject;
    std::string measured;
    std::string goal;
    bool met;
};

// One per file of the same name.
[[nodiscard]] std::vector<figure> uncontended();
[[nodiscard]] std::vector<figure> reentry();
[[nodiscard]] std::vector<figure> handover();
[[nodiscard]] std::vector<figure> redis();
[[nodiscard]] std::vector<figure> quorum();
[[nodiscard]] std::vector<figure> segments();
[[nodiscard]] std::vector<figure> guards();

[[nodiscard]] std::string text(double value, int digits);
[[nodiscard]] std::string microseconds(nanoseconds value);

}  // namespace bench
