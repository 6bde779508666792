#include "bare_redis.hpp"

#include <redis/layout/keys.hpp>
#include <redis/scripts.hpp>

#include <array>
#include <csignal>
#include <cstdio>
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

[[nodiscard]] std::string owner_text(int owner) {
    return "00000000-0000-4000-8000-000000000000:" + std::to_string(owner);
}

}  // namespace

redis_process::redis_process()
    : port_{static_cast<std::uint16_t>(std::random_device{}() % 12000 + 12000)}, process_{::fork()} {
    if (process_ == 0) {
        ::setsid();  // as a server has it: the system shares its time among sessions first
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
    for (const auto* one : {&redis::scripts::lock_acquire(), &redis::scripts::lock_release(),
                            &redis::scripts::fair_acquire(), &redis::scripts::fair_release()}) {
        auto* const reply =
            redisCommand(connection_.get(), "SCRIPT LOAD %b", one->text.data(), one->text.size());
        freeReplyObject(reply);
    }
}

bare_redis::words bare_redis::acquire(const std::string& name, int owner) {
    return {"EVALSHA",
            redis::scripts::lock_acquire().sha,
            "4",
            name,
            redis::holds_key(name),
            redis::token_counter(),
            redis::lock_turn(name),
            owner_text(owner),
            "30000",
            "1",
            "1700000000000000",
            "1700000000000"};
}

bare_redis::words bare_redis::release(const std::string& name, int owner) {
    return {"EVALSHA",
            redis::scripts::lock_release().sha,
            "6",
            name,
            redis::holds_key(name),
            redis::lock_channel(name),
            redis::lock_wishes(name),
            redis::token_counter(),
            redis::lock_turn(name),
            owner_text(owner),
            "publish",
            "1700000000000",
            "1700000000000000",
            redis::grant_channels(name),
            redis::listeners_channel(name),
            "00"};
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

std::int64_t bare_redis::first_of_answer() {
    void* answer = nullptr;
    if (redisGetReply(connection_.get(), &answer) != REDIS_OK) {
        throw std::runtime_error{"the connection to redis-server was lost"};
    }
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply{
        static_cast<redisReply*>(answer), freeReplyObject};
    return reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : -1;
}

void bare_redis::expect_first(std::int64_t wanted) {
    if (first_of_answer() != wanted) {
        throw std::runtime_error{"a bare script answered something else than granted or released"};
    }
}

void bare_redis::begin(const words& command) {
    append(command);
    for (int written = 0; written == 0;) {
        if (redisBufferWrite(connection_.get(), &written) != REDIS_OK) {
            throw std::runtime_error{"the connection to redis-server was lost"};
        }
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

void bare_redis::take_all(std::size_t count) {
    constexpr std::size_t depth = 100;
    for (std::size_t taken = 0; taken < count; taken += depth) {
        for (std::size_t i = 0; i < depth; ++i) {
            auto number = std::to_string(taken + i);
            number.insert(0, 12 - number.size(), '0');
            append(acquire("held:" + number));
        }
        for (std::size_t i = 0; i < depth; ++i) {
            expect_first(1);
        }
    }
}

bare_contender::bare_contender(std::uint16_t port, const std::string& channel,
                               bare_redis::words acquire, bare_redis::words release, message meaning)
    : commands_{port},
      messages_{connect(port)},
      acquire_{std::move(acquire)},
      release_{std::move(release)},
      meaning_{meaning} {
    freeReplyObject(redisCommand(messages_.get(), "SUBSCRIBE %s", channel.c_str()));
}

bare_contender bare_contender::plain(std::uint16_t port, const std::string& name, int owner) {
    return {port, redis::lock_channel(name), bare_redis::acquire(name, owner),
            bare_redis::release(name, owner), message::says_free};
}

bare_contender bare_contender::fair(std::uint16_t port, const std::string& name, int owner) {
    const auto asker = owner_text(owner);
    return {port,
            redis::fair_channel(name, asker),
            {"EVALSHA",
             redis::scripts::fair_acquire().sha,
             "7",
             name,
             redis::fair_queue(name),
             redis::fair_timeouts(name),
             redis::holds_key(name),
             redis::token_counter(),
             redis::fair_wishes(name),
             redis::lock_channel(name),
             asker,
             "30000",
             "1",
             "1700000000000000",
             "1700000000000",
             "5000",
             "1",
             "0",
             "1",
             "publish"},
            {"EVALSHA", redis::scripts::fair_release().sha, "7", name, redis::fair_queue(name),
             redis::fair_timeouts(name), redis::holds_key(name), redis::lock_channel(name),
             redis::fair_wishes(name), redis::token_counter(), asker, "publish", "0", "5000",
             "1700000000000000"},
            message::grants};
}

void bare_contender::lock() {
    for (;;) {
        commands_.append(acquire_);
        if (commands_.first_of_answer() == 1) {
            return;
        }
        void* heard = nullptr;
        if (redisGetReply(messages_.get(), &heard) != REDIS_OK) {
            throw std::runtime_error{"the connection to redis-server was lost"};
        }
        freeReplyObject(heard);
        if (meaning_ == message::grants) {
            return;
        }
    }
}

void bare_contender::unlock() {
    // The other is told before we have our answer if the server owes us something already.
    if (meaning_ == message::grants) {
        commands_.append({"PING"});
    }
    commands_.append(release_);
    if (meaning_ == message::grants) {
        static_cast<void>(commands_.first_of_answer());
    }
    commands_.expect_first(1);
}

nanoseconds redis_benchmark(std::uint16_t port, const bare_redis::words& command, std::size_t count,
                            std::uint64_t different_numbers) {
    std::string line = "redis-benchmark --csv -P 16 -p " + std::to_string(port) + " -n " +
                       std::to_string(count) + " -r " + std::to_string(different_numbers);
    for (const auto& word : command) {
        line += " '" + word + "'";
    }
    std::string said;
    const std::unique_ptr<FILE, int (*)(FILE*)> output{::popen(line.c_str(), "r"), ::pclose};
    std::array<char, 4096> buffer{};
    while (output && std::fgets(buffer.data(), buffer.size(), output.get()) != nullptr) {
        said = buffer.data();
    }
    // "what was run","commands per second",…
    const auto rate = said.find("\",\"");
    if (rate == std::string::npos) {
        throw std::runtime_error{"redis-benchmark did not run (Debian: redis-tools)"};
    }
    return nanoseconds{1e9 / std::stod(said.substr(rate + 3))};
}

}  // namespace bench
