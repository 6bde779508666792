#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <compare>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <checker.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

/// In place of the header of the same name in `src`: everything that waits or wakes is a step that the
/// checker knows of.
namespace holdfast::threading {

[[nodiscard]] inline model::order order_of(std::memory_order how) noexcept {
    switch (how) {
        case std::memory_order_relaxed:
            return model::order::relaxed;
        case std::memory_order_consume:
        case std::memory_order_acquire:
            return model::order::acquire;
        case std::memory_order_release:
            return model::order::release;
        case std::memory_order_acq_rel:
            return model::order::acq_rel;
        case std::memory_order_seq_cst:
            break;
    }
    return model::order::seq_cst;
}

/// As large as its value, and nothing but zeros if that is: it may live in mapped memory.
template <class Value>
class atomic {
public:
    static constexpr bool is_always_lock_free = true;

    constexpr atomic() noexcept = default;
    constexpr atomic(Value first) noexcept : newest_{first} {}  // NOLINT: as in std::atomic
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;
    ~atomic() { model::forget(this); }

    [[nodiscard]] Value load(std::memory_order how = std::memory_order_seq_cst) const noexcept {
        return model::exploring() ? value_of(model::load(this, bits(), order_of(how))) : newest_;
    }
    operator Value() const noexcept { return load(); }  // NOLINT: as in std::atomic
    void store(Value next, std::memory_order how = std::memory_order_seq_cst) noexcept {
        if (model::exploring()) {
            model::store(this, bits(), bits_of(next), order_of(how));
        }
        newest_ = next;
    }
    Value operator=(Value next) noexcept {
        store(next);
        return next;
    }
    Value exchange(Value next, std::memory_order how = std::memory_order_seq_cst) noexcept {
        return modify(how, [&](Value) { return std::optional{next}; });
    }
    bool compare_exchange_strong(Value& expected, Value next,
                                 std::memory_order how = std::memory_order_seq_cst) noexcept {
        const Value wanted = expected;
        expected = modify(
            how, [&](Value before) { return before == wanted ? std::optional{next} : std::nullopt; });
        return expected == wanted;
    }
    bool compare_exchange_weak(Value& expected, Value next,
                               std::memory_order how = std::memory_order_seq_cst) noexcept {
        return compare_exchange_strong(expected, next, how);
    }
    Value fetch_add(Value more, std::memory_order how = std::memory_order_seq_cst) noexcept {
        return modify(how,
                      [&](Value before) { return std::optional{static_cast<Value>(before + more)}; });
    }
    Value fetch_sub(Value less, std::memory_order how = std::memory_order_seq_cst) noexcept {
        return modify(how,
                      [&](Value before) { return std::optional{static_cast<Value>(before - less)}; });
    }
    void wait(Value old, std::memory_order how = std::memory_order_seq_cst) const noexcept {
        while (load(how) == old) {
            model::block(this, model::patience::endless, [&] { return !(newest_ == old); });
        }
    }
    /// Nobody sleeps on while the value is another.
    void notify_all() noexcept {}

private:
    static_assert(sizeof(Value) <= sizeof(std::uint64_t));

    [[nodiscard]] static std::uint64_t bits_of(const Value& value) noexcept {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        return bits;
    }
    [[nodiscard]] static Value value_of(std::uint64_t bits) noexcept {
        Value value;
        std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
        return value;
    }
    [[nodiscard]] std::uint64_t bits() const noexcept { return bits_of(newest_); }

    template <class Change>
    Value modify(std::memory_order how, const Change& change) noexcept {
        if (!model::exploring()) {
            const Value before = newest_;
            newest_ = change(before).value_or(before);
            return before;
        }
        const Value before = value_of(model::modify(
            this, bits(), order_of(how), [&](std::uint64_t seen) -> std::optional<std::uint64_t> {
                const auto next = change(value_of(seen));
                return next ? std::optional{bits_of(*next)} : std::nullopt;
            }));
        if (const auto next = change(before)) {
            newest_ = *next;
        }
        return before;
    }

    Value newest_{};
};

class mutex {
public:
    mutex() = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex() { model::forget(this); }

    void lock() {
        if (model::exploring()) {
            model::block(
                this, model::patience::endless, [&] { return !locked_; }, [&] { take(); });
        }
    }
    bool try_lock() {
        if (!model::exploring()) {
            return true;
        }
        bool got = false;
        model::act(this, [&] {
            got = !locked_;
            if (got) {
                take();
            }
        });
        return got;
    }
    /// No step of its own: whoever waits for it has not moved in between.
    void unlock() {
        if (model::exploring()) {
            model::require(locked_ && holder_ == model::self(), "unlocked by somebody else");
            model::publish(this);
            locked_ = false;
        }
    }

private:
    void take() {
        model::learn(this);
        locked_ = true;
        holder_ = model::self();
    }

    bool locked_{};
    std::size_t holder_{};
};

/// Those who sleep somewhere, in order.
class sleepers {
public:
    /// False when its time was over, or it woke up without reason.
    bool sleep(const void* where, model::patience how_long, bool* woken) {
        const bool told = model::block(where, how_long, [woken] { return *woken; });
        std::erase(all_, woken);
        return told;
    }
    void add(bool* woken) { all_.push_back(woken); }
    void wake(std::size_t count) {
        for (; count > 0 && !all_.empty(); --count) {
            *all_.front() = true;
            all_.erase(all_.begin());
        }
    }

private:
    std::vector<bool*> all_;
};

class condition_variable {
public:
    condition_variable() = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;
    ~condition_variable() { model::forget(this); }

    void notify_one() noexcept { wake(1); }
    void notify_all() noexcept { wake(SIZE_MAX); }

    template <class Lock>
    void wait(Lock& lock) {
        static_cast<void>(sleep(lock));
    }
    template <class Lock, class Condition>
    void wait(Lock& lock, Condition met) {
        while (!met()) {
            wait(lock);
        }
    }
    template <class Lock, class Time>
    std::cv_status wait_until(Lock& lock, const Time&) {
        return sleep(lock) ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    template <class Lock, class Time, class Condition>
    bool wait_until(Lock& lock, const Time&, Condition met) {
        while (!met()) {
            if (!sleep(lock)) {
                return met();
            }
        }
        return true;
    }
    template <class Lock, class Duration, class Condition>
    bool wait_for(Lock& lock, const Duration& limit, Condition met) {
        return wait_until(lock, limit, met);
    }

private:
    template <class Lock>
    bool sleep(Lock& lock) {
        bool woken = false;
        model::act(this, [&] { sleepers_.add(&woken); });
        lock.unlock();
        const bool told = sleepers_.sleep(this, model::patience::limited, &woken);
        lock.lock();
        return told;
    }
    void wake(std::size_t count) noexcept {
        if (model::exploring()) {
            model::act(this, [&] { sleepers_.wake(count); });
        }
    }

    sleepers sleepers_;
};

class thread {
public:
    struct id {
        std::size_t number{SIZE_MAX};
        auto operator<=>(const id&) const = default;
    };

    thread() = default;
    template <class Work>
    requires(!std::same_as<std::remove_cvref_t<Work>, thread>) explicit thread(Work&& work)
        : number_{model::start(std::forward<Work>(work))} {}
    thread(thread&& other) noexcept : number_{std::exchange(other.number_, SIZE_MAX)} {}
    thread& operator=(thread&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~thread() = default;

    [[nodiscard]] id get_id() const noexcept { return {number_}; }
    [[nodiscard]] bool joinable() const noexcept { return number_ != SIZE_MAX; }
    void join() {
        if (model::exploring()) {
            model::join(number_);
        }
        number_ = SIZE_MAX;
    }
    void detach() noexcept { number_ = SIZE_MAX; }

private:
    std::size_t number_{SIZE_MAX};
};

/// Joins when it is destroyed.
class jthread : public thread {
public:
    using thread::thread;
    jthread(jthread&&) noexcept = default;
    jthread& operator=(jthread&&) noexcept = default;
    ~jthread() {
        if (joinable()) {
            join();
        }
    }
};

namespace this_thread {

[[nodiscard]] inline thread::id get_id() noexcept {
    return {model::self()};
}
inline void yield() noexcept {}

}  // namespace this_thread

enum class reach : std::uint8_t { process, host };

void sleep_while(const void* word, std::uint32_t seen, reach who = reach::process,
                 const ::timespec* limit = nullptr) noexcept;
void wake(const void* word, int count, reach who = reach::process) noexcept;

// Descriptors are numbers that only the model knows.
[[nodiscard]] int eventfd(unsigned first, int flags) noexcept;
int eventfd_write(int descriptor, ::eventfd_t more) noexcept;
int eventfd_read(int descriptor, ::eventfd_t* value) noexcept;
int close(int descriptor) noexcept;
int poll(::pollfd* watched, ::nfds_t count, int timeout) noexcept;
// Timers are those of the model's clock: see timer.hpp.
[[nodiscard]] int timerfd_create(int clock, int flags) noexcept;
int timerfd_settime(int descriptor, int flags, const ::itimerspec* when, ::itimerspec* before) noexcept;
/// Of a timer only.
::ssize_t read(int descriptor, void* buffer, std::size_t size) noexcept;

/// Of the model's thread, in this execution.
template <class Value, class Tag>
[[nodiscard]] Value& per_thread() noexcept {
    static std::size_t execution = 0;
    static std::map<std::size_t, Value> values;
    if (std::exchange(execution, model::execution()) != model::execution()) {
        values.clear();
    }
    return values[model::exploring() ? model::self() : SIZE_MAX];
}

[[nodiscard]] constexpr bool worth_spinning() noexcept {
    return false;
}

}  // namespace holdfast::threading
