#pragma once

#include <compare>
#include <cstdint>

namespace holdfast {
inline namespace v0 {

/// The fencing token of one hold. Every later hold of the same lock has a larger one, so a
/// resource that remembers the largest token it has seen can refuse a holder that is late.
struct fencing_token {
    std::uint64_t value{};

    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;
};

}  // namespace v0
}  // namespace holdfast
