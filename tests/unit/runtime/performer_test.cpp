#include <gtest/gtest.h>

#include <core/script.hpp>
#include <core/table_script.hpp>
#include <runtime/performer.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::detail {

namespace {

using namespace script;

/// A store that answers when the test wants it to, and says what it was asked.
class scripted_engine final : public engines::engine, public engines::watching {
public:
    class watch_in_place final : public engines::subscription {
    public:
        explicit watch_in_place(scripted_engine& on) : on_{on} { ++on_.watches; }
        watch_in_place(const watch_in_place&) = delete;
        watch_in_place& operator=(const watch_in_place&) = delete;
        ~watch_in_place() override { --on_.watches; }
        [[nodiscard]] bool active() const noexcept override { return on_.active_at_once; }

    private:
        scripted_engine& on_;
    };

    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] engines::abilities offers() noexcept override { return {.watching = this}; }
    void acquire(engines::acquire_request, engines::call how,
                 engines::completion<engines::acquire_reply> done) override {
        if (throws) {
            throw std::runtime_error{"out of order"};
        }
        calls.push_back(how);
        acquires.push_back(std::move(done));
        if (answers_at_once) {
            acquires.back()(granted(7));
        }
    }
    void renew(std::vector<engines::renew_request>, engines::call,
               engines::completion<std::vector<engines::renew_reply>> done) override {
        renewals.push_back(std::move(done));
    }
    void release(engines::release_request, engines::call,
                 engines::completion<engines::release_reply> done) override {
        releases.push_back(std::move(done));
    }
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string, lock_kind,
                                                               std::function<void()>) override {
        return std::make_unique<watch_in_place>(*this);
    }

    bool throws{};
    bool answers_at_once{};
    bool active_at_once{};
    int watches{};
    std::vector<engines::call> calls;
    std::vector<engines::completion<engines::acquire_reply>> acquires;
    std::vector<engines::completion<std::vector<engines::renew_reply>>> renewals;
    std::vector<engines::completion<engines::release_reply>> releases;

private:
    engines::guarantees promises_;
    std::string address_{"scripted"};
};

/// Callers who write down what they are told.
struct listeners {
    struct mutex {
        void lock() { locked = true; }
        void unlock() { locked = false; }
        static inline bool locked{};
    };
    static constexpr bool ends_on_exception = false;
    struct follow_up {
        std::vector<store_task> tasks{};
        core::waiter_id self{};
    };

    [[nodiscard]] clock::time_point now() const noexcept { return time; }
    void arm(clock::time_point when) { armed.push_back(when); }
    template <class Task>
    bool take(core::waiter_id whose, Task& task, follow_up& after) {
        if (whose != after.self) {
            return false;
        }
        own.emplace_back(std::move(task));
        return true;
    }
    template <class Action>
    void perform(Action& what, follow_up&) {
        EXPECT_TRUE(mutex::locked);
        told.emplace_back(what);
    }
    void end_step(follow_up&) { EXPECT_TRUE(mutex::locked); }
    void wake(follow_up&) { EXPECT_FALSE(mutex::locked); }

    /// Takes what was told last.
    template <class Action>
    Action last() {
        EXPECT_TRUE(!told.empty() && std::holds_alternative<Action>(told.back()));
        auto taken = std::get<Action>(told.back());
        told.pop_back();
        return taken;
    }

    clock::time_point time{start};
    std::vector<clock::time_point> armed;
    std::vector<store_task> own;
    std::vector<core::action> told;
};

class performer_test : public testing::Test {
protected:
    core::waiter_id acquire(const core::claim& what = exclusive()) {
        core::waiter_id id{};
        all.step(
            [&](core::lock_table& table, clock::time_point now) { id = table.acquire(what, now); });
        return id;
    }
    void release(core::hold_id which) {
        all.step([&](core::lock_table& table, clock::time_point now) {
            table.release_hold(which, {}, now);
        });
    }

    listeners who;
    scripted_engine* engine{new scripted_engine};
    store_access store{std::unique_ptr<engines::engine>{engine}};
    performer<listeners> all{who, store, {}, owner(0)};
};

TEST_F(performer_test, an_answer_that_comes_before_the_request_returns_is_a_step_of_its_own) {
    engine->answers_at_once = true;

    const auto id = acquire();

    const auto got = who.last<core::finish_acquire>();
    EXPECT_EQ(got.id, id);
    EXPECT_EQ(got.token.value, 7U);
    EXPECT_EQ(store.requests(), 1U);
}

TEST_F(performer_test, a_call_may_take_its_own_request) {
    listeners::follow_up after;
    after.self = 1;
    all.step([](core::lock_table& table, clock::time_point now) { table.acquire(exclusive(), now); },
             std::move(after));
    ASSERT_EQ(who.own.size(), 1U);
    EXPECT_TRUE(engine->acquires.empty());

    all.perform(who.own.front(), engines::caller::may_block);

    ASSERT_EQ(engine->calls.size(), 1U);
    EXPECT_EQ(engine->calls.front().from, engines::caller::may_block);
}

TEST_F(performer_test, a_request_that_leaves_late_still_has_time_to_be_answered) {
    listeners::follow_up after;
    after.self = 1;
    all.step([](core::lock_table& table, clock::time_point now) { table.acquire(exclusive(), now); },
             std::move(after));
    who.time += 1min;

    all.perform(who.own.front(), engines::caller::may_block);

    EXPECT_EQ(engine->calls.front().deadline, who.time + 50ms);
}

TEST_F(performer_test, a_closed_store_is_answered_for) {
    EXPECT_TRUE(store.close());

    acquire();

    EXPECT_EQ(who.last<core::finish_acquire>().error.code, errc::shut_down);
    EXPECT_EQ(store.requests(), 0U);
}

TEST_F(performer_test, an_engine_that_throws_is_asked_again_later) {
    engine->throws = true;
    acquire();
    EXPECT_TRUE(who.told.empty());
    ASSERT_FALSE(who.armed.empty());
    engine->throws = false;

    who.time = who.armed.back();
    all.on_time();

    EXPECT_EQ(engine->acquires.size(), 1U);
}

TEST_F(performer_test, the_timer_is_moved_forward_only_until_it_fires) {
    auto soon = exclusive("a");
    soon.deadline = start + 1s;
    auto late = exclusive("b");
    late.deadline = start + 2s;

    acquire(soon);
    acquire(late);
    EXPECT_EQ(who.armed, (std::vector{start + 1s}));
    who.time = start + 1s;
    all.on_time();

    EXPECT_EQ(who.armed, (std::vector{start + 1s, start + 2s}));
}

TEST_F(performer_test, a_name_is_watched_as_long_as_somebody_waits_for_it) {
    engine->active_at_once = true;
    const auto id = acquire();
    engine->acquires.back()(busy());
    EXPECT_EQ(engine->watches, 1);
    ASSERT_EQ(engine->acquires.size(), 2U) << "what happened before the watch was not seen";

    engine->acquires.back()(granted(7));
    EXPECT_EQ(engine->watches, 0);
    release(id);

    EXPECT_EQ(engine->releases.size(), 1U);
}

}  // namespace

}  // namespace holdfast::detail
