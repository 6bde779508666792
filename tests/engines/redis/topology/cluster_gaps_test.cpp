#include <gtest/gtest.h>

#include <engines/redis/topology/routing.hpp>
#include <engines/redis/topology/scripted_server.hpp>

/// Clusters whose map does not say everything.
namespace holdfast::engines::redis {
namespace {

constexpr std::int64_t first_unnamed = 8192;

std::string range(std::int64_t first, std::int64_t last, const std::string& host, std::uint16_t port) {
    return sends_list({sends_number(first), sends_number(last),
                       sends_list({sends_text(host), sends_number(port), sends_text("id")})});
}

/// Has the lower half of the slots, and says of the upper half that somebody has it, but not who.
class redis_cluster_gaps : public ::testing::Test {
protected:
    [[nodiscard]] std::string answer(const words& command) {
        if (command.front() == "CLUSTER" && command.at(1) == "SLOTS") {
            return sends_list({range(0, first_unnamed - 1, "127.0.0.1", named_.where().port),
                               range(first_unnamed, 16'383, "?", unnamed_.where().port)});
        }
        if (command.front() == "GET") {
            return says_elsewhere_;
        }
        return "+OK\r\n";
    }
    [[nodiscard]] std::unique_ptr<router> connected() {
        address where;
        where.topology = topology_kind::cluster;
        where.nodes = {named_.where()};
        auto made = make_cluster(where, {});
        EXPECT_FALSE(made->connect(clock::now() + 5s));
        return made;
    }

    scripted_server unnamed_{[](const words& command) {
        return command.front() == "GET" ? sends_text("found") : std::string{"+OK\r\n"};
    }};
    std::string says_elsewhere_{
        sends_error("MOVED 8192 127.0.0.1:" + std::to_string(unnamed_.where().port))};
    scripted_server named_{[this](const words& command) { return answer(command); }};
};

TEST_F(redis_cluster_gaps, a_slot_without_a_named_owner_is_asked_for_at_a_master_that_knows) {
    const auto through = connected();
    const auto result = ask(*through, first_unnamed, {{"GET", "x"}});
    ASSERT_FALSE(result.error) << result.error.detail;
    EXPECT_EQ(result.replies.front().text, "found");
}

TEST_F(redis_cluster_gaps, a_slot_that_nobody_serves_is_unavailable) {
    says_elsewhere_ = sends_error("CLUSTERDOWN Hash slot not served");
    const auto through = connected();
    const auto result = ask(*through, first_unnamed, {{"GET", "x"}});
    EXPECT_EQ(result.error.code, errc::store_unavailable);
    EXPECT_NE(result.error.detail.find("not served"), std::string::npos) << result.error.detail;
}

/// A master with two replicas whose place is taken by a server that was never met before, and has none.
class redis_cluster_new_master : public ::testing::Test {
protected:
    [[nodiscard]] std::string answer(const words& command) {
        if (command.front() == "CLUSTER" && command.at(1) == "SLOTS") {
            const auto server = [](std::uint16_t port) {
                return sends_list({sends_text("127.0.0.1"), sends_number(port), sends_text("id")});
            };
            const std::vector<std::string> whole{sends_number(0), sends_number(16'383)};
            auto all = whole;
            if (stepped_down_) {
                all.push_back(server(new_.where().port));
            } else {
                all.insert(all.end(), {server(old_.where().port), server(1), server(2)});
            }
            return sends_list({sends_list(all)});
        }
        if (command.front() == "GET") {
            stepped_down_ = true;
            return sends_error("MOVED 5 127.0.0.1:" + std::to_string(new_.where().port));
        }
        return "+OK\r\n";
    }

    std::atomic<bool> stepped_down_{false};
    scripted_server new_{[this](const words& command) {
        return command.front() == "GET" ? sends_text("found") : answer(command);
    }};
    scripted_server old_{[this](const words& command) { return answer(command); }};
};

TEST_F(redis_cluster_new_master, a_majority_is_counted_from_what_the_old_one_had) {
    address where;
    where.topology = topology_kind::cluster;
    where.nodes = {old_.where()};
    const auto through = make_cluster(where, {});
    ASSERT_FALSE(through->connect(clock::now() + 5s));
    ASSERT_EQ(through->replicas_of(5), 2U);

    ASSERT_EQ(ask(*through, 5, {{"GET", "x"}}).replies.at(0).text, "found");

    EXPECT_EQ(through->replicas_of(5), 2U);
}

}  // namespace
}  // namespace holdfast::engines::redis
