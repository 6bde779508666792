#include <user.hpp>

namespace holdfast::testing::sim {

namespace {

[[nodiscard]] core::terms draw_terms(context& run) {
    core::terms how;
    how.ttl = run.numbers.ttl;
    how.margin = std::max<clock::duration>(how.ttl / 20, 5ms);
    how.jeopardy = how.ttl / 3;
    how.release_timeout = run.numbers.release_timeout;
    if (run.has(feature::fixed_lease) && run.random.one_in(4)) {
        how.renewal = renewal_mode::none;
    }
    if (run.has(feature::max_hold) && run.random.one_in(4)) {
        how.max_hold = run.random.between(1ms, run.numbers.ttl);
    }
    return how;
}

}  // namespace

std::size_t draw_lock(context& run) {
    const auto choice = run.random.pick(8);
    if (choice == 0 && run.has(feature::permits)) {
        return semaphore;
    }
    if (choice == 1 && run.has(feature::shared)) {
        return readers_and_writers;
    }
    const std::uint32_t of_eight = run.has(feature::fair) ? 4 : 1;
    return choice >= 2 && choice < 2 + of_eight ? perhaps_fair : run.numbers.favourite;
}

core::claim draw_claim(context& run, std::size_t lock) {
    core::claim what;
    what.name = lock_name(lock);
    what.terms = draw_terms(run);
    if (lock == perhaps_fair && run.has(feature::fair)) {
        what.kind = lock_kind::fair_mutex;
    }
    if (lock == semaphore) {
        what.mode = claim_mode::permit;
        what.limit = run.numbers.permit_limit;
        what.permits = 1 + run.random.pick(2);
    } else if (lock == readers_and_writers && run.has(feature::shared) && run.random.one_in(2)) {
        what.mode = claim_mode::shared;
    }
    if (run.has(feature::try_once) && run.random.one_in(4)) {
        what.wait = false;
    } else if (run.has(feature::timed) && run.random.one_in(2)) {
        what.deadline = run.now() + run.random.between(0ms, run.numbers.ttl);
    }
    return what;
}

}  // namespace holdfast::testing::sim
