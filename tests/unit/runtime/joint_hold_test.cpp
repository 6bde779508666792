#include <gtest/gtest.h>

#include <runtime/joint_hold.hpp>

namespace holdfast::detail {
namespace {

TEST(release_tally, what_is_not_answered_in_time_is_unknown) {
    release_tally answers{3};
    answers.put(0, release_outcome::released);
    answers.put(2, release_outcome::already_lost);
    EXPECT_EQ(answers.wait(clock::now()),
              (std::vector{release_outcome::released, release_outcome::unknown,
                           release_outcome::already_lost}));
}

}  // namespace
}  // namespace holdfast::detail
