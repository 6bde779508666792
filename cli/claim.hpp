#pragma once

#include <chrono>
#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <optional>
#include <stop_token>

#include "arguments.hpp"

namespace holdfast::cli {

/// Takes what `wanted` asks for, waiting until `deadline` if it may wait at all. Empty: busy, or
/// `stop` came first.
///
/// `run NAME` and `run NAME --shared` exclude each other, whatever the store. Redis keeps a plain lock
/// and a read/write lock in two layouts under one name, and refuses whoever asks for the other kind:
///
///     held as        │ run NAME                            │ run NAME --shared
///     a plain lock   │ waits for it as a plain lock        │ waits until it is free
///     readers, writer│ is refused, and waits as a writer   │ joins the readers, waits for the writer
[[nodiscard]] std::optional<lease> claim(client& store, const run_arguments& wanted,
                                         clock::time_point deadline, const std::stop_token& stop);

/// How long a store that does not answer is waited for at the end, for the lock to be given back.
inline constexpr std::chrono::milliseconds release_patience{1'000};

/// The terms of the lease that `wanted` asks for.
[[nodiscard]] lease_options terms_of(const run_arguments& wanted);

}  // namespace holdfast::cli
