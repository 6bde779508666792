#include "timer.hpp"

#include <threading/primitives.hpp>

#include <map>

namespace holdfast::threading {

namespace {

/// All bells are one object for the checker: whatever happens to one of them may end a sleep.
constexpr char all_bells{};

/// Of one execution.
struct kernel {
    std::map<const void*, sleepers> futexes;
    std::map<int, std::uint64_t> bells;
    int last{2};
};

kernel& system() {
    static std::size_t of = 0;
    static auto* now = new kernel;
    if (const auto execution = model::execution(); execution != of) {
        of = execution;
        *now = {};
    }
    return *now;
}

}  // namespace

void sleep_while(const void* word, std::uint32_t seen, reach, const ::timespec* limit) noexcept {
    bool woken = false;
    bool sleeps = false;
    auto& queue = system().futexes[word];
    model::act(word, [&] {
        std::uint32_t newest = 0;
        std::memcpy(&newest, word, sizeof newest);
        model::catch_up(word);
        sleeps = newest == seen;
        if (sleeps) {
            queue.add(&woken);
        }
    });
    if (sleeps) {
        // Also without a limit it may wake up without reason.
        static_cast<void>(limit);
        queue.sleep(word, model::patience::limited, &woken);
    }
}

void wake(const void* word, int count, reach) noexcept {
    model::act(word, [&] { system().futexes[word].wake(static_cast<std::size_t>(count)); });
}

int eventfd(unsigned first, int) noexcept {
    system().bells[++system().last] = first;
    return system().last;
}

int eventfd_write(int descriptor, ::eventfd_t more) noexcept {
    model::act(&all_bells, [&] {
        // One that was closed meanwhile is an error that nobody looks at.
        if (const auto bell = system().bells.find(descriptor); bell != system().bells.end()) {
            bell->second += more;
        }
        model::publish(&all_bells);
    });
    return 0;
}

int eventfd_read(int descriptor, ::eventfd_t* value) noexcept {
    model::act(&all_bells, [&] {
        *value = std::exchange(system().bells.at(descriptor), 0);
        model::learn(&all_bells);
    });
    return *value > 0 ? 0 : -1;
}

int close(int descriptor) noexcept {
    if (model::exploring()) {
        system().bells.erase(descriptor);
    }
    return 0;
}

int poll(::pollfd* watched, ::nfds_t count, int timeout) noexcept {
    const auto look = [&] {
        int ready = 0;
        for (::nfds_t each = 0; each < count; ++each) {
            const bool rung = watched[each].fd >= 0 && system().bells.at(watched[each].fd) > 0;
            watched[each].revents = rung ? POLLIN : 0;
            ready += rung ? 1 : 0;
        }
        return ready;
    };
    // Time passes only where a scenario has a clock, and then when all threads sleep.
    const int countdown = timeout > 0 ? model::begin_countdown(std::chrono::milliseconds{timeout}) : 0;
    model::block(
        &all_bells, timeout < 0 ? model::patience::endless : model::patience::limited,
        [&] { return timeout == 0 || look() > 0 || (countdown != 0 && model::is_over(countdown)); },
        [] { model::learn(&all_bells); });
    if (countdown != 0) {
        model::end_countdown(countdown);
    }
    return look();
}

}  // namespace holdfast::threading
