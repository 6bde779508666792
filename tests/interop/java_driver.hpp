#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "child_process.hpp"

namespace holdfast::interop {

/// What a Java call threw: the exception's class and its message.
class java_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A Java virtual machine with a Redisson client, told what to do line by line: see
/// `java/src/main/java/holdfast/interop/Verbs.java` for what it understands.
///
/// Thread safety: all functions may be called from any thread.
class java_driver {
public:
    /// `release` is "redisson-3" or "redisson-4"; the arguments are described in `Setup.java`.
    /// Returns when Redisson is connected.
    java_driver(const std::string& release, const std::vector<std::string>& arguments);
    java_driver(const java_driver&) = delete;
    java_driver& operator=(const java_driver&) = delete;
    ~java_driver();

    /// Has the Java thread of that name do it, and does not wait. The answer is what follows "ok"; a
    /// Java exception is a `java_error`, as is the end of the machine.
    [[nodiscard]] std::future<std::string> send(const std::string& thread, const std::string& command);
    /// The same, and waits. Throws `std::runtime_error` when there is no answer in time.
    std::string ask(const std::string& thread, const std::string& command);

    /// The first half of the holder ids of its threads.
    [[nodiscard]] const std::string& client_id() const noexcept { return client_id_; }
    /// SIGKILL: whatever it holds is never released.
    void kill() noexcept;

private:
    void read_answers();
    void take_answer(const std::string& line);
    void end_pending();

    child_process machine_;
    std::string client_id_;
    std::mutex guard_;
    std::int64_t last_number_{};
    bool ended_{};
    std::map<std::int64_t, std::promise<std::string>> pending_;
    std::thread reader_;
};

}  // namespace holdfast::interop
