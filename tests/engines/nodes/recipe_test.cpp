#include <nodes/recipe.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Conversations between a client, the recipe and a store.
namespace holdfast::engines::nodes {

namespace {

using namespace std::chrono_literals;
using outcome = acquire_reply::outcome;

constexpr session_id our_session = 7;

class NodesRecipe : public ::testing::Test {
protected:
    /// The only action of this kind; what else was asked for does not matter.
    template <class Action>
    [[nodiscard]] static Action one(const actions& all) {
        const Action* found = nullptr;
        for (const auto& each : all) {
            if (const auto* const action = std::get_if<Action>(&each)) {
                EXPECT_EQ(found, nullptr) << "asked for twice";
                found = action;
            }
        }
        EXPECT_NE(found, nullptr) << "not asked for";
        return found == nullptr ? Action{} : *found;
    }
    template <class Action>
    [[nodiscard]] static std::size_t count(const actions& all) {
        std::size_t number = 0;
        for (const auto& each : all) {
            number += std::holds_alternative<Action>(each) ? 1 : 0;
        }
        return number;
    }

    [[nodiscard]] acquire_request wants(std::int64_t owner, bool queue = false) const {
        acquire_request request;
        request.name = "stock";
        request.owner.sequence = owner;
        request.ttl = ttl;
        request.queue = queue;
        return request;
    }
    [[nodiscard]] actions ask(std::int64_t owner, bool queue = false) {
        return machine.acquire(++call, wants(owner, queue), now + 1s, now);
    }
    [[nodiscard]] actions let_go(std::int64_t owner) {
        release_request request;
        request.name = "stock";
        request.owner.sequence = owner;
        return machine.release(++call, request, now + 1s, now);
    }
    /// Makes the session, so that a test can begin with what comes after.
    void open_session() {
        const auto open = one<send_open>(ask(1000));
        const auto created = machine.on_session(open.id, {.session = our_session, .ttl = ttl}, now);
        const auto create = one<send_create>(created);
        static_cast<void>(machine.on_created(create.id, answer(create, 1), now));
        const auto removed = one<send_remove>(let_go(1000));
        static_cast<void>(machine.on_removed(removed.id, {}, now));
    }
    [[nodiscard]] static queue_node node_of(const send_create& create, std::uint64_t place) {
        return {std::to_string(place), place, place, create.request.session, create.request.claim};
    }
    [[nodiscard]] static create_reply answer(const send_create& create, std::uint64_t place,
                                             std::vector<queue_node> ahead = {}) {
        ahead.push_back(node_of(create, place));
        return {.created = ahead.back(), .queue = ahead};
    }
    [[nodiscard]] static queue_node somebody(std::uint64_t place) {
        return {std::to_string(place), place, place, 99, {.label = "another"}};
    }
    /// Holds the lock under this place.
    void hold(std::int64_t owner, std::uint64_t place) {
        const auto create = one<send_create>(ask(owner));
        const auto told = machine.on_created(create.id, answer(create, place), now);
        ASSERT_EQ(one<answer_acquire>(told).reply.result, outcome::granted);
    }

    static constexpr auto ttl = 10'000ms;
    clock::time_point now{1h};
    recipe machine{"us", {.granularity = 1ms, .minimum_ttl = 1ms, .tokens_per_node = 16}};
    call_id call{};
};

TEST_F(NodesRecipe, an_uncontended_lock_takes_one_creation_and_one_removal) {
    open_session();
    const auto asked = ask(1);
    ASSERT_EQ(asked.size(), 1U);
    const auto create = one<send_create>(asked);
    EXPECT_TRUE(create.request.only_if_empty);
    const auto told = machine.on_created(create.id, answer(create, 5), now);
    ASSERT_EQ(told.size(), 1U);
    const auto reply = one<answer_acquire>(told).reply;
    EXPECT_EQ(reply.result, outcome::granted);
    EXPECT_EQ(reply.first_token.value, 5U * 16U);
    const auto given_back = let_go(1);
    ASSERT_EQ(given_back.size(), 1U);
    EXPECT_EQ(one<send_remove>(given_back).node.place, 5U);
}

TEST_F(NodesRecipe, validity_counts_from_before_the_session_was_asked_for) {
    const auto open = one<send_open>(ask(1));
    now += 300ms;
    const auto create =
        one<send_create>(machine.on_session(open.id, {.session = our_session, .ttl = ttl}, now));
    now += 50ms;
    const auto told = machine.on_created(create.id, answer(create, 5), now);
    // From the call on, and the call left together with the request for the session.
    EXPECT_EQ(one<answer_acquire>(told).reply.ttl, 0ms);
    now += 1s;
    const auto later = one<send_create>(ask(2));
    const auto reply = one<answer_acquire>(machine.on_created(later.id, answer(later, 9), now)).reply;
    EXPECT_EQ(reply.ttl, ttl - 1350ms);
}

TEST_F(NodesRecipe, a_waiter_watches_the_node_before_it_and_reads_its_own_node_again) {
    open_session();
    const auto create = one<send_create>(ask(1, true));
    const auto told = machine.on_created(create.id, answer(create, 5, {somebody(2), somebody(4)}), now);
    EXPECT_EQ(one<answer_acquire>(told).reply.result, outcome::busy);
    const auto watch = one<start_watch>(told);
    ASSERT_EQ(watch.nodes.size(), 1U);
    EXPECT_EQ(watch.nodes[0].place, 4U);

    const auto read = one<send_read>(machine.on_changed(watch.id, now));
    const auto turn = machine.on_read(read.id, {.queue = {node_of(create, 5)}}, now);
    EXPECT_TRUE(one<tell_turn>(turn).granted.has_value());
}

TEST_F(NodesRecipe, a_waiter_whose_own_node_is_gone_is_granted_nothing) {
    open_session();
    const auto create = one<send_create>(ask(1, true));
    const auto told = machine.on_created(create.id, answer(create, 5, {somebody(4)}), now);
    const auto read = one<send_read>(machine.on_changed(one<start_watch>(told).id, now));
    const auto turn = machine.on_read(read.id, {}, now);
    EXPECT_FALSE(one<tell_turn>(turn).granted.has_value());
}

TEST_F(NodesRecipe, a_creation_without_an_answer_is_looked_for_and_asked_again_under_its_label) {
    open_session();
    const auto create = one<send_create>(ask(1));
    const auto told =
        machine.on_created(create.id, {.error = {errc::outcome_unknown, "no answer"}}, now);
    EXPECT_EQ(one<answer_acquire>(told).reply.error.code, errc::outcome_unknown);
    const auto read = one<send_read>(ask(1));
    EXPECT_EQ(read.label, create.request.claim.label);
    const auto again = one<send_create>(machine.on_read(read.id, {}, now));
    EXPECT_EQ(again.request.claim.label, create.request.claim.label);
}

TEST_F(NodesRecipe, a_creation_that_takes_effect_after_its_caller_gave_up_is_removed) {
    open_session();
    const auto create = one<send_create>(ask(1));
    static_cast<void>(
        machine.on_created(create.id, {.error = {errc::outcome_unknown, "no answer"}}, now));
    const auto read = one<send_read>(let_go(1));
    const auto gone = machine.on_read(read.id, {}, now);
    EXPECT_EQ(one<answer_release>(gone).reply.result, release_reply::outcome::gone);

    now = machine.next_wake();
    const auto sweep = one<send_read>(machine.on_time(now));
    const auto removal = machine.on_read(sweep.id, {.queue = {node_of(create, 8)}}, now);
    EXPECT_EQ(one<send_remove>(removal).node.place, 8U);
}

TEST_F(NodesRecipe, a_removal_without_an_answer_is_repeated) {
    open_session();
    hold(1, 5);
    const auto removal = one<send_remove>(let_go(1));
    const auto told =
        machine.on_removed(removal.id, {.error = {errc::outcome_unknown, "no answer"}}, now);
    EXPECT_EQ(one<answer_release>(told).reply.error.code, errc::outcome_unknown);
    now = machine.next_wake();
    EXPECT_EQ(one<send_remove>(machine.on_time(now)).node.place, 5U);
}

TEST_F(NodesRecipe, one_keep_alive_renews_all_holds) {
    open_session();
    hold(1, 5);
    now += 4s;
    std::vector<renew_request> batch(2);
    batch[0].name = "stock";
    batch[0].owner.sequence = 1;
    batch[0].ttl = ttl;
    batch[1] = batch[0];
    const auto asked = machine.renew(++call, batch, now + 1s, now);
    const auto kept = one<send_keep_alive>(asked);
    now += 100ms;
    const auto told = machine.on_session(kept.id, {.session = our_session, .ttl = ttl}, now);
    const auto replies = one<answer_renew>(told).replies;
    ASSERT_EQ(replies.size(), 2U);
    EXPECT_EQ(replies[0].result, renew_reply::outcome::renewed);
    EXPECT_EQ(replies[1].result, renew_reply::outcome::renewed);
}

TEST_F(NodesRecipe, a_session_that_ends_takes_all_holds_with_it_and_says_so_once) {
    open_session();
    hold(1, 5);
    const auto told = machine.on_session_ended(our_session, now);
    EXPECT_EQ(count<tell_holds_changed>(told), 1U);
    EXPECT_EQ(one<answer_release>(let_go(1)).reply.result, release_reply::outcome::gone);
}

TEST_F(NodesRecipe, a_session_is_over_by_our_clock_and_is_closed) {
    open_session();
    hold(1, 5);
    now += ttl;
    const auto told = machine.on_time(now);
    EXPECT_EQ(count<tell_holds_changed>(told), 1U);
    EXPECT_EQ(one<send_close>(told).session, our_session);
}

TEST_F(NodesRecipe, a_hold_that_nobody_renews_is_removed_while_its_session_lives) {
    open_session();
    hold(1, 5);
    bool removed = false;
    for (int step = 0; step < 100 && !removed; ++step) {
        now = machine.next_wake();
        const auto told = machine.on_time(now);
        removed = count<send_remove>(told) > 0;
        for (const auto& each : told) {
            if (const auto* const kept = std::get_if<send_keep_alive>(&each)) {
                static_cast<void>(
                    machine.on_session(kept->id, {.session = our_session, .ttl = ttl}, now));
            }
        }
    }
    EXPECT_TRUE(removed);
    EXPECT_EQ(now, clock::time_point{1h} + ttl);
}

TEST_F(NodesRecipe, shutting_down_answers_all_calls_and_closes_the_session) {
    open_session();
    static_cast<void>(ask(1));
    const auto told = machine.shut_down(now);
    EXPECT_EQ(one<answer_acquire>(told).reply.error.code, errc::shut_down);
    EXPECT_EQ(one<send_close>(told).session, our_session);
    EXPECT_TRUE(machine.closing());
}

}  // namespace

}  // namespace holdfast::engines::nodes
