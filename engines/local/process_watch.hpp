#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <local/process.hpp>

namespace holdfast::engines::local {

/// Notices when a process ends that has something others wait for.
///
/// Where the kernel cannot tell (no `pidfd_open`, another pid namespace, too many processes) nothing
/// is noticed, and waiters learn from the ttl.
///
/// Thread safety: all functions may be called from any thread. Both functions given to the constructor
/// are called on a thread of its own, with no lock held; it is started when there is something to do.
class process_watch {
public:
    static constexpr std::size_t most_processes = 256;

    process_watch(const process_ref& self,
                  std::function<std::vector<process_ref>(const std::string&)> holders_of,
                  std::function<void(const std::string&)> holder_died);
    process_watch(const process_watch&) = delete;
    process_watch& operator=(const process_watch&) = delete;
    ~process_watch();

    /// Finds out who holds `name`, and follows them.
    void look_at(std::string name);
    /// `holders` replace those that were followed for `name` before.
    void follow(const std::string& name, std::vector<process_ref> holders);
    void forget(const std::string& name);
    /// No call is running afterwards, and none comes.
    void stop();

private:
    void change(const std::function<void()>& apply);
    void serve();
    void keep_watchable(std::vector<process_ref>& holders) const;
    void look_up_new_names();
    void open_and_close();
    void report(const process_ref& process);
    [[nodiscard]] bool wait_for_ends(std::vector<process_ref>& ended);

    const process_ref self_;
    const std::function<std::vector<process_ref>(const std::string&)> holders_of_;
    const std::function<void(const std::string&)> holder_died_;
    std::mutex mutex_;
    bool stopped_{};
    int wake_up_{-1};
    std::set<std::string> new_names_;
    std::set<std::string> being_looked_up_;
    std::map<std::string, std::vector<process_ref>> followed_;
    std::jthread thread_;

    /// Of the thread alone. -1: the kernel cannot watch it.
    std::map<process_ref, int> descriptors_;
};

}  // namespace holdfast::engines::local
