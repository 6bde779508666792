#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::testing {

/// An engine whose calls wait for their answer.
///
/// If a call is not answered by its deadline (and a generous grace), or is answered twice, the running
/// test fails. The caller then gets `errc::outcome_unknown`, and the test goes on.
/// Thread safety: as the engine's.
class blocking_engine {
public:
    explicit blocking_engine(std::unique_ptr<engines::engine> inner,
                             engines::caller from = engines::caller::may_block);

    /// The engine itself, for calls that shall not wait.
    [[nodiscard]] engines::engine& raw() const noexcept { return *inner_; }
    [[nodiscard]] const engines::guarantees& promises() const noexcept { return inner_->promises(); }

    [[nodiscard]] engines::acquire_reply acquire(engines::acquire_request request);
    [[nodiscard]] engines::acquire_all_reply acquire_all(std::vector<engines::acquire_request> all);
    [[nodiscard]] std::vector<engines::renew_reply> renew(std::vector<engines::renew_request> batch);
    [[nodiscard]] engines::release_reply release(engines::release_request request);
    [[nodiscard]] engines::revoke_reply revoke(engines::revoke_request request);
    [[nodiscard]] engines::inspect_reply inspect(std::string name);
    [[nodiscard]] engines::list_reply list(engines::list_request request);
    [[nodiscard]] engines::latch_reply latch(engines::latch_request request);

    /// The terms of a call made now.
    [[nodiscard]] engines::call now() const;

private:
    std::unique_ptr<engines::engine> inner_;
    engines::caller from_;
};

}  // namespace holdfast::testing
