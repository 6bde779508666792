#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <core/actions.hpp>

namespace holdfast::core {

/// What a lock table says in one step, in order. Gives its parts numbers, owner ids and jitter.
class outbox {
public:
    outbox(const owner_id& client, std::uint64_t seed, bool observed)
        : client_{client}, random_{seed}, observed_{observed} {}

    /// Of a call, contest, hold, release or request: each number is used once.
    [[nodiscard]] std::uint64_t next_id() noexcept { return ++last_id_; }
    [[nodiscard]] owner_id next_owner() noexcept {
        return {client_.high, client_.low, ++last_sequence_};
    }
    /// A random fraction, 0 ≤ jitter < 1.
    [[nodiscard]] double jitter() { return static_cast<double>(random_() >> 11U) * 0x1.0p-53; }

    template <class Action>
    void add(Action&& news) {
        actions_.emplace_back(std::forward<Action>(news));
    }
    /// Nothing if there is no observer.
    void tell(event_kind kind, const std::string& name, const owner_id& owner, fencing_token token,
              clock::duration duration = {}, failure error = {}) {
        if (observed_) {
            add(tell_observer{{kind, name, owner, token, std::move(error), duration}});
        }
    }
    /// About a call that has no owner id.
    void tell(event_kind kind, const std::string& name, clock::duration duration = {},
              failure error = {}) {
        tell(kind, name, client_, {}, duration, std::move(error));
    }

    /// Everything since the last time. `spare` lends its memory.
    [[nodiscard]] std::vector<action> take(std::vector<action> spare) {
        spare.clear();
        std::swap(spare, actions_);
        return spare;
    }

private:
    owner_id client_;
    std::mt19937_64 random_;
    bool observed_;
    std::uint64_t last_id_{};
    std::int64_t last_sequence_{};
    std::vector<action> actions_;
};

}  // namespace holdfast::core
