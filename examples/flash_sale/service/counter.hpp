#pragma once

#include <string>
#include <vector>

#include "metrics.hpp"
#include "server.hpp"
#include "strategy.hpp"

namespace flash_sale {

/// Where buyers come to: finds the strategy that an address names, and puts its answer into words.
///
///     /redis/distributed/lock/inventory/sale[/<strategy>][?request=<id>]     /health     /metrics
///
/// Who asks again because no answer came uses the same id again.
class counter {
public:
    struct settings {
        std::uint16_t port{};
        /// For the address without a name.
        std::string strategy{"holdfast"};
    };

    counter(settings how, std::vector<named_strategy> strategies, metrics& figures)
        : how_{std::move(how)}, strategies_{std::move(strategies)}, figures_{figures} {}

    /// Thread safety: called from many threads.
    [[nodiscard]] reply answer(const std::string& target);

private:
    [[nodiscard]] reply sell(const std::string& name, const std::string& request);
    [[nodiscard]] strategy* find(const std::string& name) const;

    settings how_;
    std::vector<named_strategy> strategies_;
    metrics& figures_;
    std::atomic<std::uint64_t> anonymous_{};
};

}  // namespace flash_sale
