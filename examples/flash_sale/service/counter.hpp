#pragma once

#include <string>
#include <vector>

#include "metrics.hpp"
#include "server.hpp"
#include "strategy.hpp"

namespace flash_sale {

/// Serves the buyers: finds the strategy that an address names, and writes its answer.
///
///     /redis/distributed/lock/inventory/sale[/<strategy>][?request=<id>]     /health     /metrics
///
/// A buyer who asks again because no answer came uses the same id.
class counter {
public:
    struct settings {
        std::uint16_t port{};
        /// For the address without a name.
        std::string strategy{"holdfast"};
    };

    counter(settings options, std::vector<named_strategy> strategies, metrics& figures)
        : options_{std::move(options)}, strategies_{std::move(strategies)}, figures_{figures} {}

    /// Thread safety: called from many threads.
    [[nodiscard]] reply answer(const std::string& target);

private:
    [[nodiscard]] reply sell(const std::string& name, const std::string& request);
    [[nodiscard]] strategy* find(const std::string& name) const;

    settings options_;
    std::vector<named_strategy> strategies_;
    metrics& figures_;
    std::atomic<std::uint64_t> anonymous_{};
};

}  // namespace flash_sale
