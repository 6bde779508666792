#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redis/layout/keys.hpp>
#include <redis/topology/router.hpp>
#include <support/server_process.hpp>

/// What the tests of routers have in common.
namespace holdfast::engines::redis {

using namespace std::chrono_literals;
using words = std::vector<std::string>;
using testing_support::became_true;

/// What came over a router's channels.
class ear {
public:
    [[nodiscard]] router::events events() {
        return {.heard =
                    [this](const std::string& channel, std::string_view message) {
                        const std::lock_guard lock{mutex_};
                        heard_.emplace_back(channel, message);
                    },
                .subscribed =
                    [this](const std::string& channel) {
                        const std::lock_guard lock{mutex_};
                        ++subscribed_[channel];
                    }};
    }
    [[nodiscard]] bool has_heard(const std::string& channel, const std::string& message) const {
        const std::lock_guard lock{mutex_};
        return std::find(heard_.begin(), heard_.end(), std::pair{channel, message}) != heard_.end();
    }
    [[nodiscard]] int times_subscribed(const std::string& channel) const {
        const std::lock_guard lock{mutex_};
        const auto found = subscribed_.find(channel);
        return found == subscribed_.end() ? 0 : found->second;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::pair<std::string, std::string>> heard_;
    std::map<std::string, int> subscribed_;
};

inline connection::encode encoded(std::vector<words> commands) {
    return [commands = std::move(commands)](std::string& out, const server_facts&) {
        for (const auto& each : commands) {
            append_command(out, std::vector<std::string_view>{each.begin(), each.end()});
        }
        return connection::expected{commands.size()};
    };
}

/// Sends commands and waits for what comes of it.
inline connection::result ask(router& through, std::uint16_t slot, std::vector<words> commands,
                              std::chrono::milliseconds limit = 2s, caller from = caller::may_block,
                              router::lane which = router::lane::common) {
    auto answered = std::make_shared<std::promise<connection::result>>();
    auto result = answered->get_future();
    through.send(slot, which, encoded(std::move(commands)), {clock::now() + limit, from},
                 [answered](connection::result answer) { answered->set_value(std::move(answer)); });
    return result.get();
}

/// The same for one command on a key.
inline connection::result ask(router& through, words command) {
    const auto slot = slot_of(command.at(1));
    return ask(through, slot, {std::move(command)});
}

/// Whether a command gets a proper answer.
inline bool works(router& through, const words& command) {
    const auto result = ask(through, command);
    return !result.error && !result.replies.front().is_error();
}

/// Counts up one counter after the other, on threads of its own, until it is destroyed.
class counting {
public:
    counting(router& through, std::vector<std::string> keys) : through_{through} {
        for (auto& key : keys) {
            counts_[key];
        }
        for (auto& key : keys) {
            threads_.emplace_back([this, key](const std::stop_token& stop) { run(key, stop); });
        }
    }
    counting(const counting&) = delete;
    counting& operator=(const counting&) = delete;
    ~counting() { stop(); }

    void stop() { threads_.clear(); }
    [[nodiscard]] int done(const std::string& key) const { return counts_.at(key).done; }
    /// Ended with the server's state uncertain.
    [[nodiscard]] int uncertain(const std::string& key) const { return counts_.at(key).uncertain; }
    [[nodiscard]] int refused(const std::string& key) const { return counts_.at(key).refused; }
    /// The last answer that should not have been given.
    [[nodiscard]] std::string surprise() const {
        const std::lock_guard lock{mutex_};
        return surprise_;
    }
    /// Until the counter has gone on from where it is now.
    [[nodiscard]] bool goes_on(const std::string& key, std::chrono::milliseconds limit) const {
        const int before = done(key);
        return became_true([&] { return done(key) > before + 1; }, limit);
    }

private:
    struct count {
        std::atomic<int> done{0};
        std::atomic<int> uncertain{0};
        std::atomic<int> refused{0};
    };

    void run(const std::string& key, const std::stop_token& stop) {
        count& mine = counts_.at(key);
        while (!stop.stop_requested()) {
            const auto result = ask(through_, {"INCR", key});
            if (!result.error && result.replies.front().type == value::kind::integer) {
                ++mine.done;
                continue;
            }
            if (result.error.code == errc::outcome_unknown) {
                ++mine.uncertain;
            } else if (result.error.code == errc::store_unavailable) {
                ++mine.refused;
            } else {
                const std::lock_guard lock{mutex_};
                surprise_ = result.error ? result.error.detail : result.replies.front().text;
            }
            std::this_thread::sleep_for(5ms);  // not a guess: a pause of those who are refused
        }
    }

    router& through_;
    std::map<std::string, count> counts_;
    mutable std::mutex mutex_;
    std::string surprise_;
    std::vector<std::jthread> threads_;
};

}  // namespace holdfast::engines::redis
