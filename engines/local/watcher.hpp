#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <holdfast/engine.hpp>
#include <local/wake_map.hpp>

namespace holdfast::engines::local {

/// The watches of one engine, and the thread that sleeps for all of them.
///
/// Thread safety: all functions may be called from any thread, except the destructor. Hints run on the
/// watcher's thread or that of whoever calls `fire`, with no lock held.
class watcher {
public:
    /// `revoked` is called when somebody may have revoked something.
    watcher(std::shared_ptr<wake_map> map, std::function<void()> revoked);
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;
    /// No hint is running afterwards, and none comes. Subscriptions may live on.
    ~watcher();

    /// `ended` is called, with no lock held, when the last watch of that name goes.
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, std::function<void()> hint,
                                                      std::function<void(const std::string&)> ended);
    [[nodiscard]] bool is_watched(std::string_view name) const;
    /// Gives the hint to all watches of `name`.
    void fire(std::string_view name);

private:
    struct entry;
    class table;
    class handle;

    void serve();

    std::shared_ptr<wake_map> map_;
    std::shared_ptr<table> table_;
    std::function<void()> revoked_;
    std::uint32_t seen_revocations_;
    std::atomic<bool> stopping_{};
    std::jthread thread_;
};

}  // namespace holdfast::engines::local
