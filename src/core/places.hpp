#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <core/asking_turns.hpp>
#include <core/contest.hpp>
#include <core/local_queue.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <core/shared.hpp>

namespace holdfast::core {

struct hold_record;

/// The waiters for one name, and their contests.
struct line {
    local_queue queue;
    /// The contest for the queue, and those of waiters that ask each for itself.
    std::vector<contest*> contests;
    /// The waiters that ask in turn, and their contests.
    asking_turns turns;

    [[nodiscard]] bool empty() const noexcept {
        return queue.empty() && contests.empty() && turns.empty();
    }
    /// Whether the store has told any contender that somebody else has the lock.
    [[nodiscard]] bool contended() const;
};

/// What a client knows of one name. Of `contender`, `holder` and `awaits_release` at most one is set:
/// this is what works for the queue.
///
///     idle ── somebody waits ─▶ contender ── grant ─▶ holder ── release ─▶ awaits_release ─▶ idle
///                                   └─ gives up ─▶ idle │ ▲└─ loss ─▶ idle
///                                                       └─┘ hand-over
struct place {
    shared_name name;
    lock_kind kind{};
    /// Asks the store for the front of the queue.
    contest* contender{};
    /// Its lock can be handed over to the queue.
    hold_record* holder{};
    /// The lock is on its way back to the store.
    bool awaits_release{};
    bool watched{};
    /// Something has changed in this step.
    bool touched{};
    /// Processes that waited when the lock went back. They go first.
    std::uint32_t others_waiting{};
    /// Only there while it is needed.
    std::unique_ptr<line> waiting;

    [[nodiscard]] bool idle() const noexcept {
        return contender == nullptr && holder == nullptr && !awaits_release;
    }
};

/// The names that a client uses at the moment.
///
/// The parts of the table change places and touch what they have changed. At the end of the step the
/// table looks at each touched place once: an idle one with a queue needs a contest, an empty one is
/// forgotten. So a place does not go away within a step.
class places {
public:
    explicit places(outbox& out) : out_{out} {}

    /// Finds or makes it, and touches it.
    place& of(const std::string& name, lock_kind kind);
    [[nodiscard]] place* find(const std::string& name);
    [[nodiscard]] line& line_of(place& site);
    void touch(place& site);
    /// What worked for the queue is over.
    void free(place& site, std::uint32_t others_waiting = 0);
    /// Takes one that was touched; null: there are no more.
    [[nodiscard]] place* take_touched() noexcept;
    /// Starts or stops the watch on it, and forgets what is not needed any more.
    void tidy(place& site);

    [[nodiscard]] bool wants_watch(const std::string& name) const;
    [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }

private:
    void put_away(std::unique_ptr<line> unused) noexcept;

    outbox& out_;
    std::vector<place*> touched_;
    std::size_t next_touched_{};
    /// The name that was asked for last.
    shared_name latest_name_;
    /// Nobody waits in it. Its memory is for the next ones.
    std::unique_ptr<line> spare_line_;
    node_memory memory_;
    std::pmr::unordered_map<std::string_view, place> places_{&memory_};
};

}  // namespace holdfast::core
