#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stage.hpp"

namespace lab {

/// A stock that checks tokens. It lives in a server of its own, as a database would, and refuses a
/// token that is smaller than the largest it has seen.
///
/// A holder shows its token *before* it reads. Otherwise a late writer could still slip in between the
/// read and the first write of its successor, whose token the stock has not seen yet.
class fenced_stock {
public:
    /// The database's port.
    explicit fenced_stock(std::uint16_t port) : store_{port} {}

    void fill(int amount);
    [[nodiscard]] int amount();
    /// Shows the token and reads. Empty: refused.
    [[nodiscard]] std::optional<int> enter(holdfast::fencing_token token);
    /// Whether it was written.
    bool write(holdfast::fencing_token token, int amount);

private:
    redis_client store_;
};

}  // namespace lab
