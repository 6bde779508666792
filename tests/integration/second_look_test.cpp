// A lock that becomes free after it was refused and before the watch is in place: nobody says so. The
// session has to look once more when the watch is there.
#include <atomic>
#include <functional>

#include <holdfast/testing/forwarding_engine.hpp>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// Does something of the test's just before a watch is put in place.
class engine_with_a_gap final : public forwarding_engine, public engines::watching {
public:
    engine_with_a_gap(std::unique_ptr<engines::engine> inner, std::function<void()> before_watch)
        : forwarding_engine{std::move(inner)}, before_watch_{std::move(before_watch)} {}

    [[nodiscard]] engines::abilities offers() noexcept override {
        auto offered = inner().offers();
        offered.watching = this;
        return offered;
    }
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string name, lock_kind kind,
                                                               std::function<void()> hint) override {
        before_watch_();
        return inner().offers().watching->watch(std::move(name), kind, std::move(hint));
    }

private:
    std::function<void()> before_watch_;
};

/// How long a waiter took for a lock that became free just before its watch was in place.
template <class Holder, class Waiter>
clock::duration time_for(Holder holder, Waiter waiter) {
    const auto address = fresh_store();
    client other{address};
    auto held = std::optional{holder(other)};
    const auto identity = engines::make_identity("waiter");
    client waiting{std::make_unique<engine_with_a_gap>(engines::open(address, identity),
                                                       [&held] { held.reset(); }),
                   identity};
    const stopwatch watch;
    waiter(waiting);
    return watch.elapsed();
}

/// Without the second look it takes a second or more, always. A busy machine may take long once.
template <class Holder, class Waiter>
bool is_prompt(Holder holder, Waiter waiter) {
    for (int attempt = 0; attempt < 5; ++attempt) {
        if (time_for(holder, waiter) < 900ms) {
            return true;
        }
    }
    return false;
}

TEST(second_look, a_mutex_freed_before_the_watch_was_in_place_is_noticed) {
    EXPECT_TRUE(is_prompt(
        [](client& other) {
            return mutex{other, "stock"}.acquire();
        },
        [](client& waiting) {
            static_cast<void>(mutex{waiting, "stock"}.acquire().release());
        }));
}

TEST(second_look, a_permit_freed_before_the_watch_was_in_place_is_noticed) {
    EXPECT_TRUE(is_prompt(
        [](client& other) {
            return semaphore{other, "seats", 1}.acquire();
        },
        [](client& waiting) {
            static_cast<void>(semaphore{waiting, "seats", 1}.acquire().release());
        }));
}

}  // namespace

}  // namespace holdfast::testing
