#pragma once

#include <memory>
#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

namespace holdfast::detail {

/// The inside of public classes. For the library alone.
struct access {
    [[nodiscard]] static const std::shared_ptr<session>& session_of(const client& of) noexcept {
        return of.session_;
    }
    [[nodiscard]] static const std::shared_ptr<hold>& hold_of(const lease& of) noexcept {
        return of.hold_;
    }
    [[nodiscard]] static lease lease_of(std::shared_ptr<hold> held) noexcept {
        return lease{std::move(held)};
    }
};

}  // namespace holdfast::detail
