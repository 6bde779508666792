#include "bare_redis.hpp"

#include <redis/layout/keys.hpp>
#include <redis/scripts.hpp>

#include <csignal>
#include <ctime>
#include <random>
#include <stdexcept>
#include <thread>

#include <hiredis/hiredis.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

namespace {

namespace redis = holdfast::engines::redis;

[[nodiscard]] std::shared_ptr<redisContext> connect(std::uint16_t port) {
    return {redisConnect("127.0.0.1", port), [](redisContext* one) { redisFree(one); }};
}

[[nodiscard]] bool answers(std::uint16_t port) {
    const auto one = connect(port);
    if (!one || one->err != 0) {
        return false;
    }
    auto* const reply = static_cast<redisReply*>(redisCommand(one.get(), "PING"));
    const bool well = reply != nullptr && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return well;
}

}  // namespace

redis_process::redis_process()
    : port_{static_cast<std::uint16_t>(std::random_device{}() % 12000 + 12000)}, process_{::fork()} {
    if (process_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const auto port = std::to_string(port_);
        ::execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port.c_str(), "--dir",
                 directory_.path().c_str(), "--save", "", "--appendonly", "no", "--logfile", "log",
                 nullptr);
        ::_exit(127);
    }
    for (int attempt = 0; attempt < 500 && !answers(port_); ++attempt) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});  // not a guess: asked again
    }
    if (!answers(port_)) {
        throw std::runtime_error{"redis-server did not start (Debian: redis-server)"};
    }
}

redis_process::~redis_process() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
}

bare_redis::bare_redis(std::uint16_t port) : connection_{connect(port)} {
    for (const auto* one : {&redis::scripts::lock_acquire(), &redis::scripts::lock_release()}) {
        auto* const reply =
            redisCommand(connection_.get(), "SCRIPT LOAD %b", one->text.data(), one->text.size());
        freeReplyObject(reply);
    }
}

bare_redis::words bare_redis::acquire(const std::string& name) {
    return {"EVALSHA",
            redis::scripts::lock_acquire().sha,
            "3",
            name,
            redis::holds_key(name),
            redis::token_counter(),
            "00000000-0000-4000-8000-000000000000:1",
            "30000",
            "1",
            "1700000000000000",
            "1700000000000"};
}

bare_redis::words bare_redis::release(const std::string& name) {
    return {"EVALSHA",
            redis::scripts::lock_release().sha,
            "3",
            name,
            redis::holds_key(name),
            redis::lock_channel(name),
            "00000000-0000-4000-8000-000000000000:1",
            "publish",
            "0"};
}

void bare_redis::append(const words& command) {
    std::vector<const char*> text;
    std::vector<std::size_t> length;
    for (const auto& word : command) {
        text.push_back(word.data());
        length.push_back(word.size());
    }
    redisAppendCommandArgv(connection_.get(), static_cast<int>(command.size()), text.data(),
                           length.data());
}

void bare_redis::expect_first(std::int64_t wanted) {
    void* answer = nullptr;
    if (redisGetReply(connection_.get(), &answer) != REDIS_OK) {
        throw std::runtime_error{"the connection to redis-server was lost"};
    }
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply{
        static_cast<redisReply*>(answer), freeReplyObject};
    if (reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != wanted) {
        throw std::runtime_error{"a bare script answered something else than granted or released"};
    }
}

void bare_redis::pair(const std::string& name) {
    append(acquire(name));
    expect_first(1);
    append(release(name));
    expect_first(1);
}

void bare_redis::pipelined_pairs(std::size_t pairs, std::size_t depth) {
    std::vector<words> batch;
    for (std::size_t i = 0; i < depth / 2; ++i) {
        batch.push_back(acquire("bare" + std::to_string(i)));
        batch.push_back(release("bare" + std::to_string(i)));
    }
    for (std::size_t done = 0; done < pairs; done += depth / 2) {
        for (const auto& command : batch) {
            append(command);
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
            expect_first(1);
        }
    }
}

}  // namespace bench
