#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <runtime/store_access.hpp>

namespace holdfast::detail {

/// Questions to the store that need nothing from the core: what `doctor` says, who holds what, and
/// latches.
///
/// Thread safety: all functions, from any thread.
class queries {
public:
    struct settings {
        owner_id client;
        std::chrono::milliseconds request_timeout{};
        std::chrono::milliseconds outage_patience{};
    };
    queries(store_access& store, const settings& options) noexcept;

    [[nodiscard]] engines::examine_reply examine();
    [[nodiscard]] engines::inspect_reply inspect(const std::string& name,
                                                 std::optional<std::chrono::milliseconds> timeout = {});
    [[nodiscard]] engines::list_reply list(const engines::list_request& request,
                                           std::optional<std::chrono::milliseconds> timeout);
    [[nodiscard]] engines::revoke_reply revoke(const engines::revoke_request& request);
    [[nodiscard]] engines::latch_reply latch(engines::latch_request request);
    /// No error when it opened, or is not there; `errc::busy` at the deadline; `errc::lost` when it
    /// was seen counting, here or by the caller, and is gone without having opened. It may have been
    /// set again meanwhile.
    [[nodiscard]] failure wait_for_latch(const std::string& name, clock::time_point deadline,
                                         const std::stop_token& stop,
                                         std::optional<engines::latch_life> seen_counting);

    /// Ends all waiting for latches.
    void close() noexcept { closing_.request_stop(); }

private:
    struct query_limits;
    template <class Reply, class Ability, class Start>
    [[nodiscard]] Reply ask(Ability* ability, const failure& otherwise, const query_limits& limits,
                            const Start& start);
    [[nodiscard]] engines::latch_reply latch(engines::latch_request request,
                                             const query_limits& limits);

    store_access& store_;
    settings settings_;
    /// Of the process that made it; a child of it asks nothing.
    std::uint32_t generation_;
    std::atomic<std::int64_t> last_latch_request_{0};
    std::stop_source closing_;
};

}  // namespace holdfast::detail
