#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Explores everything that a few threads can do to each other.
///
/// Threads are fibers of one thread. Each operation on an atomic, a mutex, a condition variable, a
/// futex or a bell is one step, and before each step any thread may go on instead. `explore` runs a
/// scenario again and again, each time with other choices, until there are none left (depth first, by
/// replay). Steps that do not touch the same object commute; of two such orders only one is tried
/// (sleep sets).
///
/// Memory is weaker than that of any processor we know, and weaker than store buffers (TSO): every
/// atomic keeps all values it has had. A load may return an old one, unless the thread has seen a newer
/// one or something that happened after it: `acquire` loads take over what the `release` store knew, a
/// read-modify-write always sees the newest, and `seq_cst` loads see what `seq_cst` operations on the
/// same atomic have seen. Not modelled: stores that overtake the thread's own earlier loads, fences.
///
/// A thread that sleeps is woken by others only. Deadlines never come, except as a surprise (see
/// `limits`), or where the scenario has a clock (`when_all_sleep`): when all threads sleep, a wake-up
/// was lost.
namespace holdfast::model {

struct limits {
    /// Of one execution. More means that a thread spins.
    std::size_t steps{5000};
    /// Including those that turn out not to differ from others.
    std::size_t executions{3'000'000};
    /// How often in one execution a sleeper wakes up without reason, or because its time is over.
    unsigned surprises{0};
    /// How often a thread that could go on is interrupted. With a limit not everything is explored.
    std::optional<unsigned> preemptions{};
};

struct result {
    /// Empty: every execution ended well.
    std::string problem;
    /// That differ in more than the order of steps that commute.
    std::size_t executions{};
};

/// Runs `scenario`, which makes the objects, spawns threads and returns, in every possible way.
[[nodiscard]] result explore(const std::function<void()>& scenario, const limits& how = {});

// For scenarios.
void spawn(std::function<void()> work);
/// Ends the exploration with this problem unless `condition` holds.
void require(bool condition, const char* promise);
/// One of 0 … `count` − 1; all are tried.
[[nodiscard]] std::size_t choose(std::size_t count);

/// Asked when all threads sleep: whether time goes on and wakes one of them. For this execution.
void when_all_sleep(std::function<bool()> time_goes_on);

/// While it lives, what the thread does counts as done before everything began.
class preparation {
public:
    preparation() noexcept;
    preparation(const preparation&) = delete;
    preparation& operator=(const preparation&) = delete;
    ~preparation();
};

/// A mistake (tests/planted/waiting_mistakes.py) that is switched on in the code under test while this
/// lives.
class plant {
public:
    explicit plant(const char* mistake) noexcept;
    plant(const plant&) = delete;
    plant& operator=(const plant&) = delete;
    ~plant();
};

// For the types that stand in for the standard library's.

enum class access : std::uint8_t { read, write };
enum class order : std::uint8_t { relaxed, acquire, release, acq_rel, seq_cst };

/// Whether an exploration is under way on this thread. Otherwise objects are plain.
[[nodiscard]] bool exploring() noexcept;
[[nodiscard]] std::size_t self() noexcept;

/// Values are kept as bits.
[[nodiscard]] std::uint64_t load(const void* object, std::uint64_t first, order how);
void store(const void* object, std::uint64_t first, std::uint64_t value, order how);
/// Replaces the newest value by what `change` makes of it, and returns it. Without a new value it is a
/// load, possibly of an old value.
std::uint64_t modify(const void* object, std::uint64_t first, order how,
                     const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change);
/// The system has read the newest value for this thread, which cannot see an older one afterwards.
void catch_up(const void* object);
/// The object is gone: another may have its address.
void forget(const void* object) noexcept;

/// Goes on when `ready`, and runs `then` in the same step. False: its patience ended before.
enum class patience : std::uint8_t { endless, limited };
bool block(const void* object, patience how_long, const std::function<bool()>& ready,
           const std::function<void()>& then = {});
/// A step that concerns `object`.
void act(const void* object, const std::function<void()>& what);
/// Makes what the other side of a mutex, bell or thread knew known here, and the reverse.
void publish(const void* object);
void learn(const void* object);
[[nodiscard]] std::size_t start(std::function<void()> work);
/// Goes on when that thread has ended.
void join(std::size_t thread);
/// Counts the executions.
[[nodiscard]] std::size_t execution() noexcept;

/// Asked by the code under test.
[[nodiscard]] bool planted(const char* mistake) noexcept;

}  // namespace holdfast::model
