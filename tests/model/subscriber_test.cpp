#include <redis/net/subscriber.hpp>
#include <threading/parking.hpp>
#include <threading/primitives.hpp>

#include <optional>
#include <string>

#include "redis_server.hpp"
#include "timer.hpp"
#include "waiting_test.hpp"

/// Who reads what a server says: its own thread, one that attends, or for a moment nobody. What is said
/// is heard in any case.
namespace holdfast::engines::redis {

namespace {

using model::expect_refuted;
using model::expect_sound;

/// A thread that waits, as a session lends it.
class waiting_thread final : public idle_thread {
public:
    [[nodiscard]] bool called_away() const noexcept override { return spot_.unparked(); }
    [[nodiscard]] bool sleep(int descriptor) noexcept override {
        return spot_.park_at(descriptor, bell_);
    }
    void call_away() noexcept { spot_.unpark(); }

private:
    threading::bell bell_;
    threading::parking_spot spot_;
};

/// A subscriber that is up and listens to "x".
class stage {
public:
    stage() {
        model::begin_time();
        server_.emplace();
        subscriber_.emplace(
            node_address{"server", 6379, {}}, connection_settings{},
            subscriber::events{.heard =
                                   [this](const std::string&, std::string_view) {
                                       heard_.fetch_add(1);
                                       heard_.notify_all();
                                   },
                               .subscribed = [this](const std::string&) { active_.store(true); },
                               .moved_away = {}});
        subscriber_->subscribe("x", channel_style::classic);
        active_.wait(false);
    }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() {
        subscriber_.reset();
        server_.reset();
    }

    void attend(waiting_thread& who) {
        subscriber_->attend(who, [] { return false; });
    }
    void publish() { server_->publish(); }
    void wait_until_heard(int count) {
        for (int seen = heard_.load(); seen < count; seen = heard_.load()) {
            heard_.wait(seen);
        }
    }

private:
    std::optional<model::redis_server> server_;
    threading::atomic<int> heard_{0};
    threading::atomic<bool> active_{false};
    std::optional<subscriber> subscriber_;
};

/// One attends and is called away, at any moment, while the server says something.
void an_attendant_leaves_while_something_is_said() {
    stage on;
    waiting_thread who;
    threading::thread attendant{[&] { on.attend(who); }};
    on.publish();
    who.call_away();
    on.wait_until_heard(1);
    attendant.join();
}

/// What is said after the attendant has left is heard by the subscriber's own thread.
void something_is_said_after_an_attendant_has_left() {
    stage on;
    waiting_thread who;
    threading::thread attendant{[&] { on.attend(who); }};
    who.call_away();
    attendant.join();
    on.publish();
    on.wait_until_heard(1);
}

/// The subscriber's own thread looks around less and less often, and then only when it is told.
void something_is_said_after_one_attended_for_long() {
    stage on;
    waiting_thread who;
    threading::thread attendant{[&] { on.attend(who); }};
    threading::poll(nullptr, 0, 90);
    who.call_away();
    attendant.join();
    on.publish();
    on.wait_until_heard(1);
}

/// Others than the attendant may depend on it: a revocation is told here, too.
void something_is_heard_soon_after_one_attended_for_a_while() {
    stage on;
    waiting_thread who;
    threading::thread attendant{[&] { on.attend(who); }};
    threading::poll(nullptr, 0, 10 + static_cast<int>(10 * model::choose(4)));
    who.call_away();
    attendant.join();
    const auto left_at = clock::now();
    on.publish();
    on.wait_until_heard(1);
    model::require(clock::now() - left_at <= std::chrono::milliseconds{5},
                   "what is said after an attendant has left is heard within 5 ms");
}

/// The end comes while somebody attends.
void it_ends_while_one_attends() {
    stage on;
    waiting_thread who;
    threading::thread attendant{[&] { on.attend(who); }};
    who.call_away();
    attendant.join();
}

TEST(model_subscriber, what_is_said_while_an_attendant_leaves_is_heard) {
    expect_sound(an_attendant_leaves_while_something_is_said, {.preemptions = 1});
}

TEST(model_subscriber, what_is_said_after_it_left_is_heard) {
    expect_sound(something_is_said_after_an_attendant_has_left, {.preemptions = 1});
    expect_sound(something_is_said_after_one_attended_for_long, {.preemptions = 1});
}

TEST(model_subscriber, what_is_said_after_it_left_is_heard_soon) {
    expect_sound(something_is_heard_soon_after_one_attended_for_a_while, {.preemptions = 1});
}

TEST(model_subscriber, it_ends_although_somebody_attended) {
    expect_sound(it_ends_while_one_attends, {.preemptions = 1});
}

TEST(model_subscriber, an_attendant_that_leaves_in_silence_is_found) {
    expect_refuted("an attendant leaves in silence", something_is_said_after_one_attended_for_long,
                   {.preemptions = 1});
}

}  // namespace

}  // namespace holdfast::engines::redis
