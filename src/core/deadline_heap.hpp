#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <holdfast/clock.hpp>

namespace holdfast::core {

/// A moment somebody waits for. Lives inside the object that waits, which must not move while the
/// timer is armed.
struct timer {
    static constexpr std::size_t unarmed = static_cast<std::size_t>(-1);

    std::uint64_t id{};
    clock::time_point at{};
    std::size_t position{unarmed};

    timer() = default;
    explicit timer(std::uint64_t owner) : id{owner} {}
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;
    ~timer() = default;
};

/// Timers by time. Arming, moving and disarming cost O(log n) and leave nothing stale behind, so a
/// lock that is taken and released a million times keeps the heap empty.
class deadline_heap {
public:
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
    /// The earliest moment, or `time_point::max()`.
    [[nodiscard]] clock::time_point next() const noexcept {
        return heap_.empty() ? clock::time_point::max() : heap_.front()->at;
    }

    void arm(timer& moment, clock::time_point at) {
        moment.at = at;
        if (moment.position == timer::unarmed) {
            moment.position = heap_.size();
            heap_.push_back(&moment);
        }
        sift_down(sift_up(moment.position));
    }

    void disarm(timer& moment) noexcept {
        if (moment.position == timer::unarmed) {
            return;
        }
        const auto hole = moment.position;
        moment.position = timer::unarmed;
        timer* last = heap_.back();
        heap_.pop_back();
        if (last != &moment) {
            place(hole, last);
            sift_down(sift_up(hole));
        }
    }

    /// Removes and returns the earliest timer if its moment has come.
    [[nodiscard]] timer* pop_due(clock::time_point now) noexcept {
        if (heap_.empty() || heap_.front()->at > now) {
            return nullptr;
        }
        timer* due = heap_.front();
        disarm(*due);
        return due;
    }

private:
    void place(std::size_t position, timer* moment) noexcept {
        heap_[position] = moment;
        moment->position = position;
    }

    // Ties are broken by id, so that the order never depends on addresses.
    [[nodiscard]] static bool before(const timer* a, const timer* b) noexcept {
        return a->at != b->at ? a->at < b->at : a->id < b->id;
    }

    std::size_t sift_up(std::size_t position) noexcept {
        timer* moving = heap_[position];
        while (position > 0) {
            const auto parent = (position - 1) / 2;
            if (!before(moving, heap_[parent])) {
                break;
            }
            place(position, heap_[parent]);
            position = parent;
        }
        place(position, moving);
        return position;
    }

    void sift_down(std::size_t position) noexcept {
        timer* moving = heap_[position];
        while (true) {
            auto child = 2 * position + 1;
            if (child >= heap_.size()) {
                break;
            }
            if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) {
                ++child;
            }
            if (!before(heap_[child], moving)) {
                break;
            }
            place(position, heap_[child]);
            position = child;
        }
        place(position, moving);
    }

    std::vector<timer*> heap_;
};

}  // namespace holdfast::core
