#include "arena.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace stress {

namespace {

[[nodiscard]] std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

void raise_to(std::atomic<std::int64_t>& target, std::int64_t value) {
    auto seen = target.load();
    while (seen < value && !target.compare_exchange_weak(seen, value)) {
    }
}

}  // namespace

void arena::step(std::uint64_t token) {
    const auto value = number + 1;
    number = value;
    written[static_cast<std::size_t>(value)].fetch_add(1);
    const auto previous = largest_token.exchange(static_cast<std::int64_t>(token));
    if (previous >= static_cast<std::int64_t>(token)) {
        tokens_out_of_order.fetch_add(1);
    }
    const auto at = now();
    const auto before = last_progress.exchange(at);
    if (before != 0) {
        raise_to(longest_stall, at - before);
    }
    steps.fetch_add(1);
}

shared_arena::shared_arena() {
    void* memory =
        ::mmap(nullptr, sizeof(arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::system_error{errno, std::generic_category(), "mmap"};
    }
    memory_ = new (memory) arena{};
}

shared_arena::~shared_arena() {
    ::munmap(memory_, sizeof(arena));
}

temporary_directory::temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "holdfast-stress-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
        throw std::system_error{errno, std::generic_category(), "mkdtemp"};
    }
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

pid_t start_process(const std::function<void()>& work) {
    const auto child = fork();
    if (child != 0) {
        return child;
    }
    int code = 0;
    try {
        work();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "process %d: %s\n", static_cast<int>(getpid()), error.what());
        code = 1;
    }
    _exit(code);
}

int wait_for(pid_t process) {
    int status = 0;
    if (::waitpid(process, &status, 0) != process) {
        return -1000;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace stress
