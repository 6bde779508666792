#pragma once

#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "lease_news.hpp"
#include "messages.hpp"
#include "once_per.hpp"
#include "run_report.hpp"
#include "signals.hpp"

namespace holdfast::cli {

/// What the steps of one `holdfast run` share. Every step fills in its part of the report.
struct run_session {
    const run_arguments& arguments;
    const messages& out;
    run_report& report;
    const signal_source signals{};
    const std::shared_ptr<lease_news> news{std::make_shared<lease_news>(arguments.name, out)};
    /// Empty until the store is open.
    std::unique_ptr<client> store{};
    /// Empty until the lock is granted.
    std::optional<lease> held{};
    clock::time_point acquired_at{};
    /// Empty without `--once-per`.
    std::optional<once_per> once{};
};

/// How long this step took.
[[nodiscard]] inline std::chrono::milliseconds since(clock::time_point start) {
    return std::chrono::floor<std::chrono::milliseconds>(clock::now() - start);
}

/// Whether trying again may help: the store cannot be reached, or did not answer.
[[nodiscard]] inline bool is_passing(const std::error_code& error) {
    return error == errc::store_unavailable || error == errc::outcome_unknown;
}

}  // namespace holdfast::cli
