#include "checker.hpp"

#include <cstring>
#include <utility>

#include "exploration.hpp"

namespace holdfast::model {

namespace {

const char* mistake_planted = nullptr;

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

void exploration::enter() {
    auto& here = *running;
    arrive(here.main_);
    const std::size_t self = here.current_;
    here.threads_[self].work();
    here.threads_[self].work = nullptr;
    here.pass({here.number(&ends[self]), access::write}, nullptr, false);
    here.threads_[self].over = true;
    here.threads_[self].ready = nullptr;
    here.go_on();
    std::abort();  // nobody comes back to a thread that is over
}

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
