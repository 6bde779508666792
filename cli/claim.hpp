#pragma once

#include <chrono>
#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <optional>
#include <stop_token>

#include "arguments.hpp"

namespace holdfast::cli {

/// Takes the lock that `request` describes, and waits for it until `deadline` if the request allows
/// waiting. Empty: busy, or `stop` came first.
///
/// `run NAME` and `run NAME --shared` exclude each other, whatever the store. Redis keeps a plain lock
/// and a read/write lock in two layouts under one name, and refuses whoever asks for the other kind:
///
///     held as        │ run NAME                            │ run NAME --shared
///     a plain lock   │ waits for it as a plain lock        │ waits until it is free
///     readers, writer│ is refused, and waits as a writer   │ joins the readers, waits for the writer
[[nodiscard]] std::optional<lease> claim(client& store, const run_arguments& request,
                                         clock::time_point deadline, const std::stop_token& stop);

/// How long the release at the end waits for a store that does not answer.
inline constexpr std::chrono::milliseconds release_patience{1'000};

/// The options of the lease that `request` describes.
[[nodiscard]] lease_options terms_of(const run_arguments& request);

}  // namespace holdfast::cli
