#pragma once

#include <cstddef>
#include <vector>

#include <core/lock_table.hpp>

namespace holdfast::core {

/// One request for several locks of one store.
///
/// For the table these are several calls that ask once: each has its place in its name's queue, its
/// owner, its tenure and its renewal, as if it had been asked for alone. Only the question travels
/// together with the others, and what the store says is told to each. So everything that is true of a
/// lock is true of these: a name that a thread of this process has, or waits for, is busy without
/// asking the store; who comes later queues behind; a grant that arrives too late, or for a caller that
/// has gone, is given back.
///
/// Whoever drives the table calls `begin`, hands to `keep` what the table wants to send for one of
/// `calls`, and sends it if it is `complete`. Not thread-safe: serialised with the table.
class joint_question {
public:
    /// The claims must not wait.
    void begin(lock_table& table, const std::vector<claim>& all, clock::time_point now);
    [[nodiscard]] const std::vector<waiter_id>& calls() const noexcept { return calls_; }
    void keep(send_acquire request) { kept_.push_back(std::move(request)); }
    /// Whether the store is to be asked. If not, one of them is taken here already: `refuse`.
    [[nodiscard]] bool complete() const noexcept { return kept_.size() == calls_.size(); }
    /// Tells the others that they are not to be had either.
    void refuse(lock_table& table, clock::time_point now);

    /// In the order of the claims. Once only.
    [[nodiscard]] std::vector<engines::acquire_request> requests();
    void answer(lock_table& table, const engines::acquire_all_reply& reply, clock::time_point now);
    void cancel(lock_table& table, clock::time_point now) const;

    /// After `errc::busy`: which of the claims somebody is in the way of.
    [[nodiscard]] std::size_t busy() const noexcept { return busy_; }

private:
    std::vector<waiter_id> calls_;
    std::vector<send_acquire> kept_;
    std::size_t busy_{};
};

}  // namespace holdfast::core
