#include "bare_redis.hpp"
#include "hammer.hpp"
#include "to_and_fro.hpp"

#include <holdfast/holdfast.hpp>

#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace bench {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

[[nodiscard]] figure one_thread(const redis_process& server) {
    constexpr std::size_t operations = 200;
    holdfast::client client{server.address()};
    holdfast::mutex mutex{client, "bench"};
    bare_redis bare{server.port()};
    const auto result = compare(
        61, operations,
        [&] {
            for (std::size_t i = 0; i < operations; ++i) {
                mutex.lock();
                mutex.unlock();
            }
        },
        [&] {
            for (std::size_t i = 0; i < operations; ++i) {
                bare.pair("bare");
            }
        });
    return {
        "redis: lock + unlock, uncontended, against two blocking hiredis EVALSHA of the same scripts",
        microseconds(result.ours) + " : " + microseconds(result.theirs) + " = " +
            text(result.ratio(), 2) + " ×",
        "≤ 1.15 ×", result.ratio() <= 1.15};
}

/// The most that the server can do: redis-benchmark runs the two scripts, each by itself. It uses a new
/// name for every lock, and finds most of the locks that it releases.
[[nodiscard]] nanoseconds most_for_anybody(const redis_process& server) {
    constexpr std::uint64_t names = 999'999'999'999;
    constexpr std::size_t held = 20'000;
    constexpr std::size_t released = 5'000;
    bare_redis{server.port()}.take_all(held);
    return redis_benchmark(server.port(), bare_redis::acquire("new:__rand_int__"), released, names) +
           redis_benchmark(server.port(), bare_redis::release("held:__rand_int__"), released, held);
}

[[nodiscard]] std::vector<figure> many_threads(const redis_process& server) {
    constexpr int rounds = 21;
    constexpr std::size_t pairs = 5'000;
    holdfast::client client{server.address()};
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (std::size_t i = 0; i < hammer_threads; ++i) {
        mutexes.push_back(std::make_unique<holdfast::mutex>(client, "bench" + std::to_string(i)));
    }
    bare_redis bare{server.port()};
    std::vector<nanoseconds> ours;
    std::vector<nanoseconds> one_connection;
    std::vector<nanoseconds> anybody;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(
            hammer([&](std::size_t i) -> holdfast::mutex& { return *mutexes[i]; }, milliseconds{300}));
        one_connection.push_back(time_of([&] { bare.pipelined_pairs(pairs, 16); }) / double{pairs});
        anybody.push_back(most_for_anybody(server));
    }
    const auto against = [&](std::string subject, const std::vector<nanoseconds>& theirs) -> figure {
        // Within a round, because the machine changes from one to the next.
        std::vector<double> ratios;
        for (std::size_t round = 0; round < ours.size(); ++round) {
            ratios.push_back(theirs[round] / ours[round]);
        }
        const auto ratio = median(std::move(ratios));
        const auto rate = [](nanoseconds each) { return text(1e6 / each.count(), 1) + " k/s"; };
        return {std::move(subject),
                rate(median(ours)) + " : " + rate(median(theirs)) + " = " + text(ratio, 2) + " ×",
                "≥ 0.80 ×", ratio >= 0.80};
    };
    return {
        against("redis: 64 threads, distinct locks, pairs per second, against redis-benchmark -P 16",
                anybody),
        against("redis: … against the same scripts 16 at a time on one connection", one_connection)};
}

template <class Mutex>
[[nodiscard]] contender ours(const redis_process& server, const std::string& name) {
    const auto client = std::make_shared<holdfast::client>(server.address());
    const auto mutex = std::make_shared<Mutex>(*client, name);
    return {[client, mutex] { mutex->lock(); }, [mutex] { mutex->unlock(); }};
}

[[nodiscard]] std::vector<figure> two_processes(const redis_process& server) {
    const auto times = to_and_fro([&](int process) -> contenders {
        const auto bare =
            std::make_shared<bare_contender>(bare_contender::plain(server.port(), "bare", process));
        const auto given =
            std::make_shared<bare_contender>(bare_contender::fair(server.port(), "given", process));
        return {contender{[bare] { bare->lock(); }, [bare] { bare->unlock(); }},
                ours<holdfast::mutex>(server, "plain"), ours<holdfast::fair_mutex>(server, "fair"),
                contender{[given] { given->lock(); }, [given] { given->unlock(); }}};
    });
    const auto theirs = median(times[0]);
    const auto ratio = [&](std::size_t kind) { return median(times[kind]) / theirs; };
    const auto against = [&](std::string subject, std::size_t kind, double goal) -> figure {
        auto value = microseconds(median(times[kind])) + " : " + microseconds(theirs) + " = " +
                     text(ratio(kind), 2) + " ×";
        return {std::move(subject), std::move(value), goal > 0 ? "≤ " + text(goal, 2) + " ×" : "",
                goal == 0 || ratio(kind) <= goal};
    };
    return {
        against("redis: two processes, from unlock to the other's lock, against a bare hiredis loop", 1,
                1.15),
        against("redis: … with fair_mutex", 2, 0.80),
        against("redis: … a bare hiredis loop that is given the lock by the scripts of fair_mutex", 3,
                0)};
}

[[nodiscard]] figure one_lock(const redis_process& server) {
    constexpr int rounds = 5;
    holdfast::client with{server.address()};
    holdfast::client without{server.address(), {.handover_count = 0}};
    holdfast::mutex passed_on{with, "with"};
    holdfast::mutex given_back{without, "without"};
    std::vector<nanoseconds> handed;
    std::vector<nanoseconds> queued;
    for (int round = 0; round < rounds; ++round) {
        handed.push_back(
            hammer([&](std::size_t) -> holdfast::mutex& { return passed_on; }, milliseconds{400}));
        queued.push_back(
            hammer([&](std::size_t) -> holdfast::mutex& { return given_back; }, milliseconds{400}));
    }
    const auto ours = median(std::move(handed));
    const auto through_store = median(std::move(queued));
    return {"redis: 64 threads, one lock, per hold handed over, against every hold through the store",
            microseconds(ours) + " : " + microseconds(through_store) + " = " +
                text(through_store / ours, 1) + " × faster",
            "≥ 10 ×", through_store / ours >= 10};
}

[[nodiscard]] std::size_t resident_bytes() {
    std::ifstream statm{"/proc/self/statm"};
    std::size_t total{};
    std::size_t resident{};
    statm >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

[[nodiscard]] double processor_seconds() {
    ::rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto in_seconds = [](const ::timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
}

/// 100 000 leases of 30 s, each renewed every 10 s.
[[nodiscard]] std::vector<figure> many_leases(const redis_process& server) {
    constexpr std::size_t count = 100'000;
    constexpr seconds watched{20};
    holdfast::client client{server.address()};
    std::vector<holdfast::lease> held;
    held.reserve(count);
    const auto before = resident_bytes();
    for (std::size_t i = 0; i < count; ++i) {
        held.push_back(holdfast::mutex{client, "lease" + std::to_string(i)}.acquire());
    }
    const auto each = (resident_bytes() - before) / count;
    const auto used = processor_seconds();
    const auto took = time_of([&] {
        std::this_thread::sleep_for(watched);  // not a guess: the time over which it is measured
    });
    const auto share = (processor_seconds() - used) / (took.count() * 1e-9) * 100;
    std::size_t lost = 0;
    for (const auto& one : held) {
        lost += one ? 0 : 1;
    }
    return {
        {"redis: 100 000 leases held and renewed, processor time of one core",
         text(share, 1) + " %, " + std::to_string(lost) + " lost", "≤ 10 %", share <= 10 && lost == 0},
        {"redis: … memory of each, with its name and everything", std::to_string(each) + " bytes",
         "≤ 600 bytes besides the name", each <= 600 + 16}};
}

}  // namespace

std::vector<figure> redis() {
    const redis_process server;
    std::vector<figure> result{one_thread(server)};
    for (const auto& section : {two_processes, many_threads}) {
        for (auto& one : section(server)) {
            result.push_back(std::move(one));
        }
    }
    result.push_back(one_lock(server));
    for (auto& one : many_leases(server)) {
        result.push_back(std::move(one));
    }
    return result;
}

}  // namespace bench
