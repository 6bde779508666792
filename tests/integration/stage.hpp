#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <holdfast/detail/access.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/eventually.hpp>
#include <holdfast/testing/fault_engine.hpp>
#include <runtime/session.hpp>

/// What the integration tests have in common: a store, a client with a bad connection to it, and
/// another one with a good connection.
namespace holdfast::testing {

/// A moment that one thread waits for and another brings about.
class gate {
public:
    void open() {
        const std::lock_guard lock{guard_};
        open_ = true;
        changed_.notify_all();
    }
    /// False when nobody opened it in time.
    bool wait(std::chrono::milliseconds limit = patience) const {
        std::unique_lock lock{guard_};
        return changed_.wait_for(lock, limit, [this] { return open_; });
    }

private:
    mutable std::mutex guard_;
    mutable std::condition_variable changed_;
    bool open_{};
};

/// Remembers what it is told, and lets a test wait for it.
class recorder final : public observer {
public:
    void on_event(const event& what) noexcept override {
        const std::lock_guard lock{guard_};
        events_.push_back(what);
        changed_.notify_all();
    }

    /// False when it was not told of `count` events of this kind in time.
    [[nodiscard]] bool wait_for(event_kind kind, std::size_t count = 1) const {
        std::unique_lock lock{guard_};
        return changed_.wait_for(lock, patience, [&] { return count_of(kind) >= count; });
    }
    [[nodiscard]] std::size_t count(event_kind kind) const {
        const std::lock_guard lock{guard_};
        return count_of(kind);
    }
    [[nodiscard]] std::vector<event> events() const {
        const std::lock_guard lock{guard_};
        return events_;
    }
    [[nodiscard]] std::vector<event_kind> kinds() const {
        std::vector<event_kind> result;
        for (const auto& one : events()) {
            result.push_back(one.kind);
        }
        return result;
    }
    /// The latest of this kind; an empty one when there is none.
    [[nodiscard]] event last(event_kind kind) const {
        event found;
        for (const auto& one : events()) {
            if (one.kind == kind) {
                found = one;
            }
        }
        return found;
    }

private:
    [[nodiscard]] std::size_t count_of(event_kind kind) const {
        std::size_t result = 0;
        for (const auto& one : events_) {
            result += one.kind == kind ? 1U : 0U;
        }
        return result;
    }

    mutable std::mutex guard_;
    mutable std::condition_variable changed_;
    std::vector<event> events_;
};

class stopwatch {
public:
    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return clock::now() - since_; }

private:
    clock::time_point since_{clock::now()};
};

/// The error a call ends with; none when it ends well.
template <class Call>
[[nodiscard]] std::error_code error_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

/// The text of the error a call ends with; empty when it ends well.
template <class Call>
[[nodiscard]] std::string error_text_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.what();
    }
    return {};
}

/// Runs `work` on a thread of its own.
template <class Work>
[[nodiscard]] auto in_background(Work work) {
    return std::async(std::launch::async, std::move(work));
}

template <class Result>
[[nodiscard]] bool is_done(const std::future<Result>& work) {
    return work.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

template <class Result>
[[nodiscard]] bool gets_done(const std::future<Result>& work) {
    return work.wait_for(patience) == std::future_status::ready;
}

[[nodiscard]] inline std::string fresh_store() {
    return "memory:integration-" + owner_id::random_client().client_text();
}

class stage : public ::testing::Test {
protected:
    /// So that the clients need not wait for a store that does not answer when they are destroyed.
    void TearDown() override { plan_->heal(); }

    /// Over the bad connection, and observed, unless the options say otherwise.
    [[nodiscard]] client make_client(client_options options = {}) const {
        if (!options.events) {
            options.events = events_;
        }
        const auto identity = engines::make_identity(options.label);
        return client{std::make_unique<fault_engine>(engines::open(address_, identity), plan_),
                      identity, std::move(options)};
    }
    [[nodiscard]] std::vector<holder_info> holders(const std::string& name = "stock") {
        return other_.inspect(name).holders;
    }
    [[nodiscard]] bool becomes_free(const std::string& name = "stock") {
        return eventually([&] { return holders(name).empty(); });
    }
    /// Takes the lock away from whoever has it.
    void revoke(const std::string& name = "stock") {
        const auto holder = holders(name).at(0);
        ASSERT_TRUE(other_.revoke(name, holder.owner, holder.token, "for the test"));
    }
    [[nodiscard]] std::uint64_t requests() const {
        return detail::access::session_of(client_)->requests();
    }

    const std::string address_{fresh_store()};
    const std::shared_ptr<fault_plan> plan_{std::make_shared<fault_plan>()};
    const std::shared_ptr<recorder> events_{std::make_shared<recorder>()};
    client other_{address_};
    client client_{make_client()};
};

}  // namespace holdfast::testing
