#pragma once

#include <cstdint>
#include <utility>

#include <core/acquisition.hpp>
#include <core/deadline_heap.hpp>
#include <core/local_queue.hpp>
#include <core/shared.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

struct place;

using contest_id = std::uint64_t;

/// One contender at the store: for the front of a name's queue, or for one waiter.
struct contest {
    contest_id id;
    place& site;
    acquisition machine;
    shared_terms terms;
    timer wake;
    /// The waiter that it serves; zero: whoever is at the front of the queue.
    waiter_id sole{};
    /// It takes turns with others (see `asking_turns`).
    bool in_turn{};
    /// The waiter for whom the last request was sent.
    waiter_id asker{};
    /// When the engine answers this request at the latest.
    clock::time_point answer_by{};

    contest(contest_id number, place& its_place, acquisition start, shared_terms its_terms)
        : id{number},
          site{its_place},
          machine{std::move(start)},
          terms{std::move(its_terms)},
          wake{number} {}
    [[nodiscard]] bool for_queue() const noexcept { return sole == 0; }
};

}  // namespace holdfast::core
