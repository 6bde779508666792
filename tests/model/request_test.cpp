#include <redis/net/request.hpp>

#include "waiting_test.hpp"

namespace holdfast::engines::redis {

namespace {

using model::expect_refuted;
using model::expect_sound;
using turn = request::turn;

/// A caller of `connection::send` that waits, and those who read for it.
struct followed {
    request waiting;

    /// True when it was told to read, false when its request was over.
    bool follow() {
        while (waiting.told() == turn::none) {
            waiting.wait(clock::time_point::max(), clock::time_point{});
        }
        return waiting.told() == turn::leads;
    }
    void tell(turn next) {
        if (waiting.tell(next)) {
            threading::parking_spot::wake(&waiting.spot);
        }
    }
};

void one_is_told_to_read_and_then_answered() {
    const auto caller = std::make_shared<followed>();
    model::spawn([caller] {
        if (caller->follow()) {
            caller->tell(turn::ended);  // by what it read itself
        }
        model::require(caller->waiting.told() == turn::ended, "ends when it was answered");
    });
    model::spawn([caller] { caller->tell(turn::leads); });
}

void one_is_answered() {
    const auto caller = std::make_shared<followed>();
    model::spawn([caller] { model::require(!caller->follow(), "was not told to read"); });
    model::spawn([caller] { caller->tell(turn::ended); });
}

TEST(model_request, whoever_is_told_something_wakes_up) {
    expect_sound(one_is_told_to_read_and_then_answered);
    expect_sound(one_is_answered);
}

TEST(model_request, a_time_that_is_over_just_then_does_no_harm) {
    expect_sound(one_is_told_to_read_and_then_answered, {.surprises = 2});
    expect_sound(one_is_answered, {.surprises = 2});
}

TEST(model_request, waking_up_by_a_plain_store_is_found) {
    expect_refuted("awake by a plain store", one_is_answered, {.surprises = 1});
}

}  // namespace

}  // namespace holdfast::engines::redis
