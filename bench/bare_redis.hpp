#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "measure.hpp"

struct redisContext;

namespace bench {

/// A server of the benchmark's own, on the loopback interface, that saves nothing.
class redis_process {
public:
    redis_process();
    redis_process(const redis_process&) = delete;
    redis_process& operator=(const redis_process&) = delete;
    ~redis_process();
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string address() const { return "redis://127.0.0.1:" + std::to_string(port_); }

private:
    temporary_directory directory_;
    std::uint16_t port_;
    pid_t process_;
};

/// The two scripts of a lock and an unlock, with nothing around them: the least that a client could do.
class bare_redis {
public:
    explicit bare_redis(std::uint16_t port);
    /// Locks and unlocks `name`, each with a round trip of its own.
    void pair(const std::string& name);
    /// `depth` commands are under way at a time, half of them locks.
    void pipelined_pairs(std::size_t pairs, std::size_t depth);
    /// Sends one command, without waiting for its answer.
    void begin(const std::vector<std::string>& command);
    /// Waits for the next answer, which must be "granted" or "released".
    void finish() { expect_first(1); }
    /// Takes `count` locks whose names redis-benchmark draws at random when it is told `-r count`.
    void take_all(std::size_t count);

    using words = std::vector<std::string>;
    [[nodiscard]] static words acquire(const std::string& name, int owner = 1);
    [[nodiscard]] static words release(const std::string& name, int owner = 1);

private:
    friend class bare_contender;
    void append(const words& command);
    [[nodiscard]] std::int64_t first_of_answer();
    void expect_first(std::int64_t wanted);

    std::shared_ptr<redisContext> connection_;
};

/// The least that a client could do to wait for a lock: listen, ask, sleep until there is a message,
/// ask again.
class bare_contender {
public:
    [[nodiscard]] static bare_contender plain(std::uint16_t port, const std::string& name, int owner);
    /// For a fair lock: the release of the other process gives us the lock, so after the message there
    /// is nothing to ask.
    [[nodiscard]] static bare_contender fair(std::uint16_t port, const std::string& name, int owner);
    void lock();
    void unlock();

private:
    enum class message : std::uint8_t { says_free, grants };
    bare_contender(std::uint16_t port, const std::string& channel, bare_redis::words acquire,
                   bare_redis::words release, message meaning);

    bare_redis commands_;
    std::shared_ptr<redisContext> messages_;
    bare_redis::words acquire_;
    bare_redis::words release_;
    message meaning_;
};

/// How long the server takes for one of these commands when redis-benchmark sends 16 at a time on each
/// of its connections. `-r` is the number of different values of `__rand_int__`.
[[nodiscard]] nanoseconds redis_benchmark(std::uint16_t port, const bare_redis::words& command,
                                          std::size_t count, std::uint64_t different_numbers);

}  // namespace bench
