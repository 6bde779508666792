#include <holdfast/clock.hpp>

#include <ctime>

namespace holdfast {

clock::time_point clock::now() noexcept {
    timespec reading{};
    clock_gettime(CLOCK_BOOTTIME, &reading);
    return time_point{std::chrono::seconds{reading.tv_sec} + std::chrono::nanoseconds{reading.tv_nsec}};
}

}  // namespace holdfast
