#include "java_driver.hpp"

#include <exception>
#include <utility>

#include <holdfast/testing/eventually.hpp>

namespace holdfast::interop {

namespace {

/// A JVM and Redisson on a busy machine take their time.
constexpr std::chrono::seconds start_limit{60};

[[nodiscard]] std::vector<std::string> command_line(const std::string& release,
                                                    const std::vector<std::string>& arguments) {
    const auto directory = std::string{HOLDFAST_INTEROP_JAVA_DIRECTORY} + "/" + release;
    // It runs for seconds: compiling thoroughly and collecting in parallel would only cost.
    std::vector<std::string> command{HOLDFAST_INTEROP_JAVA,
                                     "-XX:TieredStopAtLevel=1",
                                     "-XX:+UseSerialGC",
                                     "-Xmx128m",
                                     "-cp",
                                     directory + "/driver.jar:" + directory + "/lib/*",
                                     "holdfast.interop.RedissonDriver"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

/// Cuts the first word off.
[[nodiscard]] std::string take_word(std::string& line) {
    const auto end = line.find(' ');
    auto word = line.substr(0, end);
    line.erase(0, end == std::string::npos ? end : end + 1);
    return word;
}

}  // namespace

java_driver::java_driver(const std::string& release, const std::vector<std::string>& arguments)
    : machine_{command_line(release, arguments)} {
    auto ready = machine_.read_line_within(start_limit);
    if (take_word(ready) != "0" || take_word(ready) != "ok") {
        throw std::runtime_error{"the Java driver began with: " + ready};
    }
    client_id_ = ready;
    reader_ = std::thread{[this] { read_answers(); }};
}

java_driver::~java_driver() {
    kill();
    reader_.join();
}

std::future<std::string> java_driver::send(const std::string& thread, const std::string& command) {
    const std::lock_guard lock{guard_};
    std::promise<std::string> answer;
    auto result = answer.get_future();
    const auto number = ++last_number_;
    const auto line = std::to_string(number) + " " + thread + " " + command;
    if (ended_ || !machine_.write_line(line)) {
        answer.set_exception(std::make_exception_ptr(java_error{"the Java machine has ended"}));
        return result;
    }
    pending_.emplace(number, std::move(answer));
    return result;
}

std::string java_driver::ask(const std::string& thread, const std::string& command) {
    auto answer = send(thread, command);
    if (answer.wait_for(testing::patience) != std::future_status::ready) {
        throw std::runtime_error{"no answer from Java to: " + command};
    }
    return answer.get();
}

void java_driver::kill() noexcept {
    machine_.kill();
}

void java_driver::read_answers() {
    for (auto line = machine_.read_line(); line; line = machine_.read_line()) {
        take_answer(*line);
    }
    end_pending();
}

void java_driver::take_answer(const std::string& line) {
    auto words = line;
    const auto number = std::stoll(take_word(words));
    const auto verdict = take_word(words);
    const std::lock_guard lock{guard_};
    auto waiting = pending_.extract(number);
    if (waiting.empty()) {
        return;
    }
    if (verdict == "ok") {
        waiting.mapped().set_value(words);
    } else {
        waiting.mapped().set_exception(std::make_exception_ptr(java_error{words}));
    }
}

void java_driver::end_pending() {
    const std::lock_guard lock{guard_};
    ended_ = true;
    for (auto& [number, answer] : pending_) {
        answer.set_exception(std::make_exception_ptr(java_error{"the Java machine has ended"}));
    }
    pending_.clear();
}

}  // namespace holdfast::interop
