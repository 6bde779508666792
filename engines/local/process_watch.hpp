#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <local/process.hpp>
#include <threading/bell.hpp>

namespace holdfast::engines::local {

/// Notices when a process ends that has something others wait for.
///
/// Where the kernel cannot tell (no `pidfd_open`, another pid namespace, too many processes) nothing
/// is noticed, and waiters learn from the ttl. Where it cannot tell for lack of something (descriptors,
/// memory) it is asked again, and meanwhile we look ourselves, every `between_looks`.
///
/// Thread safety: all functions may be called from any thread. Both functions given to the constructor
/// are called on a thread of its own, with no lock held; it is started when there is something to do.
class process_watch {
public:
    static constexpr std::size_t most_processes = 256;
    static constexpr std::chrono::milliseconds between_looks{100};

    /// Throws `std::system_error` with an `errc`.
    process_watch(const process_ref& self,
                  std::function<std::vector<process_ref>(const std::string&)> holders_of,
                  std::function<void(const std::string&)> holder_died);
    process_watch(const process_watch&) = delete;
    process_watch& operator=(const process_watch&) = delete;
    ~process_watch();

    /// Finds the holders of `name`, and follows their processes.
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
    threading::bell wake_up_;
    std::mutex mutex_;
    bool stopped_{};
    std::set<std::string> new_names_;
    std::set<std::string> being_looked_up_;
    std::map<std::string, std::vector<process_ref>> followed_;
    std::jthread thread_;

    /// Of the thread alone. Both say why there is no descriptor.
    static constexpr int never = -1;
    static constexpr int not_now = -2;
    std::map<process_ref, int> descriptors_;
};

}  // namespace holdfast::engines::local
