#include <runtime/hold.hpp>
#include <runtime/notifier.hpp>
#include <runtime/session.hpp>

#include "timer.hpp"
#include "waiting_test.hpp"

namespace holdfast::engines {

std::unique_ptr<engine> open_memory(std::string_view rest, const client_identity& identity);

}  // namespace holdfast::engines

/// Whoever asks for the token of a loss while the loss is told hears of it.
namespace holdfast::detail {

namespace {

using model::expect_refuted;
using model::expect_sound;

[[nodiscard]] std::shared_ptr<hold> held_lock() {
    const model::preparation before;
    const engines::client_identity identity{{1, 2, 0}, {"host", 1, "program", {}}};
    const auto from =
        std::make_shared<session>(engines::open_memory("model", identity), identity, client_options{});
    const auto made = std::make_shared<hold>(from, 1, std::make_shared<const std::string>("stock"), 1,
                                             fencing_token{1}, clock::now() + std::chrono::hours{1},
                                             std::chrono::seconds{1}, clock::time_point::max(),
                                             lock_kind::mutex, claim_mode::exclusive);
    made->set_given_back();
    return made;
}

/// As the session does it: first the reason, then the callbacks.
void one_asks_while_the_loss_is_told() {
    model::begin_time();
    const auto lost = held_lock();
    threading::thread teller{[lost] {
        lost->set_loss(errc::lost);
        lost->tell_loss();
    }};
    const auto token = lost->lost();
    teller.join();
    model::require(token.stop_requested(), "the token tells of the loss");
}

void two_ask_while_the_loss_is_told() {
    model::begin_time();
    const auto lost = held_lock();
    std::stop_token others;
    threading::thread other{[&] { others = lost->lost(); }};
    threading::thread teller{[lost] {
        lost->set_loss(errc::lost);
        lost->tell_loss();
    }};
    const auto token = lost->lost();
    other.join();
    teller.join();
    model::require(token.stop_requested() && others.stop_requested(), "both tokens tell of the loss");
}

/// Through the thread that runs the callbacks: all have run when the notifier is gone.
void the_notifier_tells_it() {
    model::begin_time();
    const auto lost = held_lock();
    int calls = 0;
    const std::stop_callback callback{lost->lost(), [&] { ++calls; }};
    {
        notifier tells{nullptr};
        lost->set_loss(errc::lost);
        tells.tell_loss(lost);
    }
    model::require(calls == 1, "the callback has run once");
}

TEST(model_loss, a_token_taken_while_the_loss_is_told_tells_of_it) {
    expect_sound(one_asks_while_the_loss_is_told);
    expect_sound(two_ask_while_the_loss_is_told, {.preemptions = 2});
}

TEST(model_loss, one_who_does_not_look_for_the_loss_is_found) {
    const model::plant mistake{"a loss is not looked for"};
    const auto found = model::explore(one_asks_while_the_loss_is_told);
    EXPECT_NE(found.problem.find("the token tells of the loss"), std::string::npos) << found.problem;
}

TEST(model_loss, the_notifier_has_run_every_callback_when_it_is_gone) {
    expect_sound(the_notifier_tells_it);
}

TEST(model_loss, a_loss_that_is_queued_in_silence_is_found) {
    const auto waits_for_it = [] {
        model::begin_time();
        const auto lost = held_lock();
        notifier tells{nullptr};
        threading::atomic<bool> told{false};
        const std::stop_callback callback{lost->lost(), [&] { told.store(true); }};
        lost->set_loss(errc::lost);
        tells.tell_loss(lost);
        told.wait(false);
    };
    expect_sound(waits_for_it);
    expect_refuted("a callback is queued in silence", waits_for_it);
}

}  // namespace

}  // namespace holdfast::detail
