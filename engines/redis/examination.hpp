#pragma once

#include <memory>

#include <holdfast/engine.hpp>
#include <redis/catalogue.hpp>

namespace holdfast::engines::redis {

/// Asks every master how it is set up.
void examine_servers(const std::shared_ptr<const catalogue>& from, call how,
                     completion<examine_reply> done);

/// What INFO, and `appendfsync` where it is known, say about locks kept there.
[[nodiscard]] std::vector<finding> judge_server(const std::string& info,
                                                const std::string& appendfsync);

}  // namespace holdfast::engines::redis
