#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <system_error>

#include <holdfast/engine.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::engines {

std::unique_ptr<engine> open_memory(std::string_view rest, const client_identity& identity);
std::unique_ptr<engine> open_local(std::string_view rest, const client_identity& identity);

}  // namespace holdfast::engines

namespace holdfast::engines::test {

using namespace std::chrono_literals;

/// So long may something take that has to happen; nobody waits for it to pass.
inline constexpr auto patience = 10s;

/// A directory that goes with its contents.
class temporary_directory {
public:
    temporary_directory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error{errno, std::system_category(), "mkdtemp"};
        }
        path_ = pattern;
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() { std::filesystem::remove_all(path_); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

/// Counts something that happens on another thread.
class counter {
public:
    void add() {
        const std::lock_guard lock{mutex_};
        ++count_;
        changed_.notify_all();
    }
    [[nodiscard]] bool reaches(int count, std::chrono::milliseconds within = patience) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, within, [&] { return count_ >= count; });
    }
    [[nodiscard]] int value() {
        const std::lock_guard lock{mutex_};
        return count_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_{};
};

inline call soon(caller from = caller::may_block) {
    return {clock::now() + patience, from};
}

inline client_identity identity(std::string label = "test") {
    return {owner_id::random_client(), {"here", ::getpid(), "engine tests", std::move(label)}};
}

/// Makes the call and waits for its answer.
template <class Reply, class Start>
Reply answer_of(Start start) {
    auto promise = std::make_shared<std::promise<Reply>>();
    auto future = promise->get_future();
    start([promise](Reply reply) { promise->set_value(std::move(reply)); });
    return future.get();
}

inline acquire_reply acquire(engine& store, acquire_request request, call how = soon()) {
    return answer_of<acquire_reply>([&](auto done) { store.acquire(std::move(request), how, done); });
}
inline renew_reply renew(engine& store, renew_request request, call how = soon()) {
    return answer_of<std::vector<renew_reply>>(
               [&](auto done) { store.renew({std::move(request)}, how, done); })
        .front();
}
inline release_reply release(engine& store, release_request request, call how = soon()) {
    return answer_of<release_reply>([&](auto done) { store.release(std::move(request), how, done); });
}
inline revoke_reply revoke(engine& store, revoke_request request, call how = soon()) {
    return answer_of<revoke_reply>(
        [&](auto done) { store.offers().operators->revoke(std::move(request), how, done); });
}
inline lock_info inspect(engine& store, std::string name, call how = soon()) {
    return answer_of<inspect_reply>(
               [&](auto done) { store.offers().operators->inspect(std::move(name), how, done); })
        .info;
}
inline list_reply list(engine& store, list_request request, call how = soon()) {
    return answer_of<list_reply>(
        [&](auto done) { store.offers().operators->list(std::move(request), how, done); });
}
inline latch_reply latch(engine& store, latch_request request, call how = soon()) {
    return answer_of<latch_reply>(
        [&](auto done) { store.offers().latches->latch(std::move(request), how, done); });
}

inline owner_id owner_of(const client_identity& client, std::int64_t sequence = 1) {
    return {client.client.high, client.client.low, sequence};
}

inline acquire_request exclusive(std::string name, owner_id owner,
                                 std::chrono::milliseconds ttl = 1min) {
    return {.name = std::move(name), .mode = claim_mode::exclusive, .owner = owner, .ttl = ttl};
}
inline acquire_request shared(std::string name, owner_id owner, std::chrono::milliseconds ttl = 1min) {
    return {.name = std::move(name), .mode = claim_mode::shared, .owner = owner, .ttl = ttl};
}
inline acquire_request permits(std::string name, owner_id owner, std::uint32_t count,
                               std::uint32_t limit, std::chrono::milliseconds ttl = 1min) {
    return {.name = std::move(name),
            .mode = claim_mode::permit,
            .permits = count,
            .limit = limit,
            .owner = owner,
            .ttl = ttl};
}

inline constexpr auto granted = acquire_reply::outcome::granted;
inline constexpr auto busy = acquire_reply::outcome::busy;
inline constexpr auto failed = acquire_reply::outcome::failed;

/// The errc with which `open` refuses, and its text.
template <class Open>
failure refusal_of(Open open) {
    try {
        static_cast<void>(open());
    } catch (const std::system_error& error) {
        return {static_cast<errc>(error.code().value()), error.what()};
    }
    return {};
}

/// Another process, forked, that runs `work` and ends; killed if it has not when this goes. Fork only
/// while no engine is open here.
class other_process {
public:
    /// How the child talks: `say` one byte to the parent, `hear` one from it.
    class line {
    public:
        line(int in, int out) : in_{in}, out_{out} {}
        void say(char what) const { static_cast<void>(::write(out_, &what, 1) == 1); }
        /// 0 when the other has gone, or took too long.
        [[nodiscard]] char hear() const {
            ::pollfd polled{in_, POLLIN, 0};
            char what = 0;
            if (::poll(&polled, 1, std::chrono::milliseconds{patience}.count()) == 1 &&
                ::read(in_, &what, 1) == 1) {
                return what;
            }
            return 0;
        }

    private:
        int in_;
        int out_;
    };

    explicit other_process(const std::function<void(const line&)>& work) {
        int down[2];
        int up[2];
        if (::pipe(down) != 0 || ::pipe(up) != 0) {
            throw std::system_error{errno, std::system_category(), "pipe"};
        }
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(down[1]);
            ::close(up[0]);
            try {
                work(line{down[0], up[1]});
            } catch (const std::exception& error) {
                std::fprintf(stderr, "child: %s\n", error.what());
                ::_exit(1);
            }
            ::_exit(0);
        }
        ::close(down[0]);
        ::close(up[1]);
        in_ = up[0];
        out_ = down[1];
    }
    other_process(const other_process&) = delete;
    other_process& operator=(const other_process&) = delete;
    ~other_process() {
        kill();
        ::close(in_);
        ::close(out_);
    }

    [[nodiscard]] line talk() const { return {in_, out_}; }
    void signal(int number) const { ::kill(pid_, number); }
    /// As `kill -9`, and reaped.
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

private:
    pid_t pid_{-1};
    int in_{-1};
    int out_{-1};
};

/// What `work` finds in a child of this process; 0 if it crashes or takes too long.
inline char in_a_child(const std::function<char()>& work) {
    const other_process child{[&](const other_process::line& talk) { talk.say(work()); }};
    return child.talk().hear();
}

}  // namespace holdfast::engines::test
