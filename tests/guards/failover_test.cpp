#include <chrono>
#include <memory>
#include <optional>

#include <holdfast/holdfast.hpp>
#include <support/redis_servers.hpp>

#include "sql_session.hpp"

/// What a lock that was lost in a fail-over does to a resource, and what each guard makes of it.
///
/// A holds a lock that no replica has heard of. Its master dies, a sentinel promotes a replica, and B
/// is granted the same lock there: two holders, both in good faith. A knows its master only: who finds
/// the new one is told at once.
namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;
using testing_support::redis_sentinels;
using testing_support::redis_server;

/// Long enough that both leases are valid, as far as their holders know, while the tests run.
constexpr lease_options unattended{.ttl = 120s, .renewal = renewal_mode::none};

class two_holders {
public:
    two_holders() {
        // Both counters are known to the replicas as they are before A comes.
        EXPECT_EQ(mutex(a_, "stock").acquire().release(), release_outcome::released);
        EXPECT_EQ(mutex(a_redisson_, "stock:r").acquire().release(), release_outcome::released);
        servers_.master().cli({"WAIT", "2", "10000"});
        auto& master = servers_.master();
        const auto port = master.port();
        deafen_replicas(master);
        a = mutex{a_, "stock", unattended}.try_acquire();
        a_redisson = mutex{a_redisson_, "stock:r", unattended}.try_acquire();
        master.kill_hard();
        for (auto* const one : deaf_) {
            one->resume();
        }
        servers_.wait_for_new_master(port);
        b = mutex{b_, "stock", unattended}.try_acquire_for(20s);
        b_redisson = mutex{b_redisson_, "stock:r", unattended}.try_acquire_for(20s);
    }

    /// With tokens of holdfast's own.
    std::optional<lease> a;
    std::optional<lease> b;
    /// With tokens from a counter, as Redisson's.
    std::optional<lease> a_redisson;
    std::optional<lease> b_redisson;
    [[nodiscard]] client& somebody() { return b_; }

private:
    [[nodiscard]] std::string address(const std::string& options = {}) const {
        std::string text = "redis+sentinel://";
        for (const auto port : servers_.sentinel_ports()) {
            text += (text.back() == '/' ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
        }
        return text + "/" + redis_sentinels::service() + options;
    }
    void deafen_replicas(const redis_server& master) {
        const auto text = master.cli({"INFO", "replication"});
        for (auto at = text.find(",port="); at != std::string::npos; at = text.find(",port=", at + 1)) {
            deaf_.push_back(
                &servers_.server(static_cast<std::uint16_t>(std::stoul(text.substr(at + 6)))));
            deaf_.back()->pause();
        }
        // What is on its way to them would arrive after the master's end.
        master.client_kill("replica");
    }

    redis_sentinels servers_;
    std::vector<redis_server*> deaf_;
    const std::string first_master_{"redis://127.0.0.1:" + std::to_string(servers_.master().port())};
    client a_{first_master_};
    client b_{address()};
    client a_redisson_{first_master_ + "?fenced=redisson"};
    client b_redisson_{address("?fenced=redisson")};
};

class failed_over : public sql_guards {
protected:
    static void SetUpTestSuite() { holders_ = std::make_unique<two_holders>(); }
    static void TearDownTestSuite() { holders_.reset(); }
    void SetUp() override {
        sql_guards::SetUp();
        ASSERT_TRUE(holders_->a && *holders_->a);
        ASSERT_TRUE(holders_->b && *holders_->b) << "two holders at once";
        ASSERT_TRUE(holders_->a_redisson && *holders_->a_redisson);
        ASSERT_TRUE(holders_->b_redisson && *holders_->b_redisson) << "two holders at once";
    }

    static std::unique_ptr<two_holders> holders_;
    /// A has the connection `old_`, B `fresh_`.
    const fencing_token a_{holders_->a->token()};
    const fencing_token b_{holders_->b->token()};
};

std::unique_ptr<two_holders> failed_over::holders_;

/// The first table: A is stopped past its ttl, B is granted the lock, A wakes up and writes.
TEST_F(failed_over, a_token_stops_a_holder_whose_lease_ended) {
    const lease_options brief{.ttl = 200ms, .renewal = renewal_mode::none};
    const auto first = mutex{holders_->somebody(), "expiring", brief}.acquire();
    EXPECT_EQ(write_stock(*old_, first.token(), 90), admission::admitted);
    const auto second = mutex{holders_->somebody(), "expiring", brief}.acquire();
    EXPECT_FALSE(first);
    EXPECT_EQ(fence{fresh_db()}.announce("stock", second.token()), admission::admitted);
    EXPECT_EQ(write_stock(*old_, first.token(), 10), admission::stale);
    EXPECT_EQ(write_stock(*fresh_, second.token(), 80), admission::admitted);
    EXPECT_EQ(stock(), "80");
}

/// The second table: both hold the lock, both tokens are larger than the last one, both write. Each has
/// read 100 and sold one.
TEST_F(failed_over, a_token_checked_at_the_write_does_not_stop_two_holders_that_write_in_order) {
    ASSERT_LT(a_, b_);
    const int read_by_a = std::stoi(old_->value("SELECT stock FROM product_stock"));
    const int read_by_b = std::stoi(fresh_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(write_stock(*old_, a_, read_by_a - 1), admission::admitted);
    EXPECT_EQ(write_stock(*fresh_, b_, read_by_b - 1), admission::admitted);
    EXPECT_EQ(stock(), "99") << "two were sold";
}

TEST_F(failed_over, announced_before_the_read_it_does_as_long_as_tokens_rise) {
    ASSERT_LT(a_, b_);
    EXPECT_EQ(fence{old_db()}.announce("stock", a_), admission::admitted);
    const int read_by_a = std::stoi(old_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(fence{fresh_db()}.announce("stock", b_), admission::admitted);
    const int read_by_b = std::stoi(fresh_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(write_stock(*old_, a_, read_by_a - 1), admission::stale);
    EXPECT_EQ(write_stock(*fresh_, b_, read_by_b - 1), admission::admitted);
    EXPECT_EQ(stock(), "99") << "one was sold";
}

/// A counter that the fail-over set back gives one token to two holders, and then nothing helps.
TEST_F(failed_over, a_counter_that_was_set_back_gives_the_same_token_twice) {
    const auto token_of_a = holders_->a_redisson->token();
    const auto token_of_b = holders_->b_redisson->token();
    ASSERT_EQ(token_of_a, token_of_b);
    EXPECT_EQ(fence{old_db()}.announce("stock", token_of_a), admission::admitted);
    EXPECT_EQ(fence{fresh_db()}.announce("stock", token_of_b), admission::admitted);
    EXPECT_EQ(write_stock(*old_, token_of_a, 99), admission::admitted);
    EXPECT_EQ(write_stock(*fresh_, token_of_b, 99), admission::admitted);
    EXPECT_EQ(stock(), "99") << "two were sold";
}

/// The answer: the storage's own sequence does not care who was granted what.
TEST_F(failed_over, the_storage_lease_lets_one_of_two_holders_win) {
    constexpr lease_columns stock_row{.table = "product_stock", .key = "id"};
    storage_lease lease_of_a{old_db(), stock_row};
    storage_lease lease_of_b{fresh_db(), stock_row};
    const auto seen_by_a = lease_of_a.read("1").value();
    const auto seen_by_b = lease_of_b.read("1").value();
    old_->execute("BEGIN");
    EXPECT_EQ(lease_of_a.advance("1", seen_by_a), contest::won);
    old_->execute("UPDATE product_stock SET stock = stock - 1 WHERE id = 1 AND stock >= 1");
    old_->execute("COMMIT");
    fresh_->execute("BEGIN");
    EXPECT_EQ(lease_of_b.advance("1", seen_by_b), contest::lost);
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(stock(), "99") << "one was sold";
}

TEST_F(failed_over, an_operation_that_both_holders_are_asked_for_is_done_once) {
    const auto by_a = once{old_db()}.claim("pay:123");
    ASSERT_EQ(by_a.result, once_reply::verdict::claimed);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").result, once_reply::verdict::running);
    EXPECT_EQ(once{old_db()}.complete(by_a.ticket, "paid"), completion::recorded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").outcome, "paid");
}

}  // namespace

}  // namespace holdfast::guard::testing
