#pragma once

#include <cstdint>
#include <optional>

#include <holdfast/error.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// How the group of sentinels is, in the words of one of them.
struct sentinel_checkup {
    node_address where;
    /// Why it says nothing; the rest is empty then.
    failure silence;
    /// How many other sentinels it knows. Nothing where we may not ask.
    std::optional<std::uint32_t> others;
    /// The answer to SENTINEL CKQUORUM: whether they could agree on a new master.
    value quorum;
};

}  // namespace holdfast::engines::redis
