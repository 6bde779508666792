// No library at all: the two least scripts of Redisson's layout on one connection. One task: two
// blocking calls. Several tasks, each with a lock of its own: all of their pairs in one pipeline. What
// this reaches is the limit for everybody. See ../README.md for the protocol.

#include <common/orders.hpp>

#include <hiredis/hiredis.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr const char* acquire_script = R"(
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], ARGV[1], '1')
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return nil
end
return redis.call('PTTL', KEYS[1]))";

constexpr const char* release_script = R"(
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return nil
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
return 1)";

class connection {
public:
    explicit connection(int port) : context_{redisConnect("127.0.0.1", port)} {
        if (context_ == nullptr || context_->err != 0) {
            throw std::runtime_error{"cannot connect"};
        }
        acquire_ = load(acquire_script);
        release_ = load(release_script);
    }

    void send_acquire(const std::string& name) {
        redisAppendCommand(context_.get(), "EVALSHA %s 1 %s %s 30000", acquire_.c_str(), name.c_str(),
                           owner);
    }
    void send_release(const std::string& name) {
        redisAppendCommand(context_.get(), "EVALSHA %s 2 %s redisson_lock__channel:{%s} %s",
                           release_.c_str(), name.c_str(), name.c_str(), owner);
    }
    void read_answer(int type) {
        void* reply = nullptr;
        if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
            throw std::runtime_error{context_->errstr};
        }
        const int got = static_cast<redisReply*>(reply)->type;
        freeReplyObject(reply);
        if (got != type) {
            throw std::runtime_error{"not the answer that a free lock gives"};
        }
    }

private:
    static constexpr const char* owner = "0f3c1fb4-3f0b-4f5e-9a52-6a4f7f1d2c11:1";

    [[nodiscard]] std::string load(const char* script) {
        auto* reply = static_cast<redisReply*>(redisCommand(context_.get(), "SCRIPT LOAD %s", script));
        std::string sha{reply->str, reply->len};
        freeReplyObject(reply);
        return sha;
    }

    struct close {
        void operator()(redisContext* context) const { redisFree(context); }
    };
    std::unique_ptr<redisContext, close> context_;
    std::string acquire_;
    std::string release_;
};

peers::all_times run(connection& server, const peers::order& next) {
    const auto tasks = next.number("tasks");
    if (next.text("mode") == "one" && tasks > 1) {
        throw std::runtime_error{"nobody waits here: mode=own"};
    }
    const auto begin = peers::now() + next.number("warm_ms") * 1'000'000;
    const auto end = begin + next.number("ms") * 1'000'000;
    peers::all_times times(static_cast<std::size_t>(tasks));
    for (std::int64_t taken = 0; next.number("pairs") == 0 || taken < next.number("pairs"); ++taken) {
        peers::pair_times pair{peers::now(), 0, 0, 0};
        if (pair.asked >= end) {
            break;
        }
        for (std::int64_t task = 0; task < tasks; ++task) {
            server.send_acquire(next.name(task));
        }
        for (std::int64_t task = 0; task < tasks; ++task) {
            server.read_answer(REDIS_REPLY_NIL);
        }
        pair.got = pair.released = peers::now();
        for (std::int64_t task = 0; task < tasks; ++task) {
            server.send_release(next.name(task));
        }
        for (std::int64_t task = 0; task < tasks; ++task) {
            server.read_answer(REDIS_REPLY_INTEGER);
        }
        pair.done = peers::now();
        if (begin <= pair.asked && pair.done <= end) {
            for (auto& pairs : times) {
                pairs.push_back(pair);
            }
        }
    }
    return times;
}

}  // namespace

int main(int, char** arguments) {
    connection server{std::atoi(arguments[1])};
    peers::answer_orders("bare -", [&](const peers::order& next) { return run(server, next); });
}
