#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <runtime/session.hpp>

/// What the public lock classes have in common.
namespace holdfast::detail {

/// Throws when the name or the options make no sense for the session's store.
void check(const session& from, std::string_view name, const lease_options& options);

/// The kind of claim a lock class makes.
struct claim_kind {
    claim_mode mode{claim_mode::exclusive};
    std::uint32_t permits{1};
    std::uint32_t limit{};
    lock_kind kind{lock_kind::mutex};
};

/// How long to wait: not at all, until a deadline, or as long as it takes.
struct patience {
    bool wait{true};
    std::optional<clock::time_point> deadline{};

    [[nodiscard]] static patience none() { return {false, {}}; }
    [[nodiscard]] static patience unlimited() { return {true, {}}; }
    [[nodiscard]] static patience until(clock::time_point deadline);
};

/// What is asked of the core. Throws when the options make no sense for the session's store.
[[nodiscard]] core::claim claim_for(const session& from, const std::string& name,
                                    const lease_options& options, const claim_kind& kind,
                                    const patience& how_long);

/// The hold, or null when the lock was busy or `stop` was triggered. Throws on everything else.
[[nodiscard]] std::shared_ptr<hold> take(const std::shared_ptr<session>& from, const std::string& name,
                                         const lease_options& options, const claim_kind& kind,
                                         const patience& how_long, const std::stop_token& stop = {});

/// A lease made of a hold, or empty.
[[nodiscard]] std::optional<lease> to_lease(std::shared_ptr<hold> taken);

/// "lock "x" on store": what every error begins with.
[[nodiscard]] std::string describe(const session& from, std::string_view name);
/// Why a hold was lost, as far as the store said so, and what to do.
[[nodiscard]] std::string with_reason(const hold& lost, const std::string& advice);

/// For mistakes of the program's, in every kind of build.
[[noreturn]] void programming_error(const char* mistake) noexcept;

}  // namespace holdfast::detail
