#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/export.hpp>

namespace holdfast::detail {
class session;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;

/// A counter under a name that opens a gate when it reaches zero.
///
///                 │ not there, or open          │ counting n                  │ its lifetime ends
///     try_set(k)  │ counting k, `true`          │ `false`                     │ then it is not there
///     count_down  │ nothing                     │ n − 1; at zero it is open   │
///     count       │ 0                           │ n                           │
///     wait        │ returns                     │ waits                       │ throws `errc::lost`
///
/// The name may be used again once it is open, unlike `std::latch`. A wait that has seen it count ends
/// with that opening, also when the name is set again at once (by a Java program: only if the wait
/// looks in between).
///
/// A wait that has seen the latch count returns only if it opened. When the latch is gone instead, at
/// the end of its lifetime or because the store lost its data, the wait throws `errc::lost`, about a
/// second later at the latest: nobody may take that for "everybody has arrived". (A process that was
/// stopped for more than two minutes may be told so of a latch that opened meanwhile.) One that begins
/// after that finds no latch and returns at once, and so does one that begins before `try_set`: let
/// the program that starts the others set it first. Of a latch that a Java program has set, nobody can
/// tell why it is gone; there the wait returns.
///
/// The object holds nothing: it may be destroyed, and threads may end, while the latch counts. A
/// deadline and a stop token end `wait` also while the store does not answer.
class HOLDFAST_EXPORT latch {
public:
    /// The largest count. Beyond it `errc::invalid_argument`: a negative number is there, as an
    /// unsigned one.
    static constexpr std::uint32_t most = 2'147'483'647;

    latch(client& owner, std::string name);
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;
    ~latch();

    /// Starts to count, unless it counts already. `count` is from 1 to `most`. The store forgets it
    /// `lifetime` after this call, however often it was counted down: choose more than the longest time
    /// from here to the last `count_down`, waits included. It only matters when somebody never arrives.
    [[nodiscard]] bool try_set(std::uint32_t count,
                               std::chrono::milliseconds lifetime = std::chrono::hours{24});
    /// Stops at zero, however large `by` (at most `most`) is. Nothing when the latch is not there, or
    /// not there any more.
    void count_down(std::uint32_t by = 1);
    [[nodiscard]] std::uint32_t count() const;
    /// Whether it is open or not there. One look cannot tell one from the other.
    [[nodiscard]] bool try_wait() const { return count() == 0; }
    void wait() const;
    /// False when `stop` was triggered first.
    [[nodiscard]] bool wait_unless_stopped(std::stop_token stop) const;
    /// False when it did not open in time.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& wait,
                                std::stop_token stop = {}) const {
        return wait_until(detail::deadline_after(wait), std::move(stop));
    }
    void arrive_and_wait(std::uint32_t by = 1);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    [[nodiscard]] bool wait_until(clock::time_point deadline, std::stop_token stop) const;

    std::shared_ptr<detail::session> session_;
    std::string name_;
};

}  // namespace v0
}  // namespace holdfast
