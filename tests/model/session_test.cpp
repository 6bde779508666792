#include <runtime/session.hpp>

#include "timer.hpp"
#include "waiting_test.hpp"

namespace holdfast::engines {

std::unique_ptr<engine> open_memory(std::string_view rest, const client_identity& identity);

}  // namespace holdfast::engines

namespace holdfast::detail {

namespace {

using model::expect_refuted;
using model::expect_sound;

[[nodiscard]] core::claim claim_of(const std::string& name) {
    core::claim made;
    made.name = name;
    made.terms.ttl = std::chrono::seconds{10};
    made.terms.margin = std::chrono::milliseconds{100};
    made.terms.release_timeout = std::chrono::seconds{2};
    return made;
}

/// A session over `memory:`, and threads that take the lock and let go of it after a while.
void contenders(std::size_t threads, std::chrono::microseconds time) {
    model::begin_time();
    std::shared_ptr<session> shared;
    {
        const model::preparation before;
        const engines::client_identity identity{{1, 2, 0}, {"host", 1, "program", {}}};
        shared = std::make_shared<session>(engines::open_memory("model", identity), identity,
                                           client_options{});
        shared->start();
    }
    const auto inside = std::make_shared<int>(0);
    const auto lock = [=] {
        const auto wanted = claim_of("stock");
        auto got = shared->acquire(wanted, {});
        model::require(got.taken != nullptr, "everybody gets the lock");
        model::require(++*inside == 1, "one at a time has it");
        return got.taken;
    };
    const auto unlock = [=](hold& taken) {
        model::spend(time);
        --*inside;
        shared->release(taken, {});
    };
    const auto first = lock();
    std::vector<threading::thread> others;
    for (std::size_t each = 1; each < threads; ++each) {
        others.emplace_back([=] { unlock(*lock()); });
    }
    model::rest();
    unlock(*first);
    for (auto& each : others) {
        each.join();
    }
}

/// Whoever is next is told beforehand, and given the lock while it wakes up.
void three_with_short_holds() {
    contenders(3, std::chrono::microseconds{50});
}

/// Whoever is next is offered the lock, and may be overtaken.
void two_with_fleeting_holds() {
    contenders(2, std::chrono::microseconds{1});
}

/// Whoever is next is given the lock in its sleep.
void two_with_long_holds() {
    contenders(2, std::chrono::microseconds{500});
}

TEST(model_session, whoever_waits_for_others_of_its_process_is_woken) {
    expect_sound(two_with_fleeting_holds, {.preemptions = 1});
    expect_sound(two_with_long_holds, {.preemptions = 1});
}

TEST(model_session, whoever_is_told_beforehand_hears_of_the_lock_as_well) {
    expect_sound(three_with_short_holds, {.preemptions = 0});
}

TEST(model_session, lost_wake_ups_are_found) {
    expect_refuted("a sleeper is not woken", three_with_short_holds, {.preemptions = 0});
    expect_refuted("a sleeper is not woken", two_with_fleeting_holds, {.preemptions = 0});
    expect_refuted("a sleeper is not woken", two_with_long_holds, {.preemptions = 0});
}

}  // namespace

}  // namespace holdfast::detail
