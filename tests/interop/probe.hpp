#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <support/redis_client.hpp>

namespace holdfast::interop {

/// Looks into a server from outside, and in a cluster follows the redirections to the node that has
/// the key.
///
/// Thread safety: none; make one for each thread.
class probe {
public:
    explicit probe(std::uint16_t port);

    /// The answer as text: nothing for nil, blanks between the elements of an array. Throws
    /// `std::runtime_error` when the server answers with an error.
    std::string text(const std::vector<std::string>& command);
    std::int64_t number(const std::vector<std::string>& command);
    /// How many connections listen to a channel, in the classic or the sharded way. In a cluster:
    /// connections to the node whose key was last asked for.
    [[nodiscard]] std::int64_t listeners(const std::string& channel);
    [[nodiscard]] std::int64_t sharded_listeners(const std::string& channel);
    /// How many scripts this node has run so far, which is what clients ask for locks with.
    [[nodiscard]] std::int64_t scripts_run();

private:
    testing_support::redis_client connection_;
};

}  // namespace holdfast::interop
