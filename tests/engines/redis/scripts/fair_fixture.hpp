#pragma once

#include "fixture.hpp"

/// The scripts of fair locks.
namespace holdfast::engines::redis {

inline const std::string name = "stock";
inline const std::string holds = holds_key(name);
inline const std::string queue = fair_queue(name);
inline const std::string timeouts = fair_timeouts(name);
inline const std::string wishes = fair_wishes(name);
inline const std::string channel_base = lock_channel(name);

/// How long a waiter counts as alive; long enough for none of the tests to see it end.
inline constexpr std::int64_t wait = 20'000;

/// `gets_in` asks again when it is told; `wants_it` takes the lock as it is given.
enum class line : std::uint8_t { stays_out, gets_in, wants_it };

class fair_script_test : public script_test {
protected:
    redis_reply acquire(const std::string& owner, line how = line::gets_in, const terms& asked = {},
                        std::int64_t alive_for = wait) {
        return run(scripts::fair_acquire(),
                   {name, queue, timeouts, holds, token_counter(), wishes, channel_base},
                   {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since,
                    text_of(alive_for), how == line::stays_out ? "0" : "1", "0",
                    how == line::wants_it ? question_ : "0", "publish"});
    }
    numbers release(const std::string& owner, std::int64_t linger = 0, std::int64_t alive_for = wait) {
        return numbers_in(run(scripts::fair_release(),
                              {name, queue, timeouts, holds, channel_base, wishes, token_counter()},
                              {owner, "publish", text_of(linger), text_of(alive_for), text_of(0)}));
    }
    std::string in_line() { return text({"LRANGE", queue, "0", "-1"}); }
    /// Until when a waiter counts as alive, in ms from now.
    std::int64_t alive_for(const std::string& owner) {
        const auto score = text({"ZSCORE", timeouts, owner});
        return score.empty() ? -1 : std::stoll(score) - now();
    }
    void expect_alive_for(const std::string& owner, std::int64_t expected) {
        constexpr std::int64_t tolerance = 5000;
        EXPECT_GT(alive_for(owner), expected - tolerance) << owner;
        EXPECT_LE(alive_for(owner), expected + tolerance) << owner;
    }
    /// As Redisson does: in both structures, with a time by its own clock.
    void queue_up(const std::string& owner, std::int64_t until) {
        redis({"RPUSH", queue, owner});
        redis({"ZADD", timeouts, text_of(until), owner});
    }

    /// What a question is known by.
    std::string question_ = "4711";
};

}  // namespace holdfast::engines::redis
