#pragma once

#include <gtest/gtest.h>

#include <holdfast/engine.hpp>

/// Assertions about the answers of an engine. A failed assertion shows the answer.
namespace holdfast::testing {

[[nodiscard]] ::testing::AssertionResult granted(const engines::acquire_reply& reply);
[[nodiscard]] ::testing::AssertionResult busy(const engines::acquire_reply& reply);
[[nodiscard]] ::testing::AssertionResult renewed(const engines::renew_reply& reply);
[[nodiscard]] ::testing::AssertionResult released(const engines::release_reply& reply);
[[nodiscard]] ::testing::AssertionResult revoked(const engines::revoke_reply& reply);

[[nodiscard]] ::testing::AssertionResult gone(const engines::renew_reply& reply);
[[nodiscard]] ::testing::AssertionResult gone(const engines::release_reply& reply);
[[nodiscard]] ::testing::AssertionResult gone(const engines::revoke_reply& reply);

/// The engine refused the request, with this reason.
[[nodiscard]] ::testing::AssertionResult refused(const engines::acquire_reply& reply, errc reason);
[[nodiscard]] ::testing::AssertionResult refused(const engines::renew_reply& reply, errc reason);
[[nodiscard]] ::testing::AssertionResult refused(const engines::release_reply& reply, errc reason);
[[nodiscard]] ::testing::AssertionResult refused(const engines::inspect_reply& reply, errc reason);
[[nodiscard]] ::testing::AssertionResult refused(const engines::latch_reply& reply, errc reason);

/// Answered without an error.
[[nodiscard]] ::testing::AssertionResult answered(const engines::inspect_reply& reply);
[[nodiscard]] ::testing::AssertionResult answered(const engines::list_reply& reply);
[[nodiscard]] ::testing::AssertionResult answered(const engines::latch_reply& reply);

}  // namespace holdfast::testing
