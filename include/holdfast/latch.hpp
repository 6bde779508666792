#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>

namespace holdfast {

class client;

namespace detail {
class session;
}

/// A counter under a name that opens a gate when it reaches zero.
///
///                 │ not there (open)            │ counting n
///     try_set(k)  │ counting k, `true`          │ `false`
///     count_down  │ nothing                     │ n − 1; at zero it is open and gone
///     wait        │ returns                     │ waits
///
/// The name may be used again once it is open, unlike `std::latch`.
///
/// The object holds nothing: it may be destroyed, and threads may end, while the latch counts. A
/// deadline and a stop token end `wait` also while the store does not answer.
class latch {
public:
    latch(client& owner, std::string name);
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;
    ~latch();

    /// Starts to count, unless it counts already. If nobody ever counts it down it disappears after
    /// `lifetime`.
    [[nodiscard]] bool try_set(std::uint32_t count,
                               std::chrono::milliseconds lifetime = std::chrono::hours{24});
    void count_down(std::uint32_t by = 1);
    [[nodiscard]] std::uint32_t count() const;
    /// Whether it is open.
    [[nodiscard]] bool try_wait() const { return count() == 0; }
    void wait() const;
    /// False when `stop` was triggered first.
    [[nodiscard]] bool wait(std::stop_token stop) const;
    /// False when it did not open in time.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& wait,
                                std::stop_token stop = {}) const {
        return wait_until(detail::deadline_after(wait), std::move(stop));
    }
    void arrive_and_wait(std::uint32_t by = 1) {
        count_down(by);
        wait();
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    [[nodiscard]] bool wait_until(clock::time_point deadline, std::stop_token stop) const;

    std::shared_ptr<detail::session> session_;
    std::string name_;
};

}  // namespace holdfast
