#include <runtime/callback_thread.hpp>

#include "waiting_test.hpp"

namespace holdfast::detail {

namespace {

using model::expect_refuted;
using model::expect_sound;

/// Everything that was posted has run when the object is gone.
void two_post_and_it_ends() {
    const auto told = std::make_shared<int>(0);
    {
        callback_thread calls;
        const auto post = [&] { calls.post([told] { ++*told; }); };
        threading::thread other{post};
        post();
        other.join();
    }
    model::require(*told == 2, "both have run");
}

void a_callback_ends_it() {
    auto calls = std::make_shared<std::unique_ptr<callback_thread>>();
    *calls = std::make_unique<callback_thread>();
    (*calls)->post([calls] { calls->reset(); });
}

TEST(model_callback_thread, everything_posted_runs_before_it_ends) {
    expect_sound(two_post_and_it_ends);
}

TEST(model_callback_thread, a_callback_may_end_it) {
    expect_sound(a_callback_ends_it);
}

TEST(model_callback_thread, a_callback_that_is_queued_in_silence_is_found) {
    expect_refuted("a callback is queued in silence", a_callback_ends_it);
}

}  // namespace

}  // namespace holdfast::detail
