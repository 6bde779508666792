#pragma once

#include <memory>
#include <vector>

#include <runtime/call.hpp>
#include <runtime/store_access.hpp>
#include <threading/bell.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// Lends waiting threads to the engine: a thread that has asked the store waits for what the store says
/// next, and may as well be the one that hears it.
///
/// Thread safety: all functions, from any thread.
class attendance {
public:
    explicit attendance(store_access& store) noexcept : store_{store} {}
    attendance(const attendance&) = delete;
    attendance& operator=(const attendance&) = delete;
    ~attendance() = default;

    /// Returns when the call is to be woken, or sooner.
    void attend(call& mine);

private:
    class waiting_thread;

    store_access& store_;
    /// For threads that attend, when none of them uses it. Kept until the end, because a bell may be
    /// rung for somebody who is no longer there.
    threading::mutex guard_;
    std::vector<std::unique_ptr<threading::bell>> bells_;
    std::vector<const threading::bell*> free_bells_;
};

}  // namespace holdfast::detail
