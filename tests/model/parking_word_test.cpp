#include <redis/net/parking_word.hpp>

#include "waiting_test.hpp"

namespace holdfast::engines::redis {

namespace {

using model::expect_refuted;
using model::expect_sound;
using state = parking_word::state;

/// A caller of `connection::send` that waits, and those who read for it.
struct followed {
    parking_word word;

    /// True when it was told to read, false when its request was over.
    bool follow() {
        while (word.get() == state::awake) {
            word.wait(clock::time_point::max(), clock::time_point{});
        }
        return word.get() == state::leads;
    }
    void tell(state next) {
        if (word.tell(next)) {
            parking_word::wake(&word);
        }
    }
};

void one_is_told_to_read_and_then_answered() {
    const auto caller = std::make_shared<followed>();
    model::spawn([caller] {
        if (caller->follow()) {
            caller->tell(state::ended);  // by what it read itself
        }
        model::require(caller->word.get() == state::ended, "ends when it was answered");
    });
    model::spawn([caller] { caller->tell(state::leads); });
}

void one_is_answered() {
    const auto caller = std::make_shared<followed>();
    model::spawn([caller] { model::require(!caller->follow(), "was not told to read"); });
    model::spawn([caller] { caller->tell(state::ended); });
}

TEST(model_parking_word, whoever_is_told_something_wakes_up) {
    expect_sound(one_is_told_to_read_and_then_answered);
    expect_sound(one_is_answered);
}

TEST(model_parking_word, a_time_that_is_over_just_then_does_no_harm) {
    expect_sound(one_is_told_to_read_and_then_answered, {.surprises = 2});
    expect_sound(one_is_answered, {.surprises = 2});
}

TEST(model_parking_word, waking_up_by_a_plain_store_is_found) {
    expect_refuted("awake by a plain store", one_is_answered, {.surprises = 1});
}

}  // namespace

}  // namespace holdfast::engines::redis
