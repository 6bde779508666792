#include "checker.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace holdfast::model {

namespace {

constexpr std::size_t stack_size = 256 * 1024;
constexpr std::size_t most_threads = 32;
/// Stand for the ends of threads.
constexpr std::array<char, most_threads> ends{};

/// For each object the newest of its values that is known.
using view = std::vector<std::uint32_t>;

void merge(view& into, const view& from) {
    if (into.size() < from.size()) {
        into.resize(from.size());
    }
    for (std::size_t each = 0; each < from.size(); ++each) {
        into[each] = std::max(into[each], from[each]);
    }
}

std::uint32_t& at(view& known, std::size_t object) {
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

struct fiber {
    std::unique_ptr<char[]> stack{std::make_unique<char[]>(stack_size)};
    ::ucontext_t context{};
    void* sanitizer{};
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
exploration* running = nullptr;
std::size_t executions_so_far = 0;

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
        prepare(*made.on);
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
        prepare(*first.on);
        threads_.push_back(std::move(first));
        current_ = 0;
        in_thread_ = true;
        leave_main();
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
        switch_thread(from, *threads_[next].on);
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
            return std::make_unique<fiber>();
        }
        auto taken = std::move(spare_.back());
        spare_.pop_back();
        return taken;
    }

    static void prepare(fiber& made) {
        ::getcontext(&made.context);
        made.context.uc_stack.ss_sp = made.stack.get();
        made.context.uc_stack.ss_size = stack_size;
        made.context.uc_link = nullptr;
        ::makecontext(&made.context, &exploration::enter, 0);
#if defined(__SANITIZE_THREAD__)
        if (made.sanitizer == nullptr) {
            made.sanitizer = __tsan_create_fiber(0);
        }
#endif
    }

    struct outside {
        ::ucontext_t context{};
        void* sanitizer{};
        const void* bottom{};
        std::size_t size{};
    };

    void switch_to_main() {
        auto& from = *threads_[current_].on;
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&from.sanitizer, main_.bottom, main_.size);
#elif defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(main_.sanitizer, 0);
#endif
        ::swapcontext(&from.context, &main_.context);
    }

    void leave_main() {
        auto& to = *threads_[current_].on;
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&main_.sanitizer, to.stack.get(), stack_size);
#elif defined(__SANITIZE_THREAD__)
        main_.sanitizer = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
        ::swapcontext(&main_.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(main_.sanitizer, nullptr, nullptr);
#endif
    }

    void switch_thread(fiber& from, fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&from.sanitizer, to.stack.get(), stack_size);
#elif defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
        ::swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
    }

    /// The first that a thread does on its stack.
    void arrive() {
#if defined(__SANITIZE_ADDRESS__)
        const void* bottom = nullptr;
        std::size_t size = 0;
        __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
        if (main_.bottom == nullptr) {
            main_.bottom = bottom;
            main_.size = size;
        }
#endif
    }

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

    outside main_;
    std::vector<std::unique_ptr<fiber>> spare_;
};

const char* mistake_planted = nullptr;

void exploration::enter() {
    auto& here = *running;
    here.arrive();
    const std::size_t self = here.current_;
    here.threads_[self].work();
    here.threads_[self].work = nullptr;
    here.pass({here.number(&ends[self]), access::write}, nullptr, false);
    here.threads_[self].over = true;
    here.threads_[self].ready = nullptr;
    here.go_on();
    std::abort();  // nobody comes back to a thread that is over
}

[[nodiscard]] bool acquires(order how) noexcept {
    return how == order::acquire || how == order::acq_rel || how == order::seq_cst;
}

[[nodiscard]] bool releases(order how) noexcept {
    return how == order::release || how == order::acq_rel || how == order::seq_cst;
}

/// Which of its values the thread takes, the newest first.
std::uint32_t take_value(std::size_t number, object& from, order how) {
    auto oldest = at(running->known(), number);
    if (how == order::seq_cst) {
        oldest = std::max(oldest, from.agreed);
    }
    const auto newest = static_cast<std::uint32_t>(from.values.size() - 1);
    return newest - static_cast<std::uint32_t>(running->choose(newest - oldest + 1));
}

std::uint64_t see(std::size_t number, object& from, std::uint32_t which, order how) {
    at(running->known(), number) = which;
    if (acquires(how)) {
        merge(running->known(), from.values[which].known);
    }
    if (how == order::seq_cst) {
        from.agreed = std::max(from.agreed, which);
    }
    return from.values[which].value;
}

void append(std::size_t number, object& to, std::uint64_t value, order how, const view& continued) {
    const auto which = static_cast<std::uint32_t>(to.values.size());
    at(running->known(), number) = which;
    message made{value, continued};
    at(made.known, number) = which;
    if (releases(how)) {
        merge(made.known, running->known());
    }
    to.values.push_back(std::move(made));
    if (how == order::seq_cst) {
        to.agreed = which;
    }
}

}  // namespace

result explore(const std::function<void()>& scenario, const limits& how) {
    exploration all{scenario, how};
    running = &all;
    auto found = all.run();
    running = nullptr;
    return found;
}

bool exploring() noexcept {
    return running != nullptr && running->in_thread();
}

std::size_t self() noexcept {
    return exploring() ? running->current() : 0;
}

void spawn(std::function<void()> work) {
    static_cast<void>(start(std::move(work)));
}

std::size_t start(std::function<void()> work) {
    return running->start(std::move(work));
}

void join(std::size_t thread) {
    block(
        &ends[thread], patience::endless, [&] { return running->over(thread); },
        [&] { running->learn_from(thread); });
}

std::size_t execution() noexcept {
    return executions_so_far;
}

void require(bool condition, const char* promise) {
    if (!condition) {
        running->fail(promise);
    }
}

std::size_t choose(std::size_t count) {
    return running->choose(count);
}

std::uint64_t load(const void* object, std::uint64_t first, order how) {
    const auto number = running->number(object);
    running->pass({number, access::read}, nullptr, false);
    auto& from = running->atomic(number, first);
    return see(number, from, take_value(number, from, how), how);
}

void store(const void* object, std::uint64_t first, std::uint64_t value, order how) {
    const auto number = running->number(object);
    running->pass({number, access::write}, nullptr, false);
    append(number, running->atomic(number, first), value, how, {});
}

std::uint64_t modify(const void* object, std::uint64_t first, order how,
                     const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change) {
    const auto number = running->number(object);
    running->pass({number, access::write}, nullptr, false);
    auto& on = running->atomic(number, first);
    const auto newest = static_cast<std::uint32_t>(on.values.size() - 1);
    const auto before = on.values[newest].value;
    const auto after = change(before);
    if (after) {
        see(number, on, newest, how);
        append(number, on, *after, how, view{on.values[newest].known});
        return before;
    }
    // It changes nothing: only a load, which need not see the newest.
    for (auto which = take_value(number, on, how);; which = newest) {
        if (which == newest || !change(on.values[which].value)) {
            return see(number, on, which, how);
        }
    }
}

void catch_up(const void* object) {
    const auto number = running->number(object);
    if (const auto& values = running->find(number).values; !values.empty()) {
        at(running->known(), number) = static_cast<std::uint32_t>(values.size() - 1);
    }
}

void forget(const void* object) noexcept {
    if (running != nullptr) {
        running->forget(object);
    }
}

bool block(const void* object, patience how_long, const std::function<bool()>& ready,
           const std::function<void()>& then) {
    const auto number = running->number(object);
    running->pass({number, access::write}, &ready, how_long == patience::limited);
    if (running->timed_out()) {
        return false;
    }
    if (then) {
        then();
    }
    return true;
}

void act(const void* object, const std::function<void()>& what) {
    running->pass({running->number(object), access::write}, nullptr, false);
    what();
}

void publish(const void* object) {
    merge(running->find(running->number(object)).known, running->known());
}

void learn(const void* object) {
    merge(running->known(), running->find(running->number(object)).known);
}

void when_all_sleep(std::function<bool()> time_goes_on) {
    running->when_all_sleep(std::move(time_goes_on));
}

preparation::preparation() noexcept {
    running->prepare(true);
}

preparation::~preparation() {
    running->prepare(false);
}

bool planted(const char* mistake) noexcept {
    return mistake_planted != nullptr && std::strcmp(mistake_planted, mistake) == 0;
}

plant::plant(const char* mistake) noexcept {
    mistake_planted = mistake;
}

plant::~plant() {
    mistake_planted = nullptr;
}

}  // namespace holdfast::model
