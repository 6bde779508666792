#pragma once

#include <deque>
#include <optional>
#include <string>

#include <context.hpp>

namespace holdfast::testing::sim {

/// What the store tells one in line, on a connection of its own.
struct turn {
    std::string name;
    owner_id owner;
    std::optional<engines::turn_grant> granted;
};

/// The line of a fair lock, as a store keeps it: who has not asked for a while is dropped at the head.
class sim_line {
public:
    struct place {
        engines::acquire_request asked;
        /// When the request left its client.
        clock::time_point asked_at;
        clock::time_point alive_until;
        /// Its client had been told already that there was no answer.
        bool too_late{};
    };

    /// The first that is alive, or null.
    [[nodiscard]] const place* head(clock::time_point now) {
        while (!places_.empty() && places_.front().alive_until <= now) {
            places_.pop_front();
        }
        return places_.empty() ? nullptr : &places_.front();
    }
    /// Keeps the place of one that is in line.
    void enter(const place& who) {
        for (auto& one : places_) {
            if (one.asked.owner == who.asked.owner) {
                const bool too_late = one.too_late || who.too_late;
                one = who;
                one.too_late = too_late;
                return;
            }
        }
        places_.push_back(who);
    }
    void leave(const owner_id& who) {
        std::erase_if(places_, [&](const place& one) { return one.asked.owner == who; });
    }
    void clear() noexcept { places_.clear(); }

private:
    std::deque<place> places_;
};

}  // namespace holdfast::testing::sim
