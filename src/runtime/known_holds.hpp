#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <unordered_map>

#include <core/actions.hpp>
#include <core/node_memory.hpp>
#include <runtime/hold.hpp>

namespace holdfast::detail {

class release_tally;

/// The holds of a session that are not released yet, and releases that are waited for together.
///
/// Nobody owns a hold here: the last owner to leave runs the holder's callbacks.
///
/// Not thread-safe: the caller serialises.
class known_holds {
public:
    explicit known_holds(core::node_memory& memory) : holds_{&memory} {}

    void add(core::hold_id id, const std::shared_ptr<hold>& taken) {
        holds_.emplace(id, known{taken.get(), taken});
    }
    /// The answer to its release goes to `answers`, too.
    void await_release(core::hold_id id, std::shared_ptr<release_tally> answers, std::size_t index) {
        tallies_.emplace(id, place{std::move(answers), index});
    }
    void extend(core::hold_id id, clock::time_point valid_until);
    /// The hold whose callbacks are to be run. Gone if its last owner is leaving, who does it. To be
    /// owned only by whoever runs them: the last owner must not leave under the caller's mutex.
    [[nodiscard]] std::weak_ptr<hold> lose(core::hold_id id, const failure& why);
    void end(core::hold_id id, release_outcome outcome, const failure& why = {});

private:
    /// The hold says so before it is destroyed, so the caller's mutex is enough to reach it.
    struct known {
        hold* itself{};
        std::weak_ptr<hold> owned;
    };
    struct place {
        std::shared_ptr<release_tally> in;
        std::size_t index{};
    };

    std::pmr::unordered_map<core::hold_id, known> holds_;
    std::unordered_map<core::hold_id, place> tallies_;
};

}  // namespace holdfast::detail
