#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <holdfast/ordered_nodes.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

/// The store: sessions and ordered nodes in this process. Its thread ends sessions that are not kept
/// alive, and tells of nodes that are gone.
struct tree {
    using clock = holdfast::clock;
    using queue_node = holdfast::engines::queue_node;
    using session_id = holdfast::engines::session_id;

    struct session {
        std::chrono::milliseconds ttl;
        clock::time_point ends;
    };
    struct watch {
        std::string name;
        std::function<void()> changed;
    };
    std::mutex mutex;
    std::condition_variable wake;
    std::map<session_id, session> sessions;
    std::map<std::string, std::vector<queue_node>> queues;
    std::uint64_t revision{};
    std::set<std::shared_ptr<watch>> watches;
    std::set<std::string> news;
    std::mutex telling;
    std::jthread thread{[this](const std::stop_token& stop) { work(stop); }};

    /// One request, in one step.
    template <class Work>
    auto perform(const Work& request) {
        const std::lock_guard lock{mutex};
        end_sessions();
        return request();
    }
    void remove_if(const std::string& name, const std::function<bool(const queue_node&)>& matches) {
        if (std::erase_if(queues[name], matches) > 0) {
            tell(name);
        }
    }
    void tell(const std::string& name) {
        news.insert(name);
        wake.notify_all();
    }
    void end_sessions() {
        std::erase_if(sessions, [](const auto& each) { return clock::now() >= each.second.ends; });
        for (const auto& [name, queue] : queues) {
            remove_if(name, [&](const auto& node) { return !sessions.contains(node.session); });
        }
    }
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::vector<std::shared_ptr<watch>> told;
            const std::lock_guard one_round{telling};
            {
                std::unique_lock lock{mutex};
                wake.wait_for(lock, std::chrono::milliseconds{5}, [&] { return !news.empty(); });
                end_sessions();
                std::copy_if(watches.begin(), watches.end(), std::back_inserter(told),
                             [&](const auto& each) { return news.contains(each->name); });
                news.clear();
            }
            for (const auto& each : told) {
                each->changed();
            }
        }
    }
};
