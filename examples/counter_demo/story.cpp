#include "story.hpp"

#include "counter.hpp"
#include "fenced_register.hpp"
#include "process.hpp"

#include <holdfast/holdfast.hpp>

#include <sched.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace demo {

namespace {

using namespace std::chrono_literals;

constexpr int processes = 8;
constexpr int increments = 1000;
constexpr int expected = processes * increments;

/// Runs `work` in eight processes at once. False when one of them failed.
bool run_in_all(const std::function<int()>& work) {
    std::vector<child_process> children;
    children.reserve(processes);
    for (int i = 0; i < processes; ++i) {
        children.emplace_back(work);
    }
    bool good = true;
    for (auto& child : children) {
        good = child.wait() == 0 && good;
    }
    return good;
}

[[nodiscard]] std::string seconds_since(std::chrono::steady_clock::time_point start) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2)
         << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s";
    return text.str();
}

/// The second process of part three: waits for the lock and uses it.
int take_over(const std::string& store, const fenced_register& file, const channel& out) {
    holdfast::client client{store, {.label = "successor"}};
    holdfast::mutex mutex{client, "ledger", {.ttl = 1s}};
    auto lease = mutex.acquire();
    const bool written = file.write(lease.token(), "written by the successor");
    out.send(std::to_string(lease.token().value));
    return written && lease.release() == holdfast::release_outcome::released ? 0 : 1;
}

/// The first process: takes the lock, is stopped, and acts when it is let go on.
int be_stopped(const std::string& store, const fenced_register& file, const channel& in,
               const channel& out) {
    holdfast::client client{store, {.label = "holder"}};
    holdfast::mutex mutex{client, "ledger", {.ttl = 1s}};
    auto lease = mutex.acquire();
    if (!file.write(lease.token(), "written by the holder")) {
        return 1;
    }
    out.send(std::to_string(lease.token().value));
    static_cast<void>(in.receive());
    // Stopped somewhere here for longer than the lease lasts, then continued.
    const bool knows = lease.lost().stop_requested();
    const bool accepted = file.write(lease.token(), "written by the holder, too late");
    const auto outcome = lease.release();
    out.send(std::string{knows ? "knows" : "does not know"} + "/" +
             (accepted ? "accepted" : "refused") + "/" + std::string{to_string(outcome)});
    return 0;
}

}  // namespace

bool without_a_lock() {
    const temporary_directory directory;
    const auto file = directory.path() / "counter";
    std::cout << "1. " << processes << " processes add 1 to a number in a file, " << increments
              << " times each, without a lock.\n";
    const bool ran = run_in_all([&] {
        const counter number{file};
        for (int i = 0; i < increments; ++i) {
            const auto value = number.read();
            sched_yield();  // what a real program does between reading and writing
            number.write(value + 1);
        }
        return 0;
    });
    const auto value = counter{file}.read();
    std::cout << "   expected " << expected << ", got " << value << ": " << expected - value
              << " updates were lost.\n\n";
    return ran && value < expected;
}

bool with_a_lock() {
    const temporary_directory directory;
    const auto file = directory.path() / "counter";
    const auto store = "local:" + (directory.path() / "store").string();
    std::cout << "2. The same, with  std::scoped_lock guard{mutex};  around it (embedded store, this "
                 "host).\n";
    const auto start = std::chrono::steady_clock::now();
    const bool ran = run_in_all([&] {
        holdfast::client client{store};
        holdfast::mutex mutex{client, "counter"};
        const counter number{file};
        for (int i = 0; i < increments; ++i) {
            const std::scoped_lock guard{mutex};
            const auto value = number.read();
            sched_yield();
            number.write(value + 1);
        }
        return 0;
    });
    const auto value = counter{file}.read();
    std::cout << "   expected " << expected << ", got " << value << ", in " << seconds_since(start)
              << ".\n\n";
    return ran && value == expected;
}

bool a_holder_that_is_stopped() {
    const temporary_directory directory;
    const auto store = "local:" + (directory.path() / "store").string();
    const fenced_register file{directory.path() / "ledger"};
    const channel to_holder;
    const channel from_holder;
    const channel from_successor;
    std::cout << "3. A process takes the lock for 1 s at a time and is then stopped (SIGSTOP): the "
                 "pause that no\n"
                 "   lock can prevent. Every grant comes with a token, a number larger than all "
                 "before; the file\n"
                 "   refuses writes with a smaller token than it has seen.\n";
    child_process holder{[&] { return be_stopped(store, file, to_holder, from_holder); }};
    const auto old_token = std::stoull(from_holder.receive());
    std::cout << "   holder    pid " << holder.pid() << " has it, token " << old_token
              << ", and writes.\n";
    holder.signal(SIGSTOP);
    holder.wait_until_stopped();
    const auto stopped = std::chrono::steady_clock::now();
    std::cout << "   holder    is stopped, cannot renew, and its lease runs out …\n" << std::flush;
    child_process successor{[&] { return take_over(store, file, from_successor); }};
    const auto new_token = std::stoull(from_successor.receive());
    std::cout << "   successor pid " << successor.pid() << " got it after " << seconds_since(stopped)
              << ", token " << new_token << ", and writes.\n";
    const bool took_over = successor.wait() == 0;
    to_holder.send("go on");
    holder.signal(SIGCONT);
    const auto report = from_holder.receive();
    const bool ended = holder.wait() == 0;
    std::cout << "   holder    is continued: it " << report.substr(0, report.find('/'))
              << " that the lease is lost; its late write with token " << old_token
              << " is\n             "
              << report.substr(report.find('/') + 1, report.rfind('/') - report.find('/') - 1)
              << ", its release says \"" << report.substr(report.rfind('/') + 1) << "\".\n"
              << "   The file says: \"" << file.read() << "\".\n\n";
    return took_over && ended && new_token > old_token && report == "knows/refused/already lost" &&
           file.read() == "written by the successor";
}

}  // namespace demo
