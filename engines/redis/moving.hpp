#pragma once

#include <memory>

#include <holdfast/engine.hpp>
#include <redis/catalogue.hpp>
#include <redis/resp/value.hpp>

/// Renewal and release while a slot moves from one server of a cluster to another.
///
/// The keys of a lock are on two servers then, and a script that names several of them is refused
/// (TRYAGAIN). Acquisitions have to wait: whether others are alive cannot be told. A holder must not
/// lose its lease for that, so its keys are renewed and released one by one, each on its own server.
namespace holdfast::engines::redis {

/// Whether the server refused a script for this reason. Nothing was changed.
[[nodiscard]] bool says_moving(const connection::result& result) noexcept;

void renew_while_moving(const std::shared_ptr<const catalogue>& from, renew_request request,
                        call limits, completion<renew_reply> done);
void release_while_moving(const std::shared_ptr<const catalogue>& from, release_request request,
                          call limits, completion<release_reply> done);

}  // namespace holdfast::engines::redis
