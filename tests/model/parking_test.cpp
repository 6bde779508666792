#include <threading/parking.hpp>

#include "waiting_test.hpp"

namespace holdfast::threading {

namespace {

using model::expect_refuted;
using model::expect_sound;

/// A caller that waits in a session, as those who wake it see it.
struct waiting_call {
    parking_spot spot;
    threading::atomic<bool> sent_for{false};
    threading::atomic<bool> done{false};

    void wait() {
        while (!done.load(std::memory_order_acquire)) {
            if (!sent_for.exchange(false, std::memory_order_acq_rel)) {
                spot.park();
            }
        }
    }
    void wake(threading::atomic<bool>& flag) {
        flag.store(true, std::memory_order_release);
        spot.unpark();
    }
};

void one_wakes_twice() {
    const auto call = std::make_shared<waiting_call>();
    model::spawn([call] { call->wait(); });
    model::spawn([call] {
        call->wake(call->sent_for);
        call->wake(call->done);
    });
}

void two_wake_once() {
    const auto call = std::make_shared<waiting_call>();
    model::spawn([call] { call->wait(); });
    model::spawn([call] { call->wake(call->sent_for); });
    model::spawn([call] { call->wake(call->done); });
}

TEST(model_parking, no_wake_up_is_lost_when_two_follow_each_other) {
    expect_sound(one_wakes_twice);
    expect_sound(two_wake_once);
}

TEST(model_parking, waking_up_without_reason_does_no_harm) {
    expect_sound(one_wakes_twice, {.surprises = 2});
}

TEST(model_parking, a_wake_up_that_is_taken_by_a_plain_store_is_found) {
    expect_refuted("a wake-up is taken by a plain store", one_wakes_twice);
    expect_refuted("a wake-up is taken by a plain store", two_wake_once);
}

/// A caller whose thread is lent to an engine, which it reads from a descriptor for.
struct attending_call : waiting_call {
    attending_call() = default;

    void attend(const bell& given) {
        while (!done.load(std::memory_order_acquire)) {
            while (!spot.unparked()) {
                if (spot.park_at(news.descriptor(), given)) {
                    news.silence();
                    heard.store(true, std::memory_order_relaxed);
                }
            }
            spot.park();
        }
    }

    bell news;
    bell own;
    threading::atomic<bool> heard{false};
};

void called_away_from_a_descriptor() {
    const auto call = std::make_shared<attending_call>();
    model::spawn([call] { call->attend(call->own); });
    model::spawn([call] { call->news.ring(); });
    model::spawn([call] { call->wake(call->done); });
}

/// The second has the bell of the first, which may still be rung for it.
void a_bell_is_used_again() {
    const auto first = std::make_shared<attending_call>();
    const auto second = std::make_shared<attending_call>();
    model::spawn([=] {
        first->attend(first->own);
        second->attend(first->own);
    });
    model::spawn([=] { first->wake(first->done); });
    model::spawn([=] { second->wake(second->done); });
}

TEST(model_parking, whoever_reads_from_a_descriptor_is_called_away) {
    expect_sound(called_away_from_a_descriptor);
    expect_sound(a_bell_is_used_again);
}

TEST(model_parking, mistakes_at_a_descriptor_are_found) {
    expect_refuted("the bell is not rung", called_away_from_a_descriptor);
    expect_refuted("at the descriptor without a look", called_away_from_a_descriptor);
    expect_refuted("the bell is not rung", a_bell_is_used_again);
}

}  // namespace

}  // namespace holdfast::threading
