#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

const std::string name = "stock";
const std::string holds = holds_key(name);

class inspect_script : public script_test {
protected:
    /// The elements of the answer, by what they are.
    struct view {
        std::string kind;
        std::int64_t remaining{};
        std::string fields;
        std::string holds;
        std::string revocation;
        std::string value;
        std::string permits;
        std::int64_t waiters{};
        std::int64_t time{};
        std::vector<redis_reply> readers;
        std::int64_t latch{};
    };

    redis_reply run_inspect() {
        return run(scripts::inspect(),
                   {name, holds, revocation_key(name), semaphore_timeouts(name), fair_queue(name),
                    latch_mark(name)},
                   {"{" + name + "}"});
    }
    void expect_wrong_kind() {
        const auto before = contents();
        const auto reply = run_inspect();
        EXPECT_FALSE(reply.is_error()) << "others must not see errors: " << reply.as_text();
        ASSERT_EQ(reply.items.size(), 2U) << reply.as_text();
        EXPECT_EQ(reply.items[0].text, "foreign");
        EXPECT_TRUE(reply.items[1].text.starts_with("WRONGKIND ")) << reply.as_text();
        EXPECT_EQ(contents(), before);
    }

    view inspect() {
        const auto reply = run_inspect();
        EXPECT_EQ(reply.items.size(), 11U) << reply.as_text();
        if (reply.items.size() != 11) {
            return {};
        }
        const auto& items = reply.items;
        return {items[0].text,    items[1].integer, items[2].as_text(), items[3].as_text(),
                items[4].text,    items[5].text,    items[6].as_text(), items[7].integer,
                items[8].integer, items[9].items,   items[10].integer};
    }
};

TEST_F(inspect_script, a_free_name_is_empty) {
    const auto seen = inspect();
    EXPECT_EQ(seen.kind, "none");
    EXPECT_EQ(seen.remaining, -2);
    EXPECT_EQ(seen.fields + seen.holds + seen.revocation + seen.value + seen.permits, "");
    EXPECT_EQ(seen.waiters, 0);
    EXPECT_TRUE(seen.readers.empty());
    EXPECT_LE(std::abs(seen.time - now()), 5000);
}

TEST_F(inspect_script, a_lock_is_shown_with_its_hold) {
    run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
        {alice, text_of(long_ttl), "2", "0", since});
    redis({"SET", revocation_key(name), "record"});
    const auto seen = inspect();
    EXPECT_EQ(seen.kind, "hash");
    EXPECT_GT(seen.remaining, long_ttl / 2);
    EXPECT_EQ(seen.fields, alice + "\n1");
    EXPECT_EQ(seen.holds, text({"HGETALL", holds}));
    EXPECT_EQ(seen.revocation, "record");
    EXPECT_TRUE(seen.readers.empty());
}

TEST_F(inspect_script, waiters_in_line_are_counted) {
    redis({"RPUSH", fair_queue(name), alice, bob, java});
    EXPECT_EQ(inspect().waiters, 3);
}

TEST_F(inspect_script, readers_are_shown_with_what_is_left_of_their_leases) {
    redis({"HSET", name, "mode", "read", alice, "1", java, "2", bob, "1"});
    redis({"SET", reader_timeout(name, alice) + ":1", "1", "PX", text_of(long_ttl)});
    redis({"SET", reader_timeout(name, java) + ":1", "1", "PX", "1000"});
    redis({"SET", reader_timeout(name, java) + ":2", "1", "PX", text_of(2 * long_ttl)});
    const auto seen = inspect();
    ASSERT_EQ(seen.readers.size(), 3U);
    EXPECT_EQ(seen.readers[0].items.at(0).text, alice);
    EXPECT_GT(seen.readers[0].items.at(1).integer, long_ttl / 2);
    EXPECT_LE(seen.readers[0].items.at(1).integer, long_ttl);
    EXPECT_EQ(seen.readers[1].items.at(0).text, java);
    EXPECT_GT(seen.readers[1].items.at(1).integer, long_ttl);
    EXPECT_EQ(seen.readers[2].items.at(0).text, bob);
    EXPECT_EQ(seen.readers[2].items.at(1).integer, -2);
}

TEST_F(inspect_script, a_writer_is_no_reader) {
    redis({"HSET", name, "mode", "write", alice + ":write", "1", bob + ":lingering", "1"});
    const auto seen = inspect();
    EXPECT_TRUE(seen.readers.empty());
    EXPECT_EQ(seen.kind, "hash");
}

TEST_F(inspect_script, a_semaphore_is_shown_with_its_permits) {
    redis({"SET", name, "2"});
    redis({"ZADD", semaphore_timeouts(name), "1700000000123", "this one is over", "4700000000123",
           "0123456789abcdef", "922337203685477", "fedcba9876543210"});
    redis({"HSET", holds, "limit", "4"});
    const auto seen = inspect();
    EXPECT_EQ(seen.kind, "string");
    EXPECT_EQ(seen.remaining, -1);
    EXPECT_EQ(seen.value, "2");
    EXPECT_EQ(seen.permits, "0123456789abcdef\n4700000000123\nfedcba9876543210\n922337203685477");
    EXPECT_EQ(seen.holds, "limit\n4");
}

TEST_F(inspect_script, a_latch_is_told_by_its_mark) {
    redis({"SET", name, "2"});
    EXPECT_EQ(inspect().latch, 0);
    redis({"SET", latch_mark(name), "1"});
    const auto seen = inspect();
    EXPECT_EQ(seen.kind, "string");
    EXPECT_EQ(seen.value, "2");
    EXPECT_EQ(seen.latch, 1);
}

TEST_F(inspect_script, foreign_kinds_beside_a_lock_do_no_harm) {
    redis({"SET", holds, "x"});
    redis({"RPUSH", revocation_key(name), "x"});
    redis({"SET", semaphore_timeouts(name), "x"});
    redis({"SET", fair_queue(name), "x"});
    const auto before = contents();
    const auto seen = inspect();
    EXPECT_EQ(seen.kind, "none");
    EXPECT_EQ(seen.fields + seen.holds + seen.revocation + seen.value + seen.permits, "");
    EXPECT_EQ(seen.waiters, 0);
    EXPECT_EQ(contents(), before);
}

TEST_F(inspect_script, something_else_under_the_name_is_of_the_wrong_kind) {
    const std::vector<std::vector<std::string>> others{
        {"RPUSH", name, "x"},
        {"SADD", name, "x"},
        {"ZADD", name, "1", "x"},
        {"XADD", name, "*", "x", "y"},
        {"SET", name, "precious"},
        {"SET", name, "123456789012345678901"},
        {"SETBIT", name, "70000", "1"},
        {"HSET", name, "precious", "1"},
        {"HSET", name, "user:42", "1"},
        {"HSET", name, alice, "precious"},
        {"HSET", name, alice, "1", bob, "1"},
        {"HSET", name, alice, "1", "precious", "1"},
        {"HSET", name, "mode", "precious"},
        {"HSET", name, "mode", "write", "precious", "1"},
        {"HSET", name, "mode", "read", alice, "1", "precious", "1"},
    };
    for (const auto& each : others) {
        SCOPED_TRACE(each[0] + " " + each.back());
        redis({"FLUSHALL"});
        redis(each);
        expect_wrong_kind();
    }
}

TEST_F(inspect_script, a_count_that_makes_no_sense_does_not_keep_the_server_busy) {
    redis({"HSET", name, "mode", "read", alice, "100000000000"});
    const auto seen = inspect();
    ASSERT_EQ(seen.readers.size(), 1U);
    EXPECT_EQ(seen.readers[0].items.at(1).integer, -2);
}

TEST_F(inspect_script, a_large_hash_of_somebody_else_is_not_read) {
    for (const std::string mode : {"", "precious", "read"}) {
        redis({"FLUSHALL"});
        if (!mode.empty()) {
            redis({"HSET", name, "mode", mode});
        }
        for (int field = 0; field < 1000; ++field) {
            redis({"HSET", name, "field" + text_of(field), "1"});
        }
        expect_wrong_kind();
    }
}

TEST_F(inspect_script, all_of_many_readers_are_shown) {
    redis({"HSET", name, "mode", "read"});
    for (int reader = 0; reader < 1000; ++reader) {
        redis({"HSET", name, "d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(reader), "1"});
    }
    EXPECT_EQ(inspect().readers.size(), 1000U);
}

TEST_F(inspect_script, a_key_of_others_in_the_place_of_a_semaphores_ends_is_told) {
    redis({"ZADD", semaphore_timeouts(name), "1", "order:1", "9e15", "order:2"});
    EXPECT_EQ(inspect().kind, "none") << "does not matter to any other kind of lock";
    EXPECT_EQ(inspect().permits, "");
    redis({"SET", name, "3"});
    expect_wrong_kind();
    redis({"DEL", name});
    run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
        {alice, text_of(long_ttl), "2", "0", since});
    EXPECT_EQ(inspect().kind, "hash") << "does not matter to a lock";
}

}  // namespace
}  // namespace holdfast::engines::redis
