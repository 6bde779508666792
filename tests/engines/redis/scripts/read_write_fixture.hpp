#pragma once

#include "fixture.hpp"

namespace holdfast::engines::redis {

class read_write_scripts : public script_test {
protected:
    inline static const std::string name = "stock";
    inline static const std::string holds = holds_key(name);
    inline static const std::string channel = read_write_channel(name);
    inline static const std::string revocation = revocation_key(name);
    inline static const std::string key_prefix = "{stock}";

    [[nodiscard]] static std::string timeout(const std::string& owner, int hold = 1) {
        return reader_timeout(name, owner) + ":" + std::to_string(hold);
    }

    redis_reply read(const std::string& owner, const terms& asked = {}) {
        return run(
            scripts::read_acquire(), {name, holds, token_counter(), channel, timeout(owner)},
            {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since, "publish"});
    }
    redis_reply write(const std::string& owner, const terms& asked = {}) {
        return run(
            scripts::write_acquire(), {name, holds, token_counter(), timeout(owner)},
            {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since, key_prefix});
    }
    numbers release_read(const std::string& owner, std::int64_t linger = 0) {
        return release_any(owner, linger);
    }
    numbers release_write(const std::string& owner, std::int64_t linger = 0) {
        return release_any(owner, linger);
    }
    /// Whatever the owner has.
    numbers release_any(const std::string& owner, std::int64_t linger = 0) {
        return numbers_in(run(scripts::read_write_release(), {name, holds, channel, timeout(owner)},
                              {owner, "publish", text_of(linger), key_prefix}));
    }
    std::string renew_read(const std::string& owner, std::int64_t ttl = long_ttl) {
        return run(scripts::read_renew(), {name, timeout(owner), holds, revocation},
                   {owner, text_of(ttl)})
            .as_text();
    }
    std::string renew_write(const std::string& owner, std::int64_t ttl = long_ttl) {
        return run(scripts::lock_renew(), {name, holds, revocation},
                   {owner + ":write", owner, text_of(ttl)})
            .as_text();
    }

    /// The fields of the lock, sorted.
    std::string fields() {
        const auto all = redis({"HGETALL", name});
        words pairs;
        for (std::size_t index = 0; index + 1 < all.items.size(); index += 2) {
            pairs.push_back(all.items[index].text + "=" + all.items[index + 1].text);
        }
        std::sort(pairs.begin(), pairs.end());
        std::string text;
        for (const auto& pair : pairs) {
            text += (text.empty() ? "" : " ") + pair;
        }
        return text;
    }

    /// A reader as Redisson writes it, with a key for each of its holds.
    void java_reads(int count, std::int64_t ttl) {
        redis({"HSET", name, "mode", "read", java, std::to_string(count)});
        for (int hold = 1; hold <= count; ++hold) {
            redis({"SET", timeout(java, hold), "1", "PX", text_of(ttl)});
        }
        redis({"PEXPIRE", name, text_of(ttl)});
    }
};

}  // namespace holdfast::engines::redis
