#include <set>
#include <string>
#include <vector>

#include <integration/redis/redis_stage.hpp>
#include <redis/layout/keys.hpp>

/// Lists of locks on servers that hold a lot of other things.
namespace holdfast::testing {

namespace {

using engines::redis::slot_of;
using testing_support::redis_cluster;

class redis_listing : public redis_stage {
protected:
    void fill(const std::string& script) {
        auto admin = server_.connect();
        const auto reply = admin.command({"EVAL", script, "0"});
        ASSERT_FALSE(reply.is_error()) << reply.text;
    }
    /// So many locks, as another library would hold them.
    void hold(int count) {
        fill("for i = 1, " + std::to_string(count) +
             " do redis.call('HSET', 'lock:' .. i, 'd4d4d4d4-0000-4000-8000-00000000000d:' .. i, 1) "
             "redis.call('PEXPIRE', 'lock:' .. i, 600000) end");
    }
    [[nodiscard]] static std::set<std::string> list_all(client& store, std::size_t limit,
                                                        std::chrono::milliseconds timeout) {
        std::set<std::string> names;
        std::string from;
        do {
            const auto page = store.list("", from, limit, timeout);
            EXPECT_LE(page.locks.size(), limit);
            EXPECT_FALSE(page.missing) << page.missing.detail;
            for (const auto& lock : page.locks) {
                names.insert(lock.name);
            }
            from = page.next;
        } while (!from.empty());
        return names;
    }
    /// How often the server has run a command.
    [[nodiscard]] std::int64_t calls_of(const std::string& command) const {
        const auto stats = server_.info("cmdstat_" + command);
        const auto begin = stats.find("calls=");
        return begin == std::string::npos ? 0 : std::stoll(stats.substr(begin + 6));
    }
};

TEST_F(redis_listing, pages_go_on_where_the_last_one_ended) {
    fill("for i = 1, 100000 do redis.call('SET', 'other:' .. i, 'x') end");
    hold(1000);
    auto store = make_client();
    EXPECT_EQ(list_all(store, 50, 30s).size(), 1000U);
    // Twice through 101 000 keys, 250 at a time, and once more for each page; not so often for each.
    EXPECT_LT(calls_of("scan"), 2 * 404 + 100);
}

TEST_F(redis_listing, a_page_of_one_lock_skips_none) {
    hold(25);
    auto store = make_client();
    EXPECT_EQ(list_all(store, 1, 30s).size(), 25U);
}

TEST_F(redis_listing, comes_to_its_end_however_much_there_is_to_go_through) {
    fill("for i = 1, 40000 do redis.call('HSET', 'other:' .. i, 'a', i, 'b', i) end");
    hold(10);
    auto store = make_client();
    EXPECT_EQ(list_all(store, 1000, 400ms).size(), 10U);
}

TEST_F(redis_listing, refuses_to_go_on_from_nowhere) {
    auto store = make_client();
    for (const auto* from : {"x", "0", "0.h", "0.h.", "0.q.1.", "0.h.x.", "99999.h.0."}) {
        try {
            static_cast<void>(store.list("", from));
            ADD_FAILURE() << from;
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::invalid_argument) << error.what();
        }
    }
}

TEST(redis_listing_of_a_cluster, shows_what_the_others_have_when_a_server_is_down) {
    redis_cluster cluster{{.masters = 2, .replicas_each = 0, .node_timeout = 60s}};
    const auto address = "redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port());
    client holder{address};
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<lease> held;
    std::set<std::string> elsewhere;
    for (int number = 0; number < 30; ++number) {
        const auto name = "lock-" + std::to_string(number);
        locks.push_back(std::make_unique<mutex>(holder, name, lease_options{.ttl = 60s}));
        held.push_back(locks.back()->acquire());
        if (&cluster.node_of_slot(slot_of(name)) != &cluster.node(1)) {
            elsewhere.insert(name);
        }
    }
    ASSERT_LT(elsewhere.size(), 30U);
    client viewer{address};
    EXPECT_EQ(viewer.list().locks.size(), 30U);
    // Hung: no answer, and no refusal either.
    cluster.node(1).pause();
    std::set<std::string> names;
    failure missing;
    std::string from;
    do {
        const auto page = viewer.list("", from, 1000, 500ms);
        for (const auto& lock : page.locks) {
            names.insert(lock.name);
        }
        missing = page.missing ? page.missing : missing;
        from = page.next;
    } while (!from.empty());
    EXPECT_EQ(names, elsewhere);
    EXPECT_EQ(missing.code, errc::store_unavailable);
    EXPECT_NE(missing.detail.find(std::to_string(cluster.node(1).port())), std::string::npos)
        << missing.detail;
    cluster.node(1).resume();
}

TEST(redis_listing_of_a_cluster, says_that_slots_of_nobody_were_not_looked_at) {
    redis_cluster cluster{{.masters = 2,
                           .replicas_each = 0,
                           .node_timeout = 60s,
                           .server = {.arguments = {"--cluster-require-full-coverage", "no"}}}};
    const auto address = "redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port());
    client holder{address};
    const auto held = mutex{holder, "stock"}.acquire();
    EXPECT_FALSE(client{address}.list().missing);
    const auto slot = static_cast<std::uint16_t>(slot_of("stock") ^ 1U);
    for (std::size_t index = 0; index < cluster.size(); ++index) {
        cluster.node(index).cli({"CLUSTER", "DELSLOTS", std::to_string(slot)});
    }
    const auto page = client{address}.list();
    EXPECT_EQ(page.locks.size(), 1U);
    EXPECT_EQ(page.missing.code, errc::store_unavailable);
    EXPECT_NE(page.missing.detail.find("no server is responsible for 1 of the 16384 slots"),
              std::string::npos)
        << page.missing.detail;
}

}  // namespace

}  // namespace holdfast::testing
