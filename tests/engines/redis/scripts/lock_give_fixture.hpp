#pragma once

#include "fixture.hpp"

/// Plain locks that are given away, and turns of other libraries.
namespace holdfast::engines::redis {

[[nodiscard]] inline std::string client_of(const std::string& owner) {
    return owner.substr(0, owner.rfind(':'));
}

/// A release gives a plain lock to one who waits for it.
class lock_gifts : public script_test {
protected:
    inline static const std::string name = "stock";
    inline static const std::string holds = holds_key(name);
    inline static const std::string wishes = lock_wishes(name);
    /// How long a wish lasts; long enough for none of the tests to see it end.
    static constexpr std::int64_t lasts = 20'000;

    void SetUp() override {
        script_test::SetUp();
        // The next tokens are none of those at which everybody has a chance.
        redis({"SET", token_counter(), "1600"});
    }

    redis_reply acquire(const std::string& owner, const terms& asked = {}) {
        return run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
                   {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since});
    }
    redis_reply wish(const std::string& owner, const terms& asked = {},
                     const std::string& question = "4711", std::int64_t for_ms = lasts,
                     const std::string& counter = token_counter()) {
        return run(scripts::lock_acquire(), {name, holds, counter, lock_turn(name), wishes},
                   {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since, "0",
                    turn_, question, text_of(for_ms), "publish", lock_channel(name),
                    listeners_channel(name), grant_channels(name)});
    }
    numbers release(const std::string& owner, std::int64_t linger = 0,
                    const std::string& publish = "publish", std::int64_t floor = 0) {
        return numbers_in(run(scripts::lock_release(), lock_release_keys(name),
                              lock_release_arguments(owner, linger, publish, name, floor, message_)));
    }
    [[nodiscard]] static redis_client grants_of(const std::string& owner) {
        return listener(grant_channel(name, client_of(owner)));
    }
    /// It listens when it asks, and then its process ends.
    void wish_and_die(const std::string& owner) {
        {
            auto listening = grants_of(owner);
            ASSERT_TRUE(busy(wish(owner)));
        }
        wait_until("the end of a subscription", [&] {
            return text({"PUBSUB", "NUMSUB", grant_channel(name, client_of(owner))}).ends_with("\n0");
        });
    }
    /// What a wish says of the turns of others, and a release to all.
    std::string turn_ = "0";
    std::string message_ = "0";
    std::int64_t last_token() { return std::stoll(text({"GET", token_counter()})); }
    static std::string granted_text(const std::string& owner, std::int64_t first,
                                    std::int64_t count = 1) {
        return "granted 4711 " + text_of(first) + " " + text_of(count) + " " + owner + " " + name;
    }
    /// Whether the lock is free, and whoever waits was told so.
    void expect_free_for_all(redis_client& everybody) {
        EXPECT_EQ(message(everybody), "0");
        EXPECT_EQ(number({"EXISTS", name, holds}), 0);
    }
};

}  // namespace holdfast::engines::redis
