#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <core/claim.hpp>
#include <core/contest.hpp>

namespace holdfast::core {

/// The waiters of this process for permits or a share of one name.
///
/// Every waiter needs a grant of its own. But a thousand of them would keep the store busy with
/// refusals, so only a few ask at a time. The others are *newcomers*, in the order in which they came.
///
/// - "Busy" keeps all from asking who want as much or more.
/// - A grant lets more of them ask: the window doubles. For readers it opens fully, because the store
///   admits all of them or none.
/// - As long as there are newcomers, somebody contends.
///
/// Decides who may ask. `contests` sends the requests.
class asking_turns {
public:
    void add_newcomer(waiter_id id, const claim& request);
    /// No effect if it is no newcomer.
    void remove_newcomer(waiter_id id);
    [[nodiscard]] std::vector<waiter_id> newcomers() const;
    void add(contest& contender);
    void remove(const contest& contender);
    [[nodiscard]] const std::vector<contest*>& contests() const noexcept { return contests_; }
    [[nodiscard]] bool empty() const noexcept { return contests_.empty() && newcomers_.empty(); }

    /// The store has granted a request for this mode, so there may be more.
    void widen(claim_mode mode) noexcept;
    /// The store was busy, or nobody knows: one contender at a time.
    void narrow() noexcept { window_ = 1; }
    /// As if it were new. Nobody waits.
    void reset() noexcept { window_ = unlimited; }

    /// Takes the first newcomer that may ask now.
    [[nodiscard]] std::optional<waiter_id> take_next(std::uint32_t most_asking);
    /// Takes the first newcomer that wants less than `permits`, whatever the window. One who is told
    /// "busy" and asks again at once may do so for ever: it must not keep the others from asking.
    [[nodiscard]] std::optional<waiter_id> take_smaller(std::uint32_t permits,
                                                        std::uint32_t most_asking);
    /// The first contender that was refused, if one more may ask now.
    [[nodiscard]] contest* next_refused(std::uint32_t most_asking) const;
    /// The first contender that was refused and wants less than `permits`: what is too little for one
    /// may do for another.
    [[nodiscard]] contest* smaller_refused(std::uint32_t permits) const;

private:
    struct newcomer {
        waiter_id id{};
        claim_mode mode{};
        std::uint32_t permits{};
        std::uint32_t limit{};
    };
    static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

    [[nodiscard]] std::size_t count_asking() const;
    [[nodiscard]] bool window_open(std::uint32_t most_asking) const;
    [[nodiscard]] bool is_refused(const newcomer& wish) const;

    std::vector<contest*> contests_;
    std::vector<newcomer> newcomers_;
    std::uint32_t window_{unlimited};
};

}  // namespace holdfast::core
