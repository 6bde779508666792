#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <holdfast/holdfast.hpp>

/// Every public call that waits for the store, as a table.
namespace holdfast::testing {

/// What ends the waiting of a call: its stop token, or the time that it was given.
struct limits {
    std::stop_token stop{};
    std::chrono::milliseconds time{std::chrono::hours{1}};
};

struct blocking_call {
    std::string name;
    /// True when it got what it wanted.
    std::function<bool(client& store, const limits& until)> make;
};

[[nodiscard]] inline segmented_stock make_stock(client& store) {
    return segmented_stock{
        store,
        "stock",
        2,
        {[](const segment&) { return std::uint64_t{10}; }, [](const segment&, std::uint64_t) {}}};
}

/// Those that take a stop token.
[[nodiscard]] inline std::vector<blocking_call> stoppable_calls() {
    return {
        {"mutex::lock",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.lock_unless_stopped(l.stop);
         }},
        {"mutex::acquire",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.acquire_unless_stopped(l.stop).has_value();
         }},
        {"mutex::try_acquire_for",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.try_acquire_for(l.time, l.stop).has_value();
         }},
        {"recursive_mutex::lock",
         [](client& c, const limits& l) {
             return recursive_mutex{c, "x"}.lock_unless_stopped(l.stop);
         }},
        {"recursive_mutex::acquire",
         [](client& c, const limits& l) {
             return recursive_mutex{c, "x"}.acquire_unless_stopped(l.stop).has_value();
         }},
        {"recursive_mutex::try_acquire_for",
         [](client& c, const limits& l) {
             return recursive_mutex{c, "x"}.try_acquire_for(l.time, l.stop).has_value();
         }},
        {"shared_mutex::lock",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.lock_unless_stopped(l.stop);
         }},
        {"shared_mutex::lock_shared",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.lock_shared_unless_stopped(l.stop);
         }},
        {"shared_mutex::acquire",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.acquire_unless_stopped(l.stop).has_value();
         }},
        {"shared_mutex::acquire_shared",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.acquire_shared_unless_stopped(l.stop).has_value();
         }},
        {"shared_mutex::try_acquire_for",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.try_acquire_for(l.time, l.stop).has_value();
         }},
        {"shared_mutex::try_acquire_shared_for",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.try_acquire_shared_for(l.time, l.stop).has_value();
         }},
        {"mutex::try_acquire_until",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.try_acquire_until(clock::now() + l.time, l.stop).has_value();
         }},
        {"shared_mutex::try_acquire_shared_until",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}
                 .try_acquire_shared_until(clock::now() + l.time, l.stop)
                 .has_value();
         }},
        {"semaphore::try_acquire_until",
         [](client& c, const limits& l) {
             return semaphore{c, "x", 2}.try_acquire_until(clock::now() + l.time, l.stop).has_value();
         }},
        {"multi_lock::try_acquire_until",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}
                 .try_acquire_until(clock::now() + l.time, l.stop)
                 .has_value();
         }},
        {"semaphore::acquire",
         [](client& c, const limits& l) {
             return semaphore{c, "x", 2}.acquire_unless_stopped(l.stop).has_value();
         }},
        {"semaphore::try_acquire_for",
         [](client& c, const limits& l) {
             return semaphore{c, "x", 2}.try_acquire_for(l.time, l.stop).has_value();
         }},
        {"multi_lock::lock",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}.lock_unless_stopped(l.stop);
         }},
        {"multi_lock::acquire",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}.acquire_unless_stopped(l.stop).has_value();
         }},
        {"multi_lock::try_acquire_for",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}.try_acquire_for(l.time, l.stop).has_value();
         }},
        {"latch::wait",
         [](client& c, const limits& l) {
             return latch{c, "x"}.wait_unless_stopped(l.stop);
         }},
        {"latch::wait_for",
         [](client& c, const limits& l) {
             return latch{c, "x"}.wait_for(l.time, l.stop);
         }},
        {"segmented_stock::take",
         [](client& c, const limits& l) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take(1, l.stop));
         }},
        {"segmented_stock::take_for",
         [](client& c, const limits& l) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take_for(1, l.time, l.stop));
         }},
        {"segmented_stock::take, from several",
         [](client& c, const limits& l) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take(15, l.stop));
         }},
    };
}

/// Those that take a time to wait.
[[nodiscard]] inline std::vector<blocking_call> timed_calls() {
    return {
        {"mutex::try_lock_for",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.try_lock_for(l.time);
         }},
        {"mutex::try_lock_until",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.try_lock_until(std::chrono::steady_clock::now() + l.time);
         }},
        {"mutex::try_acquire_for",
         [](client& c, const limits& l) {
             return mutex{c, "x"}.try_acquire_for(l.time).has_value();
         }},
        {"recursive_mutex::try_lock_for",
         [](client& c, const limits& l) {
             return recursive_mutex{c, "x"}.try_lock_for(l.time);
         }},
        {"recursive_mutex::try_acquire_for",
         [](client& c, const limits& l) {
             return recursive_mutex{c, "x"}.try_acquire_for(l.time).has_value();
         }},
        {"shared_mutex::try_lock_for",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.try_lock_for(l.time);
         }},
        {"shared_mutex::try_lock_shared_for",
         [](client& c, const limits& l) {
             return shared_mutex{c, "x"}.try_lock_shared_for(l.time);
         }},
        {"semaphore::try_acquire_for",
         [](client& c, const limits& l) {
             return semaphore{c, "x", 2}.try_acquire_for(l.time).has_value();
         }},
        {"multi_lock::try_lock_for",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}.try_lock_for(l.time);
         }},
        {"multi_lock::try_acquire_for",
         [](client& c, const limits& l) {
             return multi_lock{c, {"x", "y"}}.try_acquire_for(l.time).has_value();
         }},
        {"latch::wait_for",
         [](client& c, const limits& l) {
             return latch{c, "x"}.wait_for(l.time);
         }},
        {"segmented_stock::take_for",
         [](client& c, const limits& l) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take_for(1, l.time));
         }},
        {"segmented_stock::take_for, from several",
         [](client& c, const limits& l) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take_for(15, l.time));
         }},
        {"client::shutdown", [](client& c, const limits& l) { return c.shutdown(l.time).empty(); }},
    };
}

/// Those that ask once, and end with `request_timeout` at the latest.
[[nodiscard]] inline std::vector<blocking_call> single_requests() {
    return {
        {"mutex::try_lock",
         [](client& c, const limits&) {
             return mutex{c, "x"}.try_lock();
         }},
        {"mutex::try_lock_for(0)",
         [](client& c, const limits&) {
             return mutex{c, "x"}.try_lock_for(std::chrono::seconds{0});
         }},
        {"mutex::try_acquire",
         [](client& c, const limits&) {
             return mutex{c, "x"}.try_acquire().has_value();
         }},
        {"recursive_mutex::try_lock",
         [](client& c, const limits&) {
             return recursive_mutex{c, "x"}.try_lock();
         }},
        {"recursive_mutex::try_acquire",
         [](client& c, const limits&) {
             return recursive_mutex{c, "x"}.try_acquire().has_value();
         }},
        {"shared_mutex::try_lock",
         [](client& c, const limits&) {
             return shared_mutex{c, "x"}.try_lock();
         }},
        {"shared_mutex::try_lock_shared",
         [](client& c, const limits&) {
             return shared_mutex{c, "x"}.try_lock_shared();
         }},
        {"semaphore::try_acquire",
         [](client& c, const limits&) {
             return semaphore{c, "x", 2}.try_acquire().has_value();
         }},
        {"multi_lock::try_lock",
         [](client& c, const limits&) {
             return multi_lock{c, {"x", "y"}}.try_lock();
         }},
        {"latch::try_set",
         [](client& c, const limits&) {
             return latch{c, "x"}.try_set(1);
         }},
        {"latch::count_down",
         [](client& c, const limits&) {
             latch{c, "x"}.count_down();
             return true;
         }},
        {"latch::count",
         [](client& c, const limits&) {
             return latch{c, "x"}.count() == 0;
         }},
        {"latch::wait_for(0)",
         [](client& c, const limits&) {
             return latch{c, "x"}.wait_for(std::chrono::seconds{0});
         }},
        {"segmented_stock::take_for(0)",
         [](client& c, const limits&) {
             auto stock = make_stock(c);
             return static_cast<bool>(stock.take_for(1, std::chrono::seconds{0}));
         }},
        {"client::inspect", [](client& c, const limits&) { return c.inspect("x").holders.empty(); }},
        {"client::list", [](client& c, const limits&) { return c.list().locks.empty(); }},
        {"client::examine",
         [](client& c, const limits&) {
             static_cast<void>(c.examine());
             return true;
         }},
        {"client::revoke",
         [](client& c, const limits&) {
             return c.revoke("x", owner_id::random_client(), {1}, "test");
         }},
    };
}

}  // namespace holdfast::testing
