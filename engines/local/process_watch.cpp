#include <algorithm>
#include <cerrno>
#include <common/quiet_thread.hpp>
#include <holdfast/error.hpp>
#include <local/process_watch.hpp>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

/// Close-on-exec by itself.
int open_process(std::int64_t pid) noexcept {
    return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U));
}

bool may_work_later(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

void close_if_open(int descriptor) noexcept {
    if (descriptor >= 0) {
        ::close(descriptor);
    }
}

}  // namespace

process_watch::process_watch(const process_ref& self,
                             std::function<std::vector<process_ref>(const std::string&)> holders_of,
                             std::function<void(const std::string&)> holder_died)
    : self_{self}, holders_of_{std::move(holders_of)}, holder_died_{std::move(holder_died)} {
    // Made now: later there may be no descriptor left.
    if (!wake_up_) {
        failure{errc::store_unavailable,
                "the end of processes cannot be watched: " + std::system_category().message(errno)}
            .raise("local:");
    }
}

process_watch::~process_watch() {
    stop();
}

void process_watch::stop() {
    std::jthread thread;
    {
        const std::lock_guard lock{mutex_};
        stopped_ = true;
        thread.swap(thread_);
        wake_up_.ring();
    }
    if (thread.joinable()) {
        thread.join();
    }
    for (const auto& [process, descriptor] : descriptors_) {
        close_if_open(descriptor);
    }
    descriptors_.clear();
}

void process_watch::look_at(std::string name) {
    change([&] { new_names_.insert(std::move(name)); });
}

void process_watch::follow(const std::string& name, std::vector<process_ref> holders) {
    keep_watchable(holders);
    {
        const std::lock_guard lock{mutex_};
        const auto known = followed_.find(name);
        const bool unchanged = known == followed_.end() ? holders.empty() : known->second == holders;
        if (unchanged) {
            return;
        }
    }
    change([&] { followed_[name] = std::move(holders); });
}

void process_watch::keep_watchable(std::vector<process_ref>& holders) const {
    std::erase_if(holders, [&](const process_ref& each) {
        return each.pid_namespace != self_.pid_namespace || each.pid_namespace == 0 ||
               each.pid == self_.pid;
    });
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
}

void process_watch::forget(const std::string& name) {
    {
        const std::lock_guard lock{mutex_};
        being_looked_up_.erase(name);
        if (!followed_.contains(name) && !new_names_.contains(name)) {
            return;
        }
    }
    change([&] {
        followed_.erase(name);
        new_names_.erase(name);
    });
}

void process_watch::change(const std::function<void()>& apply) {
    const std::lock_guard lock{mutex_};
    if (stopped_) {
        return;
    }
    apply();
    if (!thread_.joinable()) {
        try {
            thread_ = quiet_thread([this] { serve(); });
        } catch (const std::system_error&) {
            return;  // no thread to be had; the next change tries again
        }
    }
    wake_up_.ring();
}

void process_watch::serve() {
    std::vector<process_ref> ended;
    do {
        for (const process_ref& process : std::exchange(ended, {})) {
            report(process);
        }
        look_up_new_names();
        open_and_close();
    } while (wait_for_ends(ended));
}

void process_watch::look_up_new_names() {
    std::set<std::string> names;
    {
        const std::lock_guard lock{mutex_};
        being_looked_up_ = new_names_;
        names.swap(new_names_);
    }
    for (const std::string& name : names) {
        std::vector<process_ref> holders = holders_of_(name);
        keep_watchable(holders);
        const std::lock_guard lock{mutex_};
        // Forgotten meanwhile? Then nobody wants to know.
        if (being_looked_up_.erase(name) > 0 && !holders.empty()) {
            followed_[name] = std::move(holders);
        }
    }
}

void process_watch::open_and_close() {
    std::set<process_ref> wanted;
    {
        const std::lock_guard lock{mutex_};
        for (const auto& [name, processes] : followed_) {
            wanted.insert(processes.begin(), processes.end());
        }
    }
    std::erase_if(descriptors_, [&](const auto& entry) {
        if (wanted.contains(entry.first)) {
            return false;
        }
        close_if_open(entry.second);
        return true;
    });
    for (const process_ref& process : wanted) {
        const auto known = descriptors_.find(process);
        const bool fresh = known == descriptors_.end() && descriptors_.size() < most_processes;
        if (!fresh && (known == descriptors_.end() || known->second != not_now)) {
            continue;
        }
        const int opened = open_process(process.pid);
        descriptors_[process] = opened >= 0 ? opened : may_work_later(errno) ? not_now : never;
        // Looked at after it was opened: what was opened is either this process, or it is gone.
        if (liveness_of(process, self_) == liveness::dead) {
            close_if_open(std::exchange(descriptors_[process], never));
            report(process);
        }
    }
}

void process_watch::report(const process_ref& process) {
    std::vector<std::string> names;
    {
        const std::lock_guard lock{mutex_};
        for (auto& [name, processes] : followed_) {
            if (std::erase(processes, process) > 0) {
                names.push_back(name);
            }
        }
        std::erase_if(followed_, [](const auto& entry) { return entry.second.empty(); });
    }
    for (const std::string& name : names) {
        holder_died_(name);
    }
}

bool process_watch::wait_for_ends(std::vector<process_ref>& ended) {
    std::vector<::pollfd> polled{{wake_up_.descriptor(), POLLIN, 0}};
    std::vector<process_ref> processes;
    for (const auto& [process, descriptor] : descriptors_) {
        if (descriptor >= 0) {
            polled.push_back({descriptor, POLLIN, 0});
            processes.push_back(process);
        }
    }
    const bool try_again = std::any_of(descriptors_.begin(), descriptors_.end(),
                                       [](const auto& entry) { return entry.second == not_now; });
    const int timeout = try_again ? static_cast<int>(between_looks.count()) : -1;
    if (::poll(polled.data(), polled.size(), timeout) > 0) {
        for (std::size_t index = 0; index < processes.size(); ++index) {
            if (polled[index + 1].revents != 0) {
                ended.push_back(processes[index]);
            }
        }
        wake_up_.silence();
    }
    const std::lock_guard lock{mutex_};
    return !stopped_;
}

}  // namespace holdfast::engines::local
