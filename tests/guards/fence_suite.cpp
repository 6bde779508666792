#include <limits>

#include "sql_session.hpp"

namespace holdfast::guard::testing {

namespace {

using fence_on = sql_guards;

TEST_F(fence_on, one_token_may_write_as_often_as_it_likes) {
    EXPECT_EQ(write_stock(*old_, {7}, 90), admission::admitted);
    EXPECT_EQ(write_stock(*old_, {7}, 80), admission::admitted);
    EXPECT_EQ(stock(), "80");
}

TEST_F(fence_on, a_smaller_token_is_refused_and_forgets_nothing) {
    EXPECT_EQ(write_stock(*fresh_, {8}, 90), admission::admitted);
    EXPECT_EQ(write_stock(*old_, {7}, 10), admission::stale);
    EXPECT_EQ(fence{old_db()}.newest("stock"), fencing_token{8});
    EXPECT_EQ(stock(), "90");
}

TEST_F(fence_on, a_token_that_was_rolled_back_was_never_seen) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {8}), admission::admitted);
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(write_stock(*old_, {7}, 90), admission::admitted);
}

TEST_F(fence_on, resources_do_not_know_each_other) {
    EXPECT_EQ(fence{fresh_db()}.announce("stock", {8}), admission::admitted);
    EXPECT_EQ(fence{old_db()}.announce("Stock", {7}), admission::admitted);
    EXPECT_EQ(fence{old_db()}.announce("stock ", {6}), admission::admitted);
    EXPECT_EQ(fence{old_db()}.newest("never"), fencing_token{0});
}

TEST_F(fence_on, names_are_data) {
    const std::string name = "it's \\ \"a\" name; DROP TABLE product_stock -- $1 é";
    EXPECT_EQ(fence{fresh_db()}.announce(name, {8}), admission::admitted);
    EXPECT_EQ(fence{old_db()}.announce(name, {7}), admission::stale);
    EXPECT_EQ(fence{old_db()}.newest(name), fencing_token{8});
}

TEST_F(fence_on, tokens_are_exact_up_to_the_largest) {
    const fencing_token largest{std::numeric_limits<std::int64_t>::max()};
    EXPECT_EQ(fence{fresh_db()}.announce("stock", largest), admission::admitted);
    EXPECT_EQ(fence{old_db()}.announce("stock", {largest.value - 1}), admission::stale);
    EXPECT_EQ(fence{old_db()}.announce("stock", largest), admission::admitted);
}

TEST_F(fence_on, misuse_is_an_error) {
    fence guarded{old_db()};
    EXPECT_EQ(error_of([&] { return guarded.admit("stock", {7}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return guarded.announce("", {7}); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { return guarded.announce(std::string(256, 'x'), {7}); }),
              errc::invalid_name);
    EXPECT_EQ(error_of([&] { return guarded.announce("stock", {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return guarded.announce("stock", {1ULL << 63U}); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return fence{old_db(), "a; b"}; }), errc::invalid_argument);
    old_->execute("BEGIN");
    EXPECT_EQ(error_of([&] { return guarded.announce("stock", {7}); }), errc::invalid_argument);
    old_->execute("ROLLBACK");
}

/// `create_table` leaves a table alone that is there.
TEST_F(fence_on, a_column_that_a_guards_own_table_lacks_is_not_made_by_create_table) {
    old_->execute("CREATE TABLE other_table (resource INTEGER)");
    const auto text = text_of([&] { return fence(old_db(), "other_table").newest("stock"); });
    EXPECT_NE(text.find("drop it or give the guard another name"), std::string::npos) << text;
    old_->execute("DROP TABLE other_table");
}

TEST_F(fence_on, a_missing_table_is_named_with_what_makes_it) {
    try {
        static_cast<void>(fence(old_db(), "elsewhere").newest("stock"));
        ADD_FAILURE() << "there is no such table";
    } catch (const std::system_error& error) {
        const std::string text{error.what()};
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_NE(text.find("elsewhere"), std::string::npos) << text;
        EXPECT_NE(text.find("; create_table() makes a guard's own table"), std::string::npos) << text;
    }
}

/// docs/guards/fenced-write.md: for a token that is larger than all that the lock will ever give.
TEST_F(fence_on, a_wild_token_is_mended_by_hand) {
    fence guarded{old_db()};
    EXPECT_EQ(guarded.announce("stock:101", {1'000'000}), admission::admitted);
    EXPECT_EQ(guarded.announce("stock:101", {34}), admission::stale);
    EXPECT_EQ(guarded.newest("stock:101"), fencing_token{1'000'000});
    fresh_->execute("UPDATE holdfast_fence SET token = 33 WHERE resource = 'stock:101'");
    EXPECT_EQ(guarded.announce("stock:101", {34}), admission::admitted);
}

/// MySQL would end the transaction.
TEST_F(fence_on, a_table_made_in_a_transaction_goes_with_it_or_is_refused) {
    fence other{old_db(), "our_fence"};
    old_->execute("BEGIN");
    EXPECT_EQ(error_of([&] { return other.create_table(), 0; }),
              old_db().speaks() == dialect::mysql ? std::error_code{errc::invalid_argument}
                                                  : std::error_code{});
    EXPECT_TRUE(old_db().in_transaction());
    old_->execute("ROLLBACK");
    EXPECT_EQ(error_of([&] { return other.newest("stock"); }), errc::bad_configuration);
}

TEST_F(fence_on, a_table_may_have_another_name) {
    fence other{old_db(), "our_fence"};
    other.create_table();
    other.create_table();
    EXPECT_EQ(other.announce("stock", {7}), admission::admitted);
    EXPECT_EQ(old_->value("SELECT token FROM our_fence"), "7");
    old_->execute("DROP TABLE our_fence");
}

/// Source: "what a fencing token stops". A: token 100, B: token 101.
TEST_F(fence_on, a_late_holder_is_refused_once_the_next_one_announced_itself) {
    EXPECT_EQ(write_stock(*old_, {100}, 90), admission::admitted);
    EXPECT_EQ(fence{fresh_db()}.announce("stock", {101}), admission::admitted);
    EXPECT_EQ(write_stock(*old_, {100}, 10), admission::stale);
    EXPECT_EQ(write_stock(*fresh_, {101}, 80), admission::admitted);
    EXPECT_EQ(stock(), "80");
}

/// The same without `announce`: nothing in the storage knows of B yet, so A's late write is taken.
TEST_F(fence_on, a_late_holder_is_not_refused_before_the_next_one_was_here) {
    EXPECT_EQ(write_stock(*old_, {100}, 90), admission::admitted);
    EXPECT_EQ(write_stock(*old_, {100}, 10), admission::admitted);
    EXPECT_EQ(write_stock(*fresh_, {101}, 80), admission::admitted);
    EXPECT_EQ(write_stock(*old_, {100}, 10), admission::stale);
}

/// Read, compute, write, with a check on the write alone: both are admitted in the order of their
/// tokens, and one of two sales is lost.
TEST_F(fence_on, a_check_on_the_write_alone_loses_an_update) {
    const int read_by_new = std::stoi(fresh_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(write_stock(*old_, {33}, 100 - 1), admission::admitted);
    EXPECT_EQ(write_stock(*fresh_, {34}, read_by_new - 1), admission::admitted);
    EXPECT_EQ(stock(), "99") << "two sales were admitted";
}

TEST_F(fence_on, announced_before_the_read_the_older_holder_is_refused_and_nothing_is_lost) {
    EXPECT_EQ(fence{fresh_db()}.announce("stock", {34}), admission::admitted);
    const int read_by_new = std::stoi(fresh_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(write_stock(*old_, {33}, 100 - 1), admission::stale);
    EXPECT_EQ(write_stock(*fresh_, {34}, read_by_new - 1), admission::admitted);
    EXPECT_EQ(stock(), "99") << "one sale was admitted";
}

}  // namespace

}  // namespace holdfast::guard::testing
