#include <functional>
#include <string>
#include <vector>

#include <holdfast/quorum.hpp>

#include "stage.hpp"

/// Every duration of the interface, with a value that makes no sense, and with zero.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

enum class verdict : std::uint8_t { refused, taken };

struct duration_case {
    std::string name;
    std::function<void(client&, milliseconds)> use;
    verdict negative;
    verdict zero;
};

void make_lock(client& store, const lease_options& options) {
    mutex{store, "stock", options};
    shared_mutex{store, "prices", options};
    recursive_mutex{store, "carts", options};
}

/// As in the standard library, who waits for no time or less tries once: such a time is often what is
/// left of another.
[[nodiscard]] std::vector<duration_case> all_durations() {
    using enum verdict;
    return {
        {"lease_options::ttl", [](client& c, milliseconds d) { make_lock(c, {.ttl = d}); }, refused,
         refused},
        {"lease_options::max_hold", [](client& c, milliseconds d) { make_lock(c, {.max_hold = d}); },
         refused, refused},
        {"lease_options::safety_margin",
         [](client& c, milliseconds d) { make_lock(c, {.safety_margin = d}); }, refused, taken},
        {"lease_options::jeopardy", [](client& c, milliseconds d) { make_lock(c, {.jeopardy = d}); },
         refused, taken},
        {"lease_options::release_timeout",
         [](client& c, milliseconds d) { make_lock(c, {.release_timeout = d}); }, refused, taken},
        {"client_options::request_timeout",
         [](client&, milliseconds d) { client("memory:", {.request_timeout = d}); }, refused, refused},
        {"client_options::outage_patience",
         [](client&, milliseconds d) { client("memory:", {.outage_patience = d}); }, refused, taken},
        {"client_options::opening_patience",
         [](client&, milliseconds d) { client("memory:", {.opening_patience = d}); }, refused, taken},
        {"client_options::handover_time",
         [](client&, milliseconds d) { client("memory:", {.handover_time = d}); }, refused, taken},
        {"client::list", [](client& c, milliseconds d) { static_cast<void>(c.list({}, {}, 1000, d)); },
         refused, refused},
        {"client::inspect", [](client& c, milliseconds d) { static_cast<void>(c.inspect("stock", d)); },
         refused, refused},
        {"client::shutdown",
         [](client&, milliseconds d) { static_cast<void>(client{"memory:"}.shutdown(d)); }, taken,
         taken},
        {"latch::try_set",
         [](client& c, milliseconds d) {
             static_cast<void>(latch{c, "gate"}.try_set(1, d));
         },
         refused, refused},
        {"latch::wait_for",
         [](client& c, milliseconds d) {
             static_cast<void>(latch{c, "gate"}.wait_for(d));
         },
         taken, taken},
        {"lease::release_after",
         [](client& c, milliseconds d) {
             static_cast<void>(mutex{c, "stock"}.acquire().release_after(d));
         },
         refused, taken},
        {"mutex::try_acquire_for",
         [](client& c, milliseconds d) {
             static_cast<void>(mutex{c, "stock"}.try_acquire_for(d));
         },
         taken, taken},
        {"semaphore::try_acquire_for",
         [](client& c, milliseconds d) {
             static_cast<void>(semaphore{c, "seats", 2}.try_acquire_for(d));
         },
         taken, taken},
        {"multi_lock::try_acquire_for",
         [](client& c, milliseconds d) {
             static_cast<void>(multi_lock{c, {"a", "b"}}.try_acquire_for(d));
         },
         taken, taken},
    };
}

TEST(durations, that_make_no_sense_are_refused_and_nothing_is_left) {
    client store{"memory:" + owner_id::random_client().client_text()};
    for (const auto& each : all_durations()) {
        for (const auto& [given, expected] :
             std::vector<std::pair<milliseconds, verdict>>{{-1s, each.negative}, {0ms, each.zero}}) {
            const auto error = error_of([&, given = given] { each.use(store, given); });
            EXPECT_EQ(error, expected == verdict::refused ? make_error_code(errc::invalid_argument)
                                                          : std::error_code{})
                << each.name << " of " << given.count() << " ms";
        }
        EXPECT_TRUE(store.list().locks.empty()) << each.name;
    }
}

TEST(durations, of_a_quorum_that_make_no_sense_are_refused) {
    const std::vector<std::string> members{"memory:q1", "memory:q2", "memory:q3"};
    for (const auto& wrong :
         {quorum{.stores = members, .member_timeout = 0ms},
          quorum{.stores = members, .member_timeout = -1s}, quorum{.stores = members, .drift = -1ms},
          quorum{.stores = members, .restart_grace = -1s}}) {
        EXPECT_EQ(error_of([&] { client{wrong}; }), errc::bad_configuration);
    }
}

/// The lease is kept, so its holder can release it in another way.
TEST(durations, of_release_after_that_make_no_sense_leave_the_lease) {
    client store{"memory:" + owner_id::random_client().client_text()};
    auto held = mutex{store, "stock"}.acquire();
    for (const auto after : {milliseconds{-1}, milliseconds::min(), milliseconds::max()}) {
        EXPECT_EQ(error_of([&] { static_cast<void>(held.release_after(after)); }),
                  errc::invalid_argument);
        EXPECT_TRUE(held);
    }
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_EQ(lease{}.release_after(-1s), release_outcome::already_lost);
}

}  // namespace

}  // namespace holdfast::testing
