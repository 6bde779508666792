#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>

#include <unistd.h>

/// A process that locks, for the tests that need several of them.
///
///     lock_worker line ADDRESS NAME
///         gets in line for a fair lock, and ends when it has it
///     lock_worker wait ADDRESS NAME
///         the same for a plain lock
///     lock_worker work ADDRESS POLICY TTL_MS
///         locks and unlocks until it gets SIGTERM
///
/// A worker writes what it held, one line each: name, token, beginning, end, in nanoseconds of
/// CLOCK_BOOTTIME, which all processes of a host share; and "late NANOSECONDS" for a call that went
/// beyond its deadline by so much.
namespace {

using namespace std::chrono_literals;

constexpr auto call_limit = 4s;
/// They contend for one name with short holds, and for names that nobody has used before, a new one in
/// every term, with long ones. A fail-over that loses a release leaves such a name taken until the ttl
/// ends. So one thread of each process takes names that nobody else wants, each of them once: it shows
/// when the store serves again.
constexpr int threads_for_short_holds = 5;
constexpr int threads_for_long_holds = 3;
constexpr int threads_for_own_names = 1;
constexpr int all_threads = threads_for_short_holds + threads_for_long_holds + threads_for_own_names;
constexpr std::chrono::milliseconds term{700};

std::int64_t nanoseconds(holdfast::clock::time_point when) {
    return when.time_since_epoch().count();
}

class worker {
public:
    worker(const std::string& address, holdfast::lease_options options)
        : client_{address, {.request_timeout = 500ms}}, options_{options} {}

    void run(int number, const std::stop_token& stop) {
        std::minstd_rand random{static_cast<unsigned>(number) + std::random_device{}()};
        while (!stop.stop_requested()) {
            if (number < threads_for_short_holds) {
                const std::chrono::milliseconds hold_for{random() % 4};
                hold_once("stock", holdfast::clock::now() + hold_for, length::bounded, stop);
            } else if (number == all_threads - 1) {
                hold_once("{stock}:" + std::to_string(::getpid()) + ":" + std::to_string(++own_names_),
                          holdfast::clock::now() + 5ms, length::bounded, stop);
            } else {
                const auto which = holdfast::clock::now().time_since_epoch() / term;
                // With braces, so that a cluster keeps all of them on one server.
                hold_once("{stock}:" + std::to_string(which),
                          holdfast::clock::time_point{(which + 1) * term}, length::while_store_is_away,
                          stop);
            }
        }
    }

private:
    /// Nobody lets go of a long hold while the store is not there: those are the holds that a fail-over
    /// can go wrong with.
    enum class length : std::uint8_t { bounded, while_store_is_away };

    void hold_once(const std::string& name, holdfast::clock::time_point until, length how,
                   const std::stop_token& stop) {
        holdfast::mutex lock{client_, name, options_};
        const auto deadline = holdfast::clock::now() + call_limit;
        try {
            auto held = lock.try_acquire_for(call_limit, stop);
            report_if_late(deadline);
            if (held) {
                report_hold(*held, until, how, stop);
            }
        } catch (const std::system_error&) {
            report_if_late(deadline);  // no server at the moment
        }
    }

    /// The hold is over when its holder lets go or, by its own clock, has lost it.
    void report_hold(holdfast::lease& held, holdfast::clock::time_point planned, length how,
                     const std::stop_token& stop) {
        const auto from = holdfast::clock::now();
        const auto keep = [&](holdfast::clock::time_point end) {
            while (held && !stop.stop_requested() && holdfast::clock::now() < end) {
                std::this_thread::sleep_for(1ms);  // not a guess: the work the lock is held for
            }
        };
        keep(planned);
        while (how == length::while_store_is_away && held && !stop.stop_requested() &&
               !store_answers(held.name())) {
            keep(holdfast::clock::now() + 100ms);
        }
        const auto until = std::min(holdfast::clock::now(), held.valid_until());
        say(held.name() + " " + std::to_string(held.token().value) + " " +
            std::to_string(nanoseconds(from)) + " " + std::to_string(nanoseconds(until)));
        held.release();
    }

    [[nodiscard]] bool store_answers(const std::string& name) {
        try {
            return !client_.inspect(name).name.empty();
        } catch (const std::system_error&) {
            return false;
        }
    }

    void report_if_late(holdfast::clock::time_point deadline) {
        const auto over = holdfast::clock::now() - deadline;
        if (over > 0ns) {
            say("late " + std::to_string(over.count()));
        }
    }

    void say(const std::string& line) {
        const std::lock_guard guard{output_};
        std::cout << line << '\n' << std::flush;
    }

    holdfast::client client_;
    holdfast::lease_options options_;
    std::mutex output_;
    /// Used by one thread.
    int own_names_{};
};

sigset_t the_end() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    return signals;
}

int work(const std::string& address, const std::string& policy, const std::string& ttl) {
    holdfast::lease_options options{.ttl = std::chrono::milliseconds{std::stoll(ttl)}};
    if (policy == "majority") {
        options.replicas = holdfast::replica_policy::majority();
    }
    worker all{address, options};
    std::vector<std::jthread> threads;
    for (int number = 0; number < all_threads; ++number) {
        threads.emplace_back([&all, number](const std::stop_token& stop) { all.run(number, stop); });
    }
    const auto awaited = the_end();
    int got{};
    ::sigwait(&awaited, &got);
    return 0;
}

template <class Mutex>
int wait_for(const std::string& address, const std::string& name) {
    holdfast::client client{address};
    Mutex lock{client, name};
    lock.lock();
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const std::vector<std::string> arguments{words + 1, words + count};
    const auto awaited = the_end();
    ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);  // in all threads; one of them asks for it
    try {
        if (arguments.size() == 4 && arguments[0] == "work") {
            return work(arguments[1], arguments[2], arguments[3]);
        }
        if (arguments.size() == 3 && arguments[0] == "line") {
            return wait_for<holdfast::fair_mutex>(arguments[1], arguments[2]);
        }
        if (arguments.size() == 3 && arguments[0] == "wait") {
            return wait_for<holdfast::mutex>(arguments[1], arguments[2]);
        }
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::cerr << "lock_worker: see the comment at the top of its source\n";
    return 2;
}
