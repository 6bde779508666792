#pragma once

#include <functional>
#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <memory>
#include <stop_token>

namespace holdfast::cli {

/// How an attempt to open a store ended.
struct opening_result {
    /// Empty: `stop` or the deadline came first.
    std::unique_ptr<client> store;
    /// A thread still tries to open the store. Static objects must not be destroyed under it: end with
    /// `_exit`.
    bool unfinished{};
};

/// Opens a store on a thread of its own: a server that does not answer holds up neither a signal nor
/// the end of the wait. Throws what `open` throws.
[[nodiscard]] opening_result open_until(std::function<std::unique_ptr<client>()> open,
                                        clock::time_point deadline, const std::stop_token& stop);

}  // namespace holdfast::cli
