#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include <holdfast/engine.hpp>
#include <redis/script_call.hpp>
#include <redis/topology/router.hpp>

namespace holdfast::engines::redis {

/// Runs scripts, each on the server that is responsible for a slot.
///
/// Thread safety: all functions may be called from any thread.
class script_runner {
public:
    using answered = std::function<void(connection::result)>;

    explicit script_runner(router& servers) : servers_{servers} {}

    /// The first reply is the script's answer. Tells the server its text if it does not know it.
    void run(script_call script, std::uint16_t slot, const call& limits, answered done,
             router::lane lane = router::lane::common);
    /// Scripts that were sent, or are to be, and are not answered.
    [[nodiscard]] bool under_way() const noexcept {
        return under_way_.load(std::memory_order_acquire) > 0;
    }

private:
    router& servers_;
    std::atomic<int> under_way_{0};
};

}  // namespace holdfast::engines::redis
