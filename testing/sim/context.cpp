#include <context.hpp>

#include <algorithm>
#include <iomanip>

namespace holdfast::testing::sim {

const std::string& lock_name(std::size_t index) noexcept {
    static const std::array<std::string, lock_count> names{"a", "b", "rw", "sem"};
    return names[index];
}

std::size_t lock_index(const std::string& name) noexcept {
    std::size_t index = 0;
    while (index + 1 < lock_count && lock_name(index) != name) {
        ++index;
    }
    return index;
}

std::string relative(clock::time_point when) {
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(when - schedule{}.now()).count();
    std::ostringstream text;
    text << "+" << std::fixed << std::setprecision(3) << static_cast<double>(micros) / 1000.0 << " ms";
    return text.str();
}

std::string journal::stamp() const {
    std::ostringstream text;
    text << std::setw(13) << relative(time_.now()) << "  ";
    return text.str();
}

context::context(const plan& what, bool tracing) : how{what}, random{what}, log{events, tracing} {
    draw_numbers();
    draw_bounds();
}

void context::after(clock::duration delay, happening event) {
    at(now() + delay, event);
}

void context::at(clock::time_point when, happening event) {
    event.at = when;
    event.tie = static_cast<std::uint32_t>(random.bits() >> 32U);
    events.add(event);
}

void context::draw_numbers() {
    const auto one_of = [this](auto... values) {
        const std::array choices{values...};
        return choices[random.pick(static_cast<std::uint32_t>(choices.size()))];
    };
    numbers.ttl = one_of(40ms, 60ms, 100ms, 200ms);
    numbers.release_timeout = one_of(5ms, 30ms, 100ms);
    numbers.permit_limit = 2 + random.pick(2);
    const bool readers = how.features.any_of({feature::shared, feature::convert});
    numbers.favourite = readers && random.one_in(2) ? readers_and_writers : 0;
    numbers.longest_delay = one_of(200us, 500us, 1000us);
    numbers.longest_hint_delay = how.features.has(feature::delay_hint) ? 5ms : 1ms;
    numbers.longest_work = one_of(2ms, 10ms, 60ms);
    auto& contention = numbers.contention;
    contention.request_timeout = one_of(10ms, 30ms, 80ms);
    contention.outage_patience = one_of(100ms, 300ms);
    contention.courtesy = one_of(500us, 1000us);
    contention.recheck_cap = one_of(80ms, 150ms, 300ms);
    contention.line_patience = numbers.ttl;
    contention.shortest_pause = 1ms;
    contention.longest_backoff = one_of(10ms, 40ms);
    numbers.handover.count = one_of(1U, 3U, 128U);
    numbers.handover.time = one_of(2ms, 10ms, 50ms);
    numbers.handover.overtakings = one_of(0U, 1U, 4U);
    numbers.handover.fleeting = one_of(1ms, 1000ms);
    numbers.longest_awakening = one_of(50us, 2000us, 20000us);
    contention.store_hands_over = random.one_in(2);
    contention.most_asking = one_of(1U, 2U, 32U);
    numbers.granted_quarters = one_of(4U, 4U, 3U, 2U);
}

void context::draw_bounds() {
    const auto& contention = numbers.contention;
    const auto fault_time = how.kind == mode::liveness ? random.between(10ms, 80ms) : 1500ms;
    numbers.faults_until = now() + fault_time;

    // One after the other, each with all its waiting: nobody may need longer than all together.
    const auto longest_round = 2 * numbers.longest_work + 2 * contention.request_timeout +
                               numbers.release_timeout + contention.longest_backoff +
                               contention.recheck_cap * 2 + numbers.longest_awakening + 10ms;
    const auto rounds = how.clients * how.threads * how.rounds;
    // A paused client, a store that is down or whose clock was set back: all pass within this.
    const auto aftermath = 6 * numbers.ttl + contention.outage_patience + 500ms;
    numbers.end_by = numbers.faults_until + aftermath + rounds * longest_round;

    using enum feature;
    const bool quiet_network =
        !how.features.any_of({lose_request, lose_reply, long_delay, reset_connection, restart_store,
                              slow_store, clock_forward, clock_backward, revoke, pause_client,
                              crash_client, shut_down_client, refuse_release});
    if (quiet_network) {
        // A request just missed it, or the watch was just being placed, or our own release makes us
        // wait out of courtesy; then the hint and one more request.
        numbers.wake_up_bound =
            numbers.longest_hint_delay + 6 * numbers.longest_delay + 2 * contention.courtesy + 100us;
        if (how.features.has(lose_hint)) {
            numbers.wake_up_bound += contention.recheck_cap * 5 / 4 + 2 * numbers.longest_delay;
        }
    }
}

}  // namespace holdfast::testing::sim
