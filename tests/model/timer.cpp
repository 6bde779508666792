#include "timer.hpp"

#include <runtime/timer.hpp>
#include <threading/primitives.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace holdfast {

namespace {

clock::time_point now{std::chrono::hours{1}};
std::optional<clock::time_point> armed;
bool due = false;
bool closing = false;
constexpr char timer_object{};
enum class resting : std::uint8_t { no, yes, over } rests = resting::no;

}  // namespace

clock::time_point clock::now() noexcept {
    return holdfast::now;
}

void model::begin_time() {
    now = clock::time_point{std::chrono::hours{1}};
    armed.reset();
    due = false;
    closing = false;
    rests = resting::no;
    when_all_sleep([] {
        if (rests == resting::yes) {
            rests = resting::over;
            return true;
        }
        if (!armed || due || *armed - now > longest_pause) {
            return false;
        }
        now = std::max(now, *armed);
        armed.reset();
        due = true;
        return true;
    });
}

void model::rest() {
    rests = resting::yes;
    block(&rests, patience::endless, [] { return rests == resting::over; });
}

void model::spend(std::chrono::microseconds time) {
    now += time;
}

namespace detail {

/// In place of the one in `src`: fires only when all others sleep.
timer_thread::timer_thread(std::function<void()> tick) : tick_{std::move(tick)}, descriptor_{-1} {
    model::spawn([this] { run(); });
}

timer_thread::~timer_thread() {
    model::act(&timer_object, [] { closing = true; });
}

void timer_thread::arm(clock::time_point at) noexcept {
    armed = at;
}

void timer_thread::run() {
    while (true) {
        model::block(&timer_object, model::patience::endless, [] { return due || closing; });
        if (closing) {
            return;
        }
        due = false;
        tick_();
    }
}

}  // namespace detail

}  // namespace holdfast
