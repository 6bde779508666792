#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <core/lock_table.hpp>
#include <core/script.hpp>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

namespace script {

[[nodiscard]] inline holdfast::core::claim exclusive(const std::string& name = "stock") {
    holdfast::core::claim what;
    what.name = name;
    what.terms = lease_terms();
    return what;
}

[[nodiscard]] inline holdfast::core::claim once(holdfast::core::claim what) {
    what.wait = false;
    return what;
}

[[nodiscard]] inline holdfast::core::claim until(holdfast::clock::time_point deadline,
                                                 holdfast::core::claim what) {
    what.deadline = deadline;
    return what;
}

[[nodiscard]] inline holdfast::core::claim on_terms(const holdfast::core::terms& how,
                                                    holdfast::core::claim what) {
    what.terms = how;
    return what;
}

[[nodiscard]] inline holdfast::core::claim shared(const std::string& name = "stock") {
    auto what = exclusive(name);
    what.mode = holdfast::claim_mode::shared;
    return what;
}

[[nodiscard]] inline holdfast::core::claim permits(std::uint32_t count, std::uint32_t limit) {
    auto what = exclusive("pool");
    what.mode = holdfast::claim_mode::permit;
    what.permits = count;
    what.limit = limit;
    return what;
}

/// A lock table in conversation with a test that plays the callers, the store and the clock.
///
/// What the table says is kept until the test takes it: `only<send_acquire>()` insists that exactly one
/// such action was said and not taken yet. At the end nothing may be going on any more.
class table_conversation : public ::testing::Test {
protected:
    explicit table_conversation(const holdfast::core::table_settings& settings = {})
        : table{settings, owner(0)} {}

    void TearDown() override {
        const auto left = table.count();
        EXPECT_TRUE(left.quiet()) << left.waiters << " waiters, " << left.contests << " contests, "
                                  << left.tenures << " tenures, " << left.holds << " holds, "
                                  << left.releases << " releases, " << left.names << " names, "
                                  << left.requests << " requests are left";
        EXPECT_EQ(table.wake_at(), never) << "a timer is left";
    }

    /// Time goes on to this moment, and every timer on the way rings when it is due.
    void at(holdfast::clock::duration since_start) {
        while (table.wake_at() <= script::at(since_start)) {
            now = std::max(now, table.wake_at());
            table.on_time(now);
        }
        now = script::at(since_start);
        listen();
    }
    /// Time goes on, but the thread that should mind the timers does not get to run.
    void unnoticed_at(holdfast::clock::duration since_start) { now = script::at(since_start); }

    holdfast::core::waiter_id acquire(const holdfast::core::claim& what = exclusive()) {
        const auto id = table.acquire(what, now);
        listen();
        return id;
    }
    void cancel(holdfast::core::waiter_id who) {
        table.cancel(who, holdfast::errc::cancelled, now);
        listen();
    }
    void release(holdfast::core::hold_id which, std::chrono::milliseconds linger = {}) {
        table.release_hold(which, linger, now);
        listen();
    }
    void abandon(holdfast::core::hold_id which) {
        table.abandon(which, now);
        listen();
    }
    void take_turn(holdfast::core::waiter_id who) {
        table.take_turn(who, now);
        listen();
    }
    void convert(holdfast::core::hold_id which, holdfast::claim_mode to) {
        table.convert(which, to, now);
        listen();
    }
    void hint(const std::string& name = "stock") {
        table.on_hint(name, now);
        listen();
    }
    void watch_active(const std::string& name = "stock") {
        table.on_watch_active(name, now);
        listen();
    }
    void holds_may_have_changed() {
        table.on_holds_may_have_changed(now);
        listen();
    }
    void shut_down() {
        table.shut_down(now);
        listen();
    }

    void answer(const holdfast::core::send_acquire& to, const holdfast::engines::acquire_reply& reply) {
        table.on_acquire_reply(to.id, reply, now);
        listen();
    }
    void answer(const holdfast::core::send_release& to, const holdfast::engines::release_reply& reply) {
        table.on_release_reply(to.id, reply, now);
        listen();
    }
    /// The same answer to every lease in the batch.
    void answer(const holdfast::core::send_renew& to, const holdfast::engines::renew_reply& reply) {
        table.on_renew_replies(to.id, std::vector(to.requests.size(), reply), now);
        listen();
    }

    /// How many such actions wait to be taken.
    template <class Action>
    [[nodiscard]] std::size_t said() const {
        return static_cast<std::size_t>(std::count_if(heard_.begin(), heard_.end(), is<Action>));
    }

    /// Takes all such actions, in the order they were said.
    template <class Action>
    std::vector<Action> all() {
        std::vector<Action> taken;
        for (const auto& one : heard_) {
            if (is<Action>(one)) {
                taken.push_back(std::get<Action>(one));
            }
        }
        std::erase_if(heard_, is<Action>);
        return taken;
    }

    /// Takes the one such action.
    template <class Action>
    Action only() {
        const auto taken = all<Action>();
        EXPECT_EQ(taken.size(), 1U) << "of " << ::testing::internal::GetTypeName<Action>();
        return taken.empty() ? Action{} : taken.front();
    }

    [[nodiscard]] bool requests_nothing() const {
        return said<holdfast::core::send_acquire>() + said<holdfast::core::send_release>() +
                   said<holdfast::core::send_renew>() ==
               0;
    }

    /// Asks, and the store grants it at once.
    holdfast::core::hold_id hold(const holdfast::core::claim& what = exclusive(),
                                 std::uint64_t token = 7) {
        const auto id = acquire(what);
        answer(only<holdfast::core::send_acquire>(), granted(token));
        EXPECT_FALSE(only<holdfast::core::finish_acquire>().error);
        return id;
    }

    /// Releases, and the store confirms it at once.
    void let_go(holdfast::core::hold_id which, std::uint32_t others_waiting = 0) {
        release(which);
        answer(only<holdfast::core::send_release>(), released(others_waiting));
        const auto ends = all<holdfast::core::finish_release>();
        ASSERT_FALSE(ends.empty());
        EXPECT_EQ(ends.back().id, which);
        EXPECT_EQ(ends.back().outcome, holdfast::release_outcome::released);
    }

    /// Whatever is on its way back to the store arrives there.
    void confirm_releases() {
        for (const auto& back : all<holdfast::core::send_release>()) {
            answer(back, released());
        }
    }

    struct line {
        holdfast::core::hold_id first, second, third;
    };
    /// The first holds tokens 10 to 14, the others wait for it, in this order.
    line form_line(const holdfast::core::claim& of_the_first = exclusive(),
                   const holdfast::core::claim& of_the_others = exclusive()) {
        line who{};
        who.first = acquire(of_the_first);
        answer(only<holdfast::core::send_acquire>(), busy());
        who.second = acquire(of_the_others);
        who.third = acquire(of_the_others);
        hint();
        const auto again = only<holdfast::core::send_acquire>();
        answer(again, granted(10, again.request.token_count));
        EXPECT_EQ(only<holdfast::core::finish_acquire>().id, who.first);
        return who;
    }

    holdfast::core::lock_table table;
    holdfast::clock::time_point now{start};

private:
    template <class Action>
    [[nodiscard]] static bool is(const holdfast::core::action& one) {
        return std::holds_alternative<Action>(one);
    }

    void listen() {
        auto actions = table.take_actions();
        std::move(actions.begin(), actions.end(), std::back_inserter(heard_));
    }

    std::vector<holdfast::core::action> heard_;
};

}  // namespace script
