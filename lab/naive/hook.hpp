#pragma once

#include <functional>

#include <support/redis_client.hpp>

/// Locks as they are found in tutorials. Each has a flaw, which its comment names. Not for use.
namespace naive {

using holdfast::testing_support::redis_client;

/// Called exactly where bad luck strikes: between two commands that belong together.
using hook = std::function<void()>;

}  // namespace naive
