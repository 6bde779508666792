#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace holdfast::cli::testing {

namespace {

constexpr std::chrono::milliseconds pause{5};

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

/// Signal settings of a login shell, whatever the test runner was started with.
void reset_signals(int ignored) noexcept {
    for (int number = 1; number < 32; ++number) {
        ::signal(number, number == ignored ? SIG_IGN : SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

void apply_environment(const std::map<std::string, std::string>& environment) {
    for (const char* inherited :
         {"HOLDFAST_STORE", "HOLDFAST_REQUIRE", "HOLDFAST_NAME", "HOLDFAST_TOKEN", "HOLDFAST_OWNER",
          "HOLDFAST_OWNERS", "HOLDFAST_DEADLINE", "HOLDFAST_REDIS_USER", "HOLDFAST_REDIS_PASSWORD"}) {
        ::unsetenv(inherited);
    }
    for (const auto& [name, value] : environment) {
        value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
}

[[noreturn]] void execute(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const auto& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    _exit(99);
}

[[nodiscard]] int as_shell(int status) noexcept {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

[[nodiscard]] std::optional<int> poll_status(pid_t id) {
    int status = 0;
    const auto ended = ::waitpid(id, &status, WNOHANG);
    return ended == id ? std::optional{as_shell(status)} : std::nullopt;
}

void end_now(pid_t id) noexcept {
    ::kill(id, SIGKILL);
    ::waitpid(id, nullptr, 0);
}

void redirect(const std::filesystem::path& file, int target) {
    const int opened = ::open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(opened, target);
    ::close(opened);
}

}  // namespace

void wait_until(const std::string& what, const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error{"waited in vain for " + what};
        }
        std::this_thread::sleep_for(pause);  // not a guess: the condition is asked again
    }
}

std::string read_file(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

std::string wait_for_line(const std::filesystem::path& path) {
    wait_until(path.string(), [&] { return read_file(path).find('\n') != std::string::npos; });
    const auto text = read_file(path);
    return text.substr(0, text.find('\n'));
}

bool exists(pid_t id) {
    return ::kill(id, 0) == 0 || errno == EPERM;
}

std::int64_t epoch_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

temporary_directory::temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "holdfast-cli-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        fail("mkdtemp");
    }
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

program::program(const std::vector<std::string>& command, const program_options& options) {
    std::array<int, 2> input{};
    if (::pipe2(input.data(), O_CLOEXEC) != 0) {
        fail("pipe");
    }
    id_ = ::fork();
    if (id_ < 0) {
        fail("fork");
    }
    if (id_ == 0) {
        reset_signals(options.ignored_signal);
        ::dup2(input[0], STDIN_FILENO);
        redirect(files_.path() / "out", STDOUT_FILENO);
        redirect(files_.path() / "err", STDERR_FILENO);
        apply_environment(options.environment);
        if (!options.working_directory.empty()) {
            std::filesystem::current_path(options.working_directory);
        }
        if (options.prepare) {
            options.prepare();
        }
        execute(command);
    }
    ::close(input[0]);
    input_ = input[1];
    if (options.input) {
        [[maybe_unused]] const auto length =
            ::write(input_, options.input->data(), options.input->size());
        close_input();
    }
}

program::~program() {
    close_input();
    if (!status_) {
        end_now(id_);
    }
}

void program::signal(int number) const {
    if (::kill(id_, number) != 0) {
        fail("kill");
    }
}

void program::close_input() {
    if (input_ >= 0) {
        ::close(input_);
        input_ = -1;
    }
}

void program::wait_for_output(const std::string& text) const {
    wait_until("output \"" + text + "\"", [&] { return output().find(text) != std::string::npos; });
}

void program::wait_for_errors(const std::string& text) const {
    wait_until("errors \"" + text + "\"", [&] { return errors().find(text) != std::string::npos; });
}

int program::wait() {
    wait_until("the program's end; it said: " + errors(), [&] {
        status_ = status_ ? status_ : poll_status(id_);
        return status_.has_value();
    });
    return *status_;
}

std::string program::last_error_line() const {
    auto text = errors();
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text.substr(text.rfind('\n') + 1);
}

terminal_program::terminal_program(const std::vector<std::string>& command,
                                   const std::map<std::string, std::string>& environment) {
    id_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (id_ < 0) {
        fail("forkpty");
    }
    if (id_ == 0) {
        reset_signals(0);
        apply_environment(environment);
        execute(command);
    }
    ::fcntl(terminal_, F_SETFD, FD_CLOEXEC);
}

terminal_program::~terminal_program() {
    if (!status_) {
        end_now(id_);
    }
    ::close(terminal_);
}

void terminal_program::type(const std::string& text) const {
    if (::write(terminal_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        fail("write to the terminal");
    }
}

void terminal_program::read_some() {
    pollfd source{terminal_, POLLIN, 0};
    if (::poll(&source, 1, 0) <= 0 || (source.revents & POLLIN) == 0) {
        return;
    }
    std::array<char, 4096> buffer{};
    const auto length = ::read(terminal_, buffer.data(), buffer.size());
    screen_.append(buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

void terminal_program::wait_for(const std::string& text) {
    std::size_t found = std::string::npos;
    try {
        wait_until("\"" + text + "\"", [&] {
            read_some();
            found = screen_.find(text, seen_);
            return found != std::string::npos;
        });
    } catch (const std::runtime_error& error) {
        throw std::runtime_error{std::string{error.what()} +
                                 " on the terminal, which shows: " + screen_};
    }
    seen_ = found + text.size();
}

int terminal_program::wait() {
    wait_until("the end of the program on the terminal", [&] {
        read_some();
        status_ = status_ ? status_ : poll_status(id_);
        return status_.has_value();
    });
    return *status_;
}

}  // namespace holdfast::cli::testing
