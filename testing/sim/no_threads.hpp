#pragma once

namespace holdfast::testing::sim {

/// A simulation runs on one thread.
struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
};

}  // namespace holdfast::testing::sim
