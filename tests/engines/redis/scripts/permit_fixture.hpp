#pragma once

#include "fixture.hpp"

namespace holdfast::engines::redis {

class permit_scripts : public script_test {
protected:
    inline static const std::string name = "slots";
    inline static const std::string holds = holds_key(name);
    inline static const std::string timeouts = semaphore_timeouts(name);
    inline static const std::string channel = semaphore_channel(name);
    inline static const std::string revocation = revocation_key(name);
    /// Redisson's number for permits without an end.
    inline static const std::string never = "922337203685477";

    struct permit_terms {
        std::int64_t ttl{long_ttl};
        std::uint32_t permits{1};
        std::uint32_t limit{3};
        std::int64_t count{1};
    };

    /// The ids of an owner's permits: any bytes may occur in them.
    [[nodiscard]] static std::string ids(const std::string& owner, std::uint32_t count = 1) {
        std::string all;
        for (std::uint32_t index = 0; index < count; ++index) {
            all += std::string(12, owner[0]) + std::string{'\0', '\n', ' '} +
                   static_cast<char>(0xF0U + index);
        }
        return all;
    }
    [[nodiscard]] static std::string java_id(char digit) { return std::string(16, digit); }

    redis_reply acquire(const std::string& owner, const permit_terms& asked) {
        return run(scripts::permit_acquire(), {name, timeouts, channel, holds, token_counter()},
                   {owner, text_of(asked.ttl), text_of(asked.permits), text_of(asked.limit),
                    text_of(asked.count), "0", since, "publish", ids(owner, asked.permits)});
    }
    redis_reply acquire(const std::string& owner) { return acquire(owner, permit_terms{}); }
    numbers release(const std::string& owner, std::uint32_t permits = 1, std::int64_t linger = 0) {
        return numbers_in(run(scripts::permit_release(), {name, timeouts, channel, holds},
                              {owner, "publish", text_of(linger), ids(owner, permits)}));
    }
    std::string renew(const std::string& owner, std::int64_t ttl = long_ttl,
                      std::uint32_t permits = 1) {
        return run(scripts::permit_renew(), {timeouts, holds, revocation},
                   {owner, text_of(ttl), ids(owner, permits)})
            .as_text();
    }

    std::string free_permits() { return text({"GET", name}); }
    std::string members() { return text({"ZCARD", timeouts}); }
    /// When a permit ends, in ms from now.
    std::int64_t ends_in(const std::string& id) {
        const auto score = text({"ZSCORE", timeouts, id});
        return score.empty() ? -1 : std::stoll(score) - now();
    }
    void expect_ends_in(const std::string& id, std::int64_t from, std::int64_t to) {
        EXPECT_GT(ends_in(id), from);
        EXPECT_LE(ends_in(id), to);
    }
    /// Makes a permit's lease end now.
    void expire(const std::string& id) { redis({"ZADD", timeouts, "XX", text_of(now() - 1), id}); }
};

}  // namespace holdfast::engines::redis
