#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <list>
#include <unordered_map>
#include <utility>

#include "checker.hpp"
#include "fiber.hpp"

/// The inside of the checker: threads, what they know, and which choices are left.
namespace holdfast::model {

inline constexpr std::size_t most_threads = 32;
/// Stand for the ends of threads.
inline constexpr std::array<char, most_threads> ends{};

/// For each object the newest of its values that is known.
using view = std::vector<std::uint32_t>;

inline void merge(view& into, const view& from) {
    if (into.size() < from.size()) {
        into.resize(from.size());
    }
    for (std::size_t each = 0; each < from.size(); ++each) {
        into[each] = std::max(into[each], from[each]);
    }
}

inline std::uint32_t& at(view& known, std::size_t object) {
    if (known.size() <= object) {
        known.resize(object + 1);
    }
    return known[object];
}

struct message {
    std::uint64_t value{};
    view known;
};

struct object {
    std::vector<message> values;
    /// What `seq_cst` operations have seen.
    std::uint32_t agreed{};
    /// Of a mutex or bell.
    view known;
};

struct step {
    static constexpr std::size_t nothing = SIZE_MAX;

    /// What it touches: nothing, when a thread begins.
    std::size_t object{nothing};
    access kind{access::write};

    [[nodiscard]] bool commutes(const step& other) const noexcept {
        return object != other.object || object == nothing ||
               (kind == access::read && other.kind == access::read);
    }
};

struct thread {
    std::function<void()> work;
    std::unique_ptr<fiber> on;
    step next{};
    const std::function<bool()>* ready{};
    bool may_time_out{};
    bool timed_out{};
    bool over{};
    view known;
};

using sleepers = std::map<std::size_t, step>;

/// A choice and how far it has been explored.
struct crossing {
    std::vector<std::size_t> options;
    std::size_t taken{};
    /// Threads whose next step need not be tried here, because it was tried before what led here.
    sleepers asleep;
    /// The next steps of `options`, if these are threads.
    std::vector<step> steps;
};

class exploration;
/// The one that is under way.
inline exploration* running = nullptr;
inline std::size_t executions_so_far = 0;

class exploration {
public:
    exploration(const std::function<void()>& scenario, const limits& how)
        : scenario_{scenario}, how_{how} {}

    result run() {
        std::size_t attempts = 0;
        do {
            execute();
            ++attempts;
            result_.executions += pruned_ ? 0 : 1;
        } while (result_.problem.empty() && advance() && attempts < how_.executions);
        if (result_.problem.empty() && !path_.empty()) {
            result_.problem = "there are more executions than were allowed";
        }
        return std::move(result_);
    }

    // From the threads.
    void pass(const step& next, const std::function<bool()>* ready, bool may_time_out) {
        auto& mine = threads_[current_];
        mine.next = next;
        mine.ready = ready;
        mine.may_time_out = may_time_out;
        mine.timed_out = false;
        if (++steps_ > how_.steps) {
            fail("a thread spins, or the execution is too long");
        }
        go_on();
    }
    [[nodiscard]] bool timed_out() const { return threads_[current_].timed_out; }
    std::size_t start(std::function<void()> work) {
        if (threads_.size() == most_threads) {
            fail("too many threads");
        }
        thread made;
        made.work = std::move(work);
        made.known = threads_[current_].known;
        made.on = take_fiber();
        model::prepare(*made.on, &exploration::enter);
        threads_.push_back(std::move(made));
        return threads_.size() - 1;
    }
    std::size_t choose(std::size_t count) {
        if (count < 2) {
            return 0;
        }
        if (pruned_) {
            return 0;
        }
        if (depth_ == path_.size()) {
            crossing made;
            for (std::size_t each = 0; each < count; ++each) {
                made.options.push_back(each);
            }
            path_.push_back(std::move(made));
        }
        const auto& here = path_[depth_++];
        return here.options[here.taken];
    }
    [[noreturn]] void fail(std::string problem) {
        if (result_.problem.empty()) {
            result_.problem = std::move(problem) + describe();
        }
        switch_to_main();
        std::abort();
    }
    [[nodiscard]] std::size_t current() const noexcept { return current_; }
    [[nodiscard]] bool over(std::size_t which) const noexcept { return threads_[which].over; }
    [[nodiscard]] view& known() { return threads_[current_].known; }
    void learn_from(std::size_t which) { merge(known(), threads_[which].known); }
    std::size_t number(const void* address) {
        const auto [found, added] = numbers_.try_emplace(address, objects_.size());
        if (added) {
            objects_.emplace_back();
        }
        return found->second;
    }
    object& find(std::size_t number) { return objects_[number]; }
    object& atomic(std::size_t number, std::uint64_t first) {
        auto& found = objects_[number];
        if (found.values.empty()) {
            found.values.push_back({first, {}});
        }
        return found;
    }
    void forget(const void* address) { numbers_.erase(address); }
    [[nodiscard]] bool in_thread() const noexcept { return in_thread_; }
    void prepare(bool begins) noexcept { in_thread_ = !begins; }
    void when_all_sleep(std::function<bool()> time_goes_on) { time_goes_on_ = std::move(time_goes_on); }

    static void enter();

private:
    void execute() {
        ++executions_so_far;
        threads_.clear();
        threads_.reserve(most_threads);
        objects_.clear();
        numbers_.clear();
        depth_ = 0;
        steps_ = 0;
        preempted_ = 0;
        surprises_ = 0;
        pruned_ = false;
        asleep_.clear();
        time_goes_on_ = nullptr;
        thread first;
        first.work = scenario_;
        first.on = take_fiber();
        model::prepare(*first.on, &exploration::enter);
        threads_.push_back(std::move(first));
        current_ = 0;
        in_thread_ = true;
        switch_fiber(main_, *threads_[0].on);
        in_thread_ = false;
        if (result_.problem.empty()) {
            for (auto& each : threads_) {
                each.work = nullptr;
                spare_.push_back(std::move(each.on));
            }
            threads_.clear();
        } else {
            // Threads that sleep cannot be made to leave: what they own is kept for ever.
            static auto& left_behind = *new std::list<std::vector<thread>>;
            left_behind.push_back(std::move(threads_));
        }
    }

    /// True when there is another way to go.
    bool advance() {
        while (!path_.empty()) {
            auto& last = path_.back();
            if (++last.taken < last.options.size()) {
                return true;
            }
            path_.pop_back();
        }
        return false;
    }

    [[nodiscard]] bool is_ready(std::size_t which) const {
        const auto& one = threads_[which];
        return !one.over && (one.ready == nullptr || (*one.ready)());
    }

    /// The current one first.
    void find_able() {
        able_.clear();
        if (is_ready(current_)) {
            able_.push_back(current_);
        }
        for (std::size_t each = 0; each < threads_.size(); ++each) {
            if (each != current_ && is_ready(each)) {
                able_.push_back(each);
            }
        }
    }

    /// Chooses who goes on, and goes there.
    void go_on() {
        find_able();
        if (able_.empty() && time_goes_on_ && time_goes_on_()) {
            find_able();
        }
        if (able_.empty()) {
            if (!std::all_of(threads_.begin(), threads_.end(),
                             [](const thread& one) { return one.over; })) {
                fail("all threads sleep: a wake-up was lost");
            }
            switch_to_main();
            return;
        }
        const bool stays = able_.front() == current_;
        if (stays && how_.preemptions && preempted_ >= *how_.preemptions) {
            able_.resize(1);
        }
        const bool bounded = how_.preemptions && preempted_ >= *how_.preemptions;
        if (surprises_ < how_.surprises && !bounded) {
            for (std::size_t each = 0; each < threads_.size(); ++each) {
                if (threads_[each].may_time_out && !threads_[each].over && !is_ready(each)) {
                    able_.push_back(each);
                }
            }
        }
        const std::size_t next = pick(able_);
        if (!is_ready(next)) {
            ++surprises_;
            threads_[next].timed_out = true;
        } else if (stays && next != current_) {
            ++preempted_;
        }
        if (next == current_) {
            return;
        }
        auto& from = *threads_[current_].on;
        current_ = next;
        switch_fiber(from, *threads_[next].on);
    }

    std::size_t pick(const std::vector<std::size_t>& able) {
        if (pruned_) {
            // In turn, so that nobody spins for ever.
            const auto after = std::find_if(able.begin(), able.end(),
                                            [&](std::size_t each) { return each > current_; });
            return after != able.end() ? *after : *std::min_element(able.begin(), able.end());
        }
        if (depth_ == path_.size()) {
            crossing made;
            made.asleep = asleep_;
            for (const std::size_t each : able) {
                if (!made.asleep.contains(each)) {
                    made.options.push_back(each);
                    made.steps.push_back(threads_[each].next);
                }
            }
            if (made.options.empty()) {
                pruned_ = true;  // explored before, in another order: only brought to its end
                return pick(able);
            }
            path_.push_back(std::move(made));
        }
        const auto& here = path_[depth_++];
        const step chosen = here.steps[here.taken];
        if (!how_.preemptions) {
            sleepers all = here.asleep;
            for (std::size_t each = 0; each < here.taken; ++each) {
                all.emplace(here.options[each], here.steps[each]);
            }
            asleep_.clear();
            for (const auto& [who, what] : all) {
                if (what.commutes(chosen)) {
                    asleep_.emplace(who, what);
                }
            }
        }
        if (std::find(able.begin(), able.end(), here.options[here.taken]) == able.end()) {
            fail("the scenario does not do the same when it is repeated");
        }
        return here.options[here.taken];
    }

    [[nodiscard]] std::string describe() const {
        std::string text = " (execution " + std::to_string(result_.executions + 1) + ", after " +
                           std::to_string(steps_) + " steps;";
        for (std::size_t each = 0; each < threads_.size(); ++each) {
            text += " thread " + std::to_string(each) +
                    (threads_[each].over ? " ended" : " at object ") +
                    (threads_[each].over ? "" : std::to_string(threads_[each].next.object));
        }
        return text + ")";
    }

    std::unique_ptr<fiber> take_fiber() {
        if (spare_.empty()) {
            return std::make_unique<fiber>(fiber::own_stack);
        }
        auto taken = std::move(spare_.back());
        spare_.pop_back();
        return taken;
    }

    void switch_to_main() { switch_fiber(*threads_[current_].on, main_); }

    const std::function<void()>& scenario_;
    const limits how_;
    result result_;
    std::vector<crossing> path_;
    std::size_t depth_{};

    std::vector<thread> threads_;
    std::size_t current_{};
    /// Who could go on. Not a local variable: a thread that is over never comes back to free it.
    std::vector<std::size_t> able_;
    bool in_thread_{};
    std::vector<object> objects_;
    std::unordered_map<const void*, std::size_t> numbers_;
    std::size_t steps_{};
    unsigned preempted_{};
    unsigned surprises_{};
    bool pruned_{};
    sleepers asleep_;
    std::function<bool()> time_goes_on_;

    fiber main_;
    std::vector<std::unique_ptr<fiber>> spare_;
};

}  // namespace holdfast::model
