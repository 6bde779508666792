#pragma once

#include <memory>
#include <string>

#include <core/terms.hpp>

namespace holdfast::core {

/// A process may hold a hundred thousand leases: what several records say about a lock is kept once.
using shared_name = std::shared_ptr<const std::string>;
using shared_terms = std::shared_ptr<const terms>;

}  // namespace holdfast::core
