#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <local/process.hpp>
#include <local/store_connection.hpp>
#include <local/wake_map.hpp>

/// What a store holds, for people and for waiters: holds of processes that have ended are left out,
/// except those that linger on purpose.
namespace holdfast::engines::local {

[[nodiscard]] lock_info describe_name(store_connection& store, wake_map& waiters,
                                      const process_ref& observer, const std::string& name);
[[nodiscard]] list_reply list_names(store_connection& store, wake_map& waiters,
                                    const process_ref& observer, const list_request& request);

struct holders_of_name {
    /// Clients whose processes have ended without a release.
    std::vector<owner_id> dead;
    /// The processes of all others that have not let go.
    std::vector<process_ref> alive;
};
[[nodiscard]] holders_of_name examine_holders(store_connection& store, const process_ref& observer,
                                              const std::string& name);

}  // namespace holdfast::engines::local
