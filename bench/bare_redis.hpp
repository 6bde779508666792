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

/// The same two scripts that a lock and an unlock run, with nothing around them: the least that a
/// client could do.
class bare_redis {
public:
    explicit bare_redis(std::uint16_t port);
    /// Locks and unlocks `name`, each with a round trip of its own.
    void pair(const std::string& name);
    /// `depth` commands are under way at a time, half of them locks, as redis-benchmark -P does.
    void pipelined_pairs(std::size_t pairs, std::size_t depth);

private:
    using words = std::vector<std::string>;
    [[nodiscard]] static words acquire(const std::string& name);
    [[nodiscard]] static words release(const std::string& name);
    void append(const words& command);
    void expect_first(std::int64_t wanted);

    std::shared_ptr<redisContext> connection_;
};

}  // namespace bench
