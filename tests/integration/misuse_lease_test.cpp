#include <utility>

#include "stage.hpp"

/// What the class comments say of leases that are empty, moved from, assigned to and shared.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

using misuse_lease_test = stage;

TEST_F(misuse_lease_test, an_empty_lease_says_so_everywhere) {
    for (const auto moved_from : {false, true}) {
        SCOPED_TRACE(moved_from);
        lease empty;
        lease other;
        if (moved_from) {
            empty = mutex{client_, "x"}.acquire();
            other = std::move(empty);
        }
        EXPECT_FALSE(empty);  // NOLINT(bugprone-use-after-move): that is what is tested
        EXPECT_EQ(empty.name(), "");
        EXPECT_EQ(empty.token(), fencing_token{});
        EXPECT_EQ(empty.owner(), owner_id{});
        EXPECT_EQ(empty.remaining(), 0ns);
        EXPECT_FALSE(empty.at_risk());
        EXPECT_FALSE(empty.lost().stop_possible());
        EXPECT_EQ(empty.loss_reason(), std::error_code{});
        EXPECT_EQ(error_of([&] { empty.check(); }), errc::lost);
        EXPECT_EQ(empty.release(), release_outcome::already_lost);
        EXPECT_EQ(empty.release_after(1s), release_outcome::already_lost);
        EXPECT_EQ(static_cast<bool>(other), moved_from);
    }
}

TEST_F(misuse_lease_test, a_lease_that_is_assigned_to_gives_back_what_it_had) {
    auto held = mutex{client_, "x"}.acquire();
    held = mutex{client_, "y"}.acquire();
    EXPECT_TRUE(holders("x").empty());
    EXPECT_EQ(holders("y").size(), 1U);
    auto& same = held;
    held = std::move(same);
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TEST_F(misuse_lease_test, an_empty_multi_lease_says_so_everywhere) {
    for (const auto moved_from : {false, true}) {
        SCOPED_TRACE(moved_from);
        multi_lease empty;
        multi_lease other;
        if (moved_from) {
            empty = multi_lock{client_, {"x", "y"}}.acquire();
            other = std::move(empty);
        }
        EXPECT_FALSE(empty);  // NOLINT(bugprone-use-after-move): that is what is tested
        EXPECT_TRUE(empty.members().empty());
        EXPECT_EQ(empty.token("x"), fencing_token{});
        EXPECT_EQ(empty.remaining(), 0ns);
        EXPECT_FALSE(empty.lost().stop_possible());
        EXPECT_EQ(empty.loss_reason(), std::error_code{});
        EXPECT_EQ(error_of([&] { empty.check(); }), errc::lost);
        EXPECT_TRUE(empty.release().members.empty());
        EXPECT_EQ(static_cast<bool>(other), moved_from);
    }
}

TEST_F(misuse_lease_test, a_multi_lease_that_is_assigned_to_gives_back_what_it_had) {
    auto held = multi_lock{client_, {"x", "y"}}.acquire();
    held = multi_lock{client_, {"z", "w"}}.acquire();
    EXPECT_TRUE(holders("x").empty());
    EXPECT_EQ(holders("z").size(), 1U);
    auto& same = held;
    held = std::move(same);
    EXPECT_TRUE(held);
}

TEST_F(misuse_lease_test, a_lease_may_be_looked_at_by_several_threads) {
    const auto held = mutex{client_, "x"}.acquire();
    std::vector<std::future<bool>> crowd;
    for (int i = 0; i < 8; ++i) {
        crowd.push_back(in_background([&] {
            bool well = true;
            for (int round = 0; round < 200; ++round) {
                well = well && held && !held.lost().stop_requested() && held.remaining() > 0ns;
            }
            return well;
        }));
    }
    for (auto& one : crowd) {
        EXPECT_TRUE(one.get());
    }
}

}  // namespace

}  // namespace holdfast::testing
