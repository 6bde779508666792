#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <holdfast/engine.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// The store's engine, which many threads use, and its end: closed first, so that no thread enters any
/// more, and destroyed when the last one has left.
///
/// Thread safety: all functions, from any thread, but `end` only once.
class store_access {
public:
    explicit store_access(std::unique_ptr<engines::engine> engine) noexcept
        : engine_{std::move(engine)}, abilities_{engine_->offers()} {}
    store_access(const store_access&) = delete;
    store_access& operator=(const store_access&) = delete;
    ~store_access() = default;

    /// A thread inside the engine, which is not destroyed meanwhile. False when it is closed.
    class use {
    public:
        explicit use(store_access& of) noexcept : of_{of} {
            of_.users_.fetch_add(1);
            usable_ = !of_.closed_.load();
        }
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        ~use() {
            if (of_.users_.fetch_sub(1) == 1 && of_.closed_.load()) {
                of_.users_.notify_all();
            }
        }
        explicit operator bool() const noexcept { return usable_; }

    private:
        store_access& of_;
        bool usable_{};
    };

    // Only during a `use`.
    [[nodiscard]] engines::engine& engine() const noexcept { return *engine_; }
    /// What is null is not offered. That may be asked at any time.
    [[nodiscard]] const engines::abilities& offers() const noexcept { return abilities_; }

    /// How many requests were sent to the store.
    [[nodiscard]] std::uint64_t requests() const noexcept {
        return requests_.load(std::memory_order_relaxed);
    }
    void count_request() noexcept { requests_.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] bool closed() const noexcept { return closed_.load(); }
    /// False when it was closed before.
    [[nodiscard]] bool close() noexcept { return !closed_.exchange(true); }
    [[nodiscard]] bool in_use() const noexcept { return users_.load() != 0; }
    /// After `close`: returns when no thread is inside the engine any more.
    void wait_until_unused() const noexcept {
        for (auto users = users_.load(); users != 0; users = users_.load()) {
            users_.wait(users);
        }
    }
    void end() noexcept { engine_.reset(); }

private:
    std::unique_ptr<engines::engine> engine_;
    /// Of the engine; used like it.
    engines::abilities abilities_;
    std::atomic<std::uint64_t> requests_{0};
    threading::atomic<bool> closed_{false};
    threading::atomic<std::uint32_t> users_{0};
};

/// The answer to whoever asks a closed store.
[[nodiscard]] inline failure shut_down_already() {
    return {errc::shut_down, "shutdown was called, or the client was destroyed"};
}

}  // namespace holdfast::detail
