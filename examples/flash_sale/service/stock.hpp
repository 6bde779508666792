#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <holdfast/guard/storage_lease.hpp>
#include <holdfast/token.hpp>

namespace flash_sale {

struct order {
    std::string id;
    /// The id of the buyer's request: the same when the buyer asks again because no answer came.
    std::string request;
};

enum class verdict : std::uint8_t {
    booked,
    /// Somebody else has written since; nothing was written now.
    refused,
};

/// The goods: how many units are left, and the orders that were taken for them. Every strategy sells
/// from the same tables with the same statements; they differ only in what they do around them.
///
/// `book…` sets the number that is left and records the orders, in one step that a crash cannot tear.
/// The caller read the number and subtracted. The tutorials do so, and this is what a lock is needed
/// for.
///
/// Errors: `std::system_error`. Thread safety: all functions may be called from any thread.
class stock {
public:
    stock() = default;
    stock(const stock&) = delete;
    stock& operator=(const stock&) = delete;
    virtual ~stock() = default;

    [[nodiscard]] virtual std::int64_t units(std::size_t segment) = 0;
    virtual void book(std::size_t segment, std::int64_t remaining, std::span<const order> orders) = 0;

    /// For the holder of a lock: from now on smaller tokens are refused, and this many are left.
    /// Empty when a larger token was seen: the lock is somebody else's.
    [[nodiscard]] virtual std::optional<std::int64_t> units_under(std::size_t segment,
                                                                  holdfast::fencing_token token) = 0;
    [[nodiscard]] virtual verdict book_under(std::size_t segment, holdfast::fencing_token token,
                                             std::int64_t remaining, std::span<const order> orders) = 0;

    /// The number together with how often it was changed.
    struct version {
        holdfast::guard::lease_sequence sequence;
        std::int64_t units{};
    };
    [[nodiscard]] virtual version units_and_sequence(std::size_t segment) = 0;
    [[nodiscard]] virtual verdict book_if_unchanged(std::size_t segment, const version& seen,
                                                    const order& taken) = 0;

    struct once_booking {
        enum class result : std::uint8_t { booked, refused, sold_out, already_booked } answer{};
        /// The order of this request, whoever booked it.
        std::string order_id;
    };
    /// `seen` units were there under the token; sells one of them unless the request has its order.
    [[nodiscard]] virtual once_booking book_once(std::size_t segment, holdfast::fencing_token token,
                                                 std::int64_t seen, const order& wanted) = 0;

    /// Takes a unit if there is one, without any lock: the store decides. What is left, or empty.
    [[nodiscard]] virtual std::optional<std::int64_t> book_if_any(std::size_t segment,
                                                                  const order& wanted) = 0;
};

/// A file that all instances on this host share.
[[nodiscard]] std::unique_ptr<stock> open_sqlite_stock(const std::string& file,
                                                       std::size_t connections);
/// `mariadb://user[:password]@host:port/database`.
[[nodiscard]] std::unique_ptr<stock> open_mariadb_stock(const std::string& address,
                                                        std::size_t connections);
/// `postgresql://user[:password]@host:port/database`, or whatever else libpq understands.
[[nodiscard]] std::unique_ptr<stock> open_postgresql_stock(const std::string& address,
                                                           std::size_t connections);
/// `redis://host:port`. A hash for each segment: units, lease_seq, and `order:<id>` for each order.
[[nodiscard]] std::unique_ptr<stock> open_redis_stock(const std::string& address,
                                                      std::size_t connections);

}  // namespace flash_sale
