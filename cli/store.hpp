#pragma once

#include <chrono>
#include <holdfast/client.hpp>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "messages.hpp"

namespace holdfast::cli {

/// How this process shows up as a holder.
struct appearance {
    /// Empty: this program's own name.
    std::string program;
    std::string label;
    std::shared_ptr<observer> events;
    /// The client takes no locks, so a store that is missing is not created.
    bool only_looks{true};
    /// How long a call without a deadline keeps trying a store that cannot be reached.
    std::chrono::milliseconds outage_patience{client_options{}.outage_patience};
};

/// Opens the store. Throws `std::system_error` as `client` does; a store that does not reach as far
/// as required is refused.
[[nodiscard]] std::unique_ptr<client> open_store(const store_arguments& store,
                                                 const appearance& look = {});

/// The address under which a child process, wherever it has gone to, finds the same store.
[[nodiscard]] std::string address_for_child(const store_arguments& store, const client& opened,
                                            store_passing passing);

/// Tells people at a terminal what a lock in this store does not protect them from.
void mention_limits(const store_arguments& store, const client& opened, const messages& out);

}  // namespace holdfast::cli
