#include "timer.hpp"

#include <holdfast/clock.hpp>
#include <threading/primitives.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace holdfast {

namespace {

constexpr clock::time_point beginning{std::chrono::hours{1}};
clock::time_point now{beginning};
/// What each timer is armed for. One that has expired stays so until it is read, or armed anew.
std::map<int, std::optional<clock::time_point>> timers;
constexpr int first_timer = 1'000'000;
constexpr char all_timers{};
enum class resting : std::uint8_t { no, yes, over } rests = resting::no;

[[nodiscard]] bool expired(int timer) {
    const auto found = timers.find(timer);
    return found != timers.end() && found->second && *found->second <= now;
}

/// To the next moment that a timer is armed for.
[[nodiscard]] bool time_goes_on() {
    if (rests == resting::yes) {
        rests = resting::over;
        return true;
    }
    auto next = clock::time_point::max();
    for (const auto& [timer, armed] : timers) {
        next = std::min(next, armed.value_or(clock::time_point::max()));
    }
    if (next - now > model::longest_pause) {
        return false;
    }
    now = std::max(now, next);
    return true;
}

}  // namespace

clock::time_point clock::now() noexcept {
    return holdfast::now;
}

void model::begin_time() {
    now = beginning;
    timers.clear();
    rests = resting::no;
    when_all_sleep(time_goes_on);
}

int model::begin_countdown(std::chrono::milliseconds time) {
    const int number = timers.empty() ? first_timer : timers.rbegin()->first + 1;
    timers[number] = now + time;
    return number;
}

bool model::is_over(int countdown) {
    return expired(countdown);
}

void model::end_countdown(int countdown) {
    timers.erase(countdown);
}

void model::rest() {
    rests = resting::yes;
    block(&rests, patience::endless, [] { return rests == resting::over; });
}

void model::spend(std::chrono::microseconds time) {
    act(&all_timers, [&] { now += time; });
}

namespace threading {

int timerfd_create(int, int) noexcept {
    const int made = timers.empty() ? first_timer : timers.rbegin()->first + 1;
    timers[made];
    return made;
}

int timerfd_settime(int descriptor, int, const ::itimerspec* when, ::itimerspec*) noexcept {
    const auto at = clock::time_point{std::chrono::seconds{when->it_value.tv_sec} +
                                      std::chrono::nanoseconds{when->it_value.tv_nsec}};
    if (!model::exploring()) {
        timers[descriptor] = at;
        return 0;
    }
    model::act(&all_timers, [&] {
        timers[descriptor] = at;
        model::publish(&all_timers);
    });
    return 0;
}

::ssize_t read(int descriptor, void*, std::size_t size) noexcept {
    model::block(
        &all_timers, model::patience::endless, [=] { return expired(descriptor); },
        [=] {
            timers[descriptor].reset();
            model::learn(&all_timers);
        });
    return static_cast<::ssize_t>(size);
}

}  // namespace threading

}  // namespace holdfast
