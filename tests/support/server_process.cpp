#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <support/server_process.hpp>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace holdfast::testing_support {

namespace {

constexpr std::chrono::milliseconds pause{2};

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

/// The child's side of a fork: nothing here may allocate or lock.
[[noreturn]] void become(char* const* arguments, const char* output, pid_t parent) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(98);
    }
    for (int number = 1; number < 32; ++number) {
        ::signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = ::open("/dev/null", O_RDONLY);
    const int out = ::open(output, O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvp(arguments[0], arguments);
    ::_exit(99);
}

/// Makes children. "Killed when the parent ends" means the thread that made the child: this one lives
/// as long as the program, whichever thread of the test asks.
class nursery {
public:
    [[nodiscard]] static nursery& instance() {
        static nursery only;
        return only;
    }

    [[nodiscard]] pid_t make(const std::vector<std::string>& command, const std::string& output) {
        std::vector<char*> arguments;
        for (const auto& word : command) {
            arguments.push_back(const_cast<char*>(word.c_str()));
        }
        arguments.push_back(nullptr);
        const std::lock_guard one_at_a_time{turn_};
        std::unique_lock lock{mutex_};
        arguments_ = arguments.data();
        output_ = output.c_str();
        changed_.notify_all();
        changed_.wait(lock, [this] { return arguments_ == nullptr; });
        if (made_ < 0) {
            errno = error_;
            fail("fork");
        }
        return made_;
    }

private:
    nursery() : thread_{[this](const std::stop_token& stop) { run(stop); }} {}

    void run(const std::stop_token& stop) {
        std::unique_lock lock{mutex_};
        while (changed_.wait(lock, stop, [this] { return arguments_ != nullptr; })) {
            const pid_t parent = ::getpid();
            made_ = ::fork();
            if (made_ == 0) {
                become(arguments_, output_, parent);
            }
            error_ = errno;
            arguments_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex turn_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    char* const* arguments_{};
    const char* output_{};
    pid_t made_{-1};
    int error_{};
    std::jthread thread_;
};

bool can_be_bound(std::uint16_t port) {
    const int endpoint = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (endpoint < 0) {
        fail("socket");
    }
    const int yes = 1;
    ::setsockopt(endpoint, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free = ::bind(endpoint, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 &&
                      ::listen(endpoint, 1) == 0;
    ::close(endpoint);
    return free;
}

}  // namespace

bool became_true(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(pause);  // not a guess: the condition is asked again
    }
    return true;
}

void wait_until(const std::string& what, const std::function<bool()>& condition,
                std::chrono::milliseconds limit) {
    if (!became_true(condition, limit)) {
        throw std::runtime_error{"waited in vain for " + what};
    }
}

std::string read_file(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    std::ofstream file{path, std::ios::trunc};
    file << text;
    if (!file.flush()) {
        throw std::runtime_error{"cannot write " + path.string()};
    }
}

temporary_directory::temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "holdfast-redis-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        fail("mkdtemp");
    }
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::uint16_t free_port() {
    constexpr int attempts = 1000;
    constexpr std::uint16_t bus_distance = 10000;
    // Up to 22000, so that the bus ports stay below 32768, too.
    static thread_local std::mt19937 random{std::random_device{}()};
    std::uniform_int_distribution<int> pick{11000, 22000};
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto port = static_cast<std::uint16_t>(pick(random));
        if (can_be_bound(port) && can_be_bound(static_cast<std::uint16_t>(port + bus_distance))) {
            return port;
        }
    }
    throw std::runtime_error{"no port is free"};
}

server_process::server_process(const std::vector<std::string>& command,
                               const std::filesystem::path& output)
    : pid_{nursery::instance().make(command, output.string())} {}

server_process::~server_process() {
    end_now();
}

bool server_process::running() {
    if (!ended_) {
        ended_ = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    }
    return !ended_;
}

void server_process::signal(int number) const {
    if (ended_ || ::kill(pid_, number) != 0) {
        throw std::runtime_error{"signal " + std::to_string(number) + " to a process that has ended"};
    }
}

void server_process::stop() const {
    signal(SIGSTOP);
    siginfo_t ignored{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &ignored, WSTOPPED | WEXITED | WNOWAIT) != 0) {
        fail("waitid");
    }
}

void server_process::wait_for_end(std::chrono::milliseconds limit) {
    wait_until(
        "the end of process " + std::to_string(pid_), [this] { return !running(); }, limit);
}

void server_process::end_now() noexcept {
    if (!ended_) {
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        ended_ = true;
    }
}

void run_tool(const std::vector<std::string>& command) {
    const temporary_directory files;
    const auto output = files.path() / "out";
    const pid_t tool = nursery::instance().make(command, output.string());
    int status = 0;
    while (::waitpid(tool, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw std::runtime_error{command.front() + " failed: " + read_file(output)};
    }
}

}  // namespace holdfast::testing_support
