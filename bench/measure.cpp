#include "measure.hpp"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <sstream>
#include <system_error>

namespace bench {

temporary_directory::temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
        throw std::system_error{errno, std::generic_category(), "cannot make a temporary directory"};
    }
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

nanoseconds time_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::steady_clock::now() - start;
}

nanoseconds processor_time_of(const std::function<void()>& work) {
    const auto now = [] {
        timespec reading{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &reading);
        return nanoseconds{std::chrono::seconds{reading.tv_sec}} +
               nanoseconds{static_cast<double>(reading.tv_nsec)};
    };
    const auto start = now();
    work();
    return now() - start;
}

comparison compare(std::size_t rounds, std::size_t operations, const std::function<void()>& ours,
                   const std::function<void()>& theirs) {
    std::vector<nanoseconds> our_times;
    std::vector<nanoseconds> their_times;
    for (std::size_t round = 0; round < rounds; ++round) {
        our_times.push_back(time_of(ours) / static_cast<double>(operations));
        their_times.push_back(time_of(theirs) / static_cast<double>(operations));
    }
    return {median(std::move(our_times)), median(std::move(their_times))};
}

std::string text(double value, int digits) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(digits) << value;
    return out.str();
}

std::string microseconds(nanoseconds value) {
    return text(value.count() / 1000, 2) + " µs";
}

}  // namespace bench
