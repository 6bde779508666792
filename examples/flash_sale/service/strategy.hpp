#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/client.hpp>

#include "stock.hpp"

namespace flash_sale {

/// What a buyer is told.
struct sale {
    enum class outcome : std::uint8_t {
        sold,
        sold_out,
        /// Nothing was sold to this buyer for a reason that has nothing to do with the goods.
        try_again,
    } result{outcome::try_again};
    std::string order;
    std::int64_t remaining{};
};

[[nodiscard]] std::string_view to_string(sale::outcome result) noexcept;

/// A way to sell one unit to one buyer.
/// Errors: `std::system_error`; the buyer may ask again. Thread safety: called from many threads.
class strategy {
public:
    strategy() = default;
    strategy(const strategy&) = delete;
    strategy& operator=(const strategy&) = delete;
    virtual ~strategy() = default;

    virtual sale sell(const std::string& request) = 0;
};

/// Gives out numbers that no instance, past or present, gives twice.
class order_numbers {
public:
    explicit order_numbers(std::uint16_t port);
    [[nodiscard]] std::string next();

private:
    std::string prefix_;
    std::atomic<std::uint64_t> count_{};
};

/// What every strategy has to work with.
struct shop {
    stock* goods{};
    /// Stocks that decide by themselves; each may be `goods`, or missing.
    stock* sql_goods{};
    stock* redis_goods{};
    /// Missing when no such lock store is configured.
    holdfast::client* locks{};
    holdfast::client* quorum{};
    order_numbers* numbers{};
    /// The store of the tutorial's lock.
    std::string spin_address;
    /// As many as there are threads: a holder that waits for a connection behind those who ask for the
    /// lock would make the tutorial's lock look worse than it is.
    std::size_t spin_connections{200};
    holdfast::lease_options lease{};
    std::chrono::milliseconds patience{60'000};
    /// The work of one sale besides the stock: a price, a risk check, a reservation elsewhere.
    std::chrono::microseconds work{1000};
    std::size_t segments{5};

    void do_the_work() const;
};

struct named_strategy {
    std::string name;
    std::unique_ptr<strategy> way;
};

/// All strategies whose stores the shop has.
[[nodiscard]] std::vector<named_strategy> make_strategies(const shop& with);

/// Reads the number, works, writes the number minus one: right as long as nobody else does the same
/// meanwhile.
[[nodiscard]] sale look_then_write(const shop& in, const std::string& request);
/// The same for the holder of a lock, whose token the stock checks.
[[nodiscard]] sale look_then_write_under(const shop& in, holdfast::fencing_token token,
                                         const std::string& request);

// Defined next to the ideas they belong to.
void add_without_distributed_lock(const shop& with, std::vector<named_strategy>& all);
void add_locked(const shop& with, std::vector<named_strategy>& all);
void add_guarded(const shop& with, std::vector<named_strategy>& all);
void add_divided(const shop& with, std::vector<named_strategy>& all);

}  // namespace flash_sale
