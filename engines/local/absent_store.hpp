#pragma once

#include <memory>
#include <string>

#include <holdfast/engine.hpp>

namespace holdfast::engines::local {

/// A store that nobody has used yet, for a client that only looks: no locks are in it, and nothing is
/// made. Whoever wants to take something is refused.
[[nodiscard]] std::unique_ptr<engine> make_absent_store(const std::string& directory,
                                                        guarantees promises);

}  // namespace holdfast::engines::local
