#include <gtest/gtest.h>
#include <core/quorum.hpp>
#include <initializer_list>

namespace {

using holdfast::core::quorum_tally;
using vote = quorum_tally::vote;
using verdict = quorum_tally::verdict;

verdict of_three(std::initializer_list<vote> votes) {
    quorum_tally tally{3};
    for (const auto each : votes) {
        tally.add(each);
    }
    return tally.result();
}

TEST(quorum_tally, is_done_as_soon_as_a_majority_did_it) {
    EXPECT_EQ(of_three({vote::done}), verdict::open);
    EXPECT_EQ(of_three({vote::done, vote::done}), verdict::done);
    EXPECT_EQ(of_three({vote::gone, vote::done, vote::done}), verdict::done);
}

TEST(quorum_tally, is_gone_as_soon_as_no_majority_can_have_had_it) {
    EXPECT_EQ(of_three({vote::gone}), verdict::open);
    EXPECT_EQ(of_three({vote::gone, vote::gone}), verdict::gone);
    EXPECT_EQ(of_three({vote::done, vote::gone, vote::gone}), verdict::gone);
}

TEST(quorum_tally, members_that_fail_prove_nothing) {
    EXPECT_EQ(of_three({vote::failed, vote::failed}), verdict::open);
    EXPECT_EQ(of_three({vote::failed, vote::failed, vote::gone}), verdict::failed);
    EXPECT_EQ(of_three({vote::done, vote::failed, vote::gone}), verdict::failed);
}

TEST(quorum_tally, two_of_four_are_neither_a_majority_nor_a_proof_of_loss_for_the_others) {
    quorum_tally tally{4};
    tally.add(vote::done);
    tally.add(vote::done);
    EXPECT_EQ(tally.result(), verdict::open);
    tally.add(vote::gone);
    EXPECT_EQ(tally.result(), verdict::open);
    tally.add(vote::gone);
    EXPECT_EQ(tally.result(), verdict::gone) << "three of four can no longer be reached";
}

}  // namespace
