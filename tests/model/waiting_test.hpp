#pragma once

#include <checker.hpp>

#include <gtest/gtest.h>

namespace holdfast::model {

/// Whether every execution ends well.
inline void expect_sound(const std::function<void()>& scenario, const limits& how = {}) {
    const auto found = explore(scenario, how);
    EXPECT_EQ(found.problem, "");
    EXPECT_GT(found.executions, 1U);
    ::testing::Test::RecordProperty("executions", static_cast<int>(found.executions));
}

/// Whether the checker finds something when `mistake` is planted.
inline void expect_refuted(const char* mistake, const std::function<void()>& scenario,
                           const limits& how = {}) {
    const plant planted{mistake};
    const auto found = explore(scenario, how);
    EXPECT_NE(found.problem.find("a wake-up was lost"), std::string::npos) << mistake << found.problem;
}

}  // namespace holdfast::model
