#pragma once

#include <memory>
#include <vector>

#include <redis/catalogue.hpp>

namespace holdfast::engines::redis {

/// Renews leases, with one run of a script for all of a kind in a slot. A run that fails concerns
/// nobody else. A request that is refused already has an error.
void renew_together(const std::shared_ptr<const catalogue>& store, std::vector<renew_request> requests,
                    const std::vector<failure>& refusals, call limits,
                    completion<std::vector<renew_reply>> done);

}  // namespace holdfast::engines::redis
