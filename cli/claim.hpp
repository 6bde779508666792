#pragma once

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <optional>

#include "arguments.hpp"
#include "signals.hpp"

namespace holdfast::cli {

struct claim_result {
    /// Empty: busy, or cancelled.
    std::optional<lease> held;
    /// The signal that ended the wait; then nothing is held. Zero: none did.
    int cancelled_by{};
};

/// Takes what `wanted` asks for, waiting as long as it allows. HUP, INT, QUIT and TERM end the wait,
/// TSTP stops the process as usual.
[[nodiscard]] claim_result claim(client& store, const run_arguments& wanted,
                                 const signal_source& signals);

/// The terms of the lease that `wanted` asks for.
[[nodiscard]] lease_options terms_of(const run_arguments& wanted);

}  // namespace holdfast::cli
