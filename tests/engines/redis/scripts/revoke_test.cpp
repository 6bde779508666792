#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

const std::string name = "stock";
const std::string holds = holds_key(name);
const std::string revocation = revocation_key(name);
const std::string channel_of_client = client_channel("a1a1a1a1-0000-4000-8000-00000000000a");

class revoke_script : public script_test {
protected:
    [[nodiscard]] static std::string record(const std::string& owner, const std::string& token) {
        return owner + " " + token + " 1700000000000 bob stuck";
    }
    [[nodiscard]] static std::string timeout(const std::string& owner, int hold = 1) {
        return reader_timeout(name, owner) + ":" + std::to_string(hold);
    }

    numbers revoke(const std::string& owner, const std::string& token) {
        return numbers_in(
            run(scripts::revoke(),
                {name, holds, revocation, lock_channel(name), read_write_channel(name),
                 semaphore_channel(name), semaphore_timeouts(name), fair_queue(name), timeout(owner)},
                {owner, token, record(owner, token), text_of(long_ttl), "publish", channel_of_client,
                 lock_channel(name), "{" + name + "}"}));
    }
    void expect_recorded(const std::string& owner, const std::string& token) {
        EXPECT_EQ(text({"GET", revocation}), record(owner, token));
        expect_long_lease(revocation);
    }

    std::string lock(const std::string& owner) {
        return text_of(
            token_of(run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
                         {owner, text_of(long_ttl), "1", "0", since})));
    }
    std::string read(const std::string& owner) {
        return text_of(
            token_of(run(scripts::read_acquire(),
                         {name, holds, token_counter(), read_write_channel(name), timeout(owner)},
                         {owner, text_of(long_ttl), "1", "0", since, "publish"})));
    }
    std::string write(const std::string& owner) {
        return text_of(
            token_of(run(scripts::write_acquire(), {name, holds, token_counter(), timeout(owner)},
                         {owner, text_of(long_ttl), "1", "0", since, "{" + name + "}"})));
    }
    std::string take_permits(const std::string& owner, const std::string& ids) {
        const auto count = std::to_string(ids.size() / 16);
        return text_of(token_of(
            run(scripts::permit_acquire(),
                {name, semaphore_timeouts(name), semaphore_channel(name), holds, token_counter()},
                {owner, text_of(long_ttl), count, "3", "1", "0", since, "publish", ids})));
    }
};

const numbers revoked{1};
const numbers no_such_hold{0};

TEST_F(revoke_script, a_plain_lock_is_taken_away_and_everybody_is_told) {
    auto waiter = listener(lock_channel(name));
    auto client = listener(channel_of_client);
    const auto token = lock(alice);
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
    EXPECT_EQ(message(waiter), "0");
    EXPECT_EQ(message(client), "1");
    expect_recorded(alice, token);
}

TEST_F(revoke_script, another_owner_or_token_touches_nothing) {
    const auto token = lock(alice);
    const auto before = contents();
    EXPECT_EQ(revoke(bob, token), no_such_hold);
    EXPECT_EQ(revoke(bob, "0"), no_such_hold);
    EXPECT_EQ(revoke(alice, "0"), no_such_hold);
    EXPECT_EQ(revoke(alice, token + "0"), no_such_hold);
    EXPECT_EQ(revoke(alice, "2"), no_such_hold);
    EXPECT_EQ(contents(), before);
}

TEST_F(revoke_script, a_free_name_has_nothing_to_revoke) {
    EXPECT_EQ(revoke(alice, "0"), no_such_hold);
    EXPECT_EQ(number({"DBSIZE"}), 0);
}

TEST_F(revoke_script, a_hold_that_ended_is_not_revoked) {
    const auto token = lock(alice);
    redis({"DEL", name});
    EXPECT_EQ(revoke(alice, token), no_such_hold);
    EXPECT_EQ(number({"EXISTS", revocation}), 0);
}

TEST_F(revoke_script, a_lingering_lock_can_be_revoked) {
    const auto token = lock(alice);
    run(scripts::lock_release(), lock_release_keys(name), lock_release_arguments(alice, 5000));
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(revoke_script, a_java_programs_lock_is_revoked_with_token_zero_only) {
    redis({"HSET", name, java, "2"});
    EXPECT_EQ(revoke(java, "1"), no_such_hold);
    EXPECT_EQ(revoke(java, "0"), revoked);
    EXPECT_EQ(number({"EXISTS", name}), 0);
    expect_recorded(java, "0");
}

TEST_F(revoke_script, the_first_in_the_line_of_a_fair_lock_is_told) {
    auto bobs = listener(fair_channel(name, bob));
    const auto token = lock(alice);
    redis({"RPUSH", fair_queue(name), bob, carol});
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(message(bobs), "0");
}

TEST_F(revoke_script, a_writer_is_revoked) {
    auto waiter = listener(read_write_channel(name));
    const auto token = write(alice);
    EXPECT_EQ(revoke(bob, "0"), no_such_hold);
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
    EXPECT_EQ(message(waiter), "1");
    expect_recorded(alice, token);
}

TEST_F(revoke_script, a_lingering_writer_can_be_revoked) {
    const auto token = write(alice);
    run(scripts::read_write_release(), {name, holds, read_write_channel(name), timeout(alice)},
        {alice, "publish", "5000", "{" + name + "}"});
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(revoke_script, one_reader_of_several_is_revoked) {
    const auto token = read(alice);
    read(bob);
    read(carol);
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", timeout(alice)}), 0);
    EXPECT_EQ(number({"HEXISTS", name, alice}), 0);
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
    EXPECT_EQ(number({"HLEN", name}), 3);
    EXPECT_EQ(number({"EXISTS", timeout(bob), timeout(carol)}), 2);
    expect_long_lease(name);
}

TEST_F(revoke_script, the_last_reader_is_revoked_and_those_who_wait_are_told) {
    auto waiter = listener(read_write_channel(name));
    const auto token = read(alice);
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds, timeout(alice)}), 0);
    EXPECT_EQ(message(waiter), "0");
}

TEST_F(revoke_script, a_lingering_reader_can_be_revoked) {
    const auto token = read(alice);
    run(scripts::read_write_release(), {name, holds, read_write_channel(name), timeout(alice)},
        {alice, "publish", "5000", "{" + name + "}"});
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(revoke_script, a_reader_whose_lease_ended_is_not_revoked) {
    const auto token = read(alice);
    read(bob);
    redis({"DEL", timeout(alice)});
    EXPECT_EQ(revoke(alice, token), no_such_hold);
}

TEST_F(revoke_script, all_holds_of_a_java_programs_reader_go) {
    redis({"HSET", name, "mode", "read", java, "2"});
    redis({"SET", timeout(java, 1), "1"});
    redis({"SET", timeout(java, 2), "1"});
    EXPECT_EQ(revoke(java, "0"), revoked);
    EXPECT_EQ(text({"KEYS", "*"}), revocation);
}

TEST_F(revoke_script, a_java_program_that_reads_and_writes_loses_both) {
    redis({"HSET", name, "mode", "write", java + ":write", "1", java, "1"});
    redis({"SET", timeout(java, 1), "1"});
    EXPECT_EQ(revoke(java, "0"), revoked);
    EXPECT_EQ(text({"KEYS", "*"}), revocation);
}

TEST_F(revoke_script, permits_are_revoked_together) {
    auto waiter = listener(semaphore_channel(name));
    const auto token = take_permits(alice, std::string(16, 'a') + std::string(16, 'b'));
    take_permits(bob, std::string(16, 'c'));
    EXPECT_EQ(revoke(alice, "0"), no_such_hold);
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(text({"GET", name}), "2");
    EXPECT_EQ(text({"ZRANGE", semaphore_timeouts(name), "0", "-1"}), std::string(16, 'c'));
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
    EXPECT_EQ(number({"HEXISTS", holds, bob}), 1);
    EXPECT_EQ(message(waiter), "2");
    expect_recorded(alice, token);
}

TEST_F(revoke_script, lingering_permits_can_be_revoked) {
    const std::string id(16, 'a');
    const auto token = take_permits(alice, id);
    run(scripts::permit_release(), {name, semaphore_timeouts(name), semaphore_channel(name), holds},
        {alice, "publish", "5000", id});
    EXPECT_EQ(revoke(alice, token), revoked);
    EXPECT_EQ(text({"GET", name}), "3");
}

TEST_F(revoke_script, permits_that_expired_are_not_revoked) {
    const std::string id(16, 'a');
    const auto token = take_permits(alice, id);
    redis({"ZADD", semaphore_timeouts(name), text_of(now() - 1), id});
    EXPECT_EQ(revoke(alice, token), no_such_hold);
    EXPECT_EQ(text({"GET", name}), "2");
}

TEST_F(revoke_script, a_java_programs_permit_is_known_by_its_bytes) {
    const std::string id{"\x9f\x0c\x1e\x52\x7d\x1b\x4c\x54\x9c\x0a\x5f\x6e\x7d\x8c\x9b\x0a", 16};
    redis({"SET", name, "2"});
    redis({"ZADD", semaphore_timeouts(name), text_of(now() + 60'000), id});
    EXPECT_EQ(revoke(alice, "0"), no_such_hold);
    EXPECT_EQ(revoke("9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:0", "0"), revoked);
    EXPECT_EQ(text({"GET", name}), "3");
    EXPECT_EQ(number({"EXISTS", semaphore_timeouts(name)}), 0);
}

TEST_F(revoke_script, an_owner_that_is_no_permits_bytes_has_no_permit) {
    redis({"SET", name, "2"});
    redis({"ZADD", semaphore_timeouts(name), text_of(now() + 60'000), std::string(16, 'a')});
    EXPECT_EQ(revoke("somebody", "0"), no_such_hold);
    EXPECT_EQ(revoke("gggggggg-gggg-gggg-gggg-gggggggggggg:0", "0"), no_such_hold);
}

TEST_F(revoke_script, other_kinds_under_the_name_are_left_alone) {
    for (const auto& command : std::vector<words>{{"SET", name, "x"}, {"RPUSH", name, "x"}}) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        EXPECT_EQ(revoke(alice, "0"), no_such_hold);
        EXPECT_EQ(contents(), before);
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
