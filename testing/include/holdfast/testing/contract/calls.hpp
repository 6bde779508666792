#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/testing/contract/fixture.hpp>

/// How calls end: once, in order, in time, and with no lock of the engine's held.
namespace holdfast::testing {

template <class Store>
class call_contract : public engine_contract<Store> {
protected:
    /// "Promptly", even on a busy machine.
    static constexpr std::chrono::seconds promptly{5};

    [[nodiscard]] static engines::call soon() {
        return {.deadline = clock::now() + patience, .from = engines::caller::must_not_block};
    }
    [[nodiscard]] static engines::call too_late() {
        return {.deadline = clock::now() - std::chrono::seconds{1}};
    }
};
TYPED_TEST_SUITE_P(call_contract);

TYPED_TEST_P(call_contract, the_engine_says_what_it_promises) {
    auto alice = this->join("alice");
    const auto& promises = alice.store().promises();
    EXPECT_FALSE(promises.reach_text.empty());
    EXPECT_GT(promises.minimum_ttl, std::chrono::milliseconds::zero());
    EXPECT_LE(promises.minimum_ttl, this->short_ttl);
    EXPECT_GT(promises.maximum_ttl, 2 * long_ttl);
    EXPECT_FALSE(alice.store().raw().address().empty());
    EXPECT_GT(promises.ttl_granularity, std::chrono::milliseconds::zero());
    const auto offered = alice.store().raw().offers();
    EXPECT_EQ(promises.latches, offered.latches != nullptr);
    EXPECT_TRUE(!promises.fair || offered.lines != nullptr);
}

TYPED_TEST_P(call_contract, a_reply_never_says_a_longer_ttl_than_the_store_grants) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    const auto asked_at = clock::now();
    const auto reply = alice.acquire(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(granted(reply));
    const auto ttl = reply.ttl.count() > 0 ? reply.ttl : this->short_ttl;
    const auto free_at = bob.acquire_eventually(name);
    ASSERT_TRUE(free_at);
    this->expect_not_before(ttl, asked_at, *free_at);
}

TYPED_TEST_P(call_contract, requests_on_one_name_take_effect_in_the_order_they_were_made) {
    constexpr int rounds = 50;
    const auto name = this->unique("stock");
    event_counter done;
    std::atomic<int> refusals{0};
    auto alice = this->join("alice");
    auto& engine = alice.store().raw();
    for (int round = 0; round < rounds; ++round) {
        const auto owner = alice.become_fresh_owner();
        engine.acquire({.name = name, .owner = owner, .ttl = long_ttl}, this->soon(),
                       [&, count = done.callback()](const engines::acquire_reply& reply) {
                           refusals += granted(reply) ? 0 : 1;
                           count();
                       });
        engine.renew({{.name = name, .owner = owner, .ttl = long_ttl}}, this->soon(),
                     [&, count = done.callback()](const std::vector<engines::renew_reply>& replies) {
                         refusals += replies.size() == 1 && renewed(replies[0]) ? 0 : 1;
                         count();
                     });
        engine.release({.name = name, .owner = owner}, this->soon(),
                       [&, count = done.callback()](const engines::release_reply& reply) {
                           refusals += released(reply) ? 0 : 1;
                           count();
                       });
    }
    EXPECT_TRUE(done.wait_for(3 * rounds, patience)) << done.count() << " answers";
    EXPECT_EQ(refusals, 0);
}

TYPED_TEST_P(call_contract, a_completion_may_call_the_engine) {
    constexpr int rounds = 30;
    const auto name = this->unique("stock");
    event_counter finished;
    std::atomic<int> remaining{rounds};
    std::function<void()> next_round;
    auto alice = this->join("alice");
    auto& engine = alice.store().raw();
    next_round = [&, finish = finished.callback()] {
        if (remaining-- == 0) {
            finish();
            return;
        }
        engine.acquire({.name = name, .owner = alice.owner(), .ttl = long_ttl}, this->soon(),
                       [&](const engines::acquire_reply& acquired) {
                           EXPECT_TRUE(granted(acquired));
                           engine.release({.name = name, .owner = alice.owner()}, this->soon(),
                                          [&](const engines::release_reply& given_back) {
                                              EXPECT_TRUE(released(given_back));
                                              next_round();
                                          });
                       });
    };
    next_round();
    EXPECT_TRUE(finished.wait_for(1, patience));
}

TYPED_TEST_P(call_contract, callers_that_must_not_block_are_answered_too) {
    const auto name = this->unique("stock");
    const auto identity = engines::make_identity("alice");
    blocking_engine engine{engines::open(this->address(), identity), engines::caller::must_not_block};
    auto owner = identity.client;
    owner.sequence = 1;
    EXPECT_TRUE(granted(engine.acquire({.name = name, .owner = owner, .ttl = long_ttl})));
    EXPECT_EQ(engine.renew({{.name = name, .owner = owner, .ttl = long_ttl}}).size(), 1U);
    if (engine.raw().offers().operators != nullptr) {
        const auto inspected = engine.inspect(name);
        ASSERT_TRUE(answered(inspected));
        EXPECT_EQ(inspected.info.holders.size(), 1U);
        EXPECT_TRUE(answered(engine.list({.prefix = name, .from = {}})));
    }
    EXPECT_TRUE(released(engine.release({.name = name, .owner = owner})));
}

// A call may be answered in spite of a deadline that has passed, but what it says must be true:
// `store_unavailable` only if nothing was changed, "granted" only if it is.
TYPED_TEST_P(call_contract, a_call_whose_deadline_has_passed_ends_promptly_and_tells_the_truth) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto answer = std::make_shared<engines::acquire_reply>();
    event_counter done;
    alice.store().raw().acquire({.name = name, .owner = alice.owner(), .ttl = long_ttl},
                                this->too_late(),
                                [answer, count = done.callback()](engines::acquire_reply reply) {
                                    *answer = std::move(reply);
                                    count();
                                });
    ASSERT_TRUE(done.wait_for(1, this->promptly));
    switch (answer->result) {
        case engines::acquire_reply::outcome::granted:
            EXPECT_EQ(bob.inspect(name).holders.size(), 1U);
            break;
        case engines::acquire_reply::outcome::busy:
            ADD_FAILURE() << "a free name is not busy";
            break;
        case engines::acquire_reply::outcome::failed:
            EXPECT_TRUE(answer->error.code == errc::store_unavailable ||
                        answer->error.code == errc::outcome_unknown)
                << answer->error.detail;
            if (answer->error.code == errc::store_unavailable) {
                EXPECT_TRUE(bob.inspect(name).holders.empty());
            }
            break;
    }
}

TYPED_TEST_P(call_contract, every_kind_of_call_ends_promptly_when_its_deadline_has_passed) {
    const auto name = this->unique("stock");
    event_counter done;
    auto alice = this->join("alice");
    auto& engine = alice.store().raw();
    const auto owner = alice.owner();
    const auto ended = [count = done.callback()](const auto&) { count(); };
    engine.acquire({.name = name, .owner = owner, .ttl = long_ttl}, this->too_late(), ended);
    engine.renew({{.name = name, .owner = owner, .ttl = long_ttl}}, this->too_late(),
                 [count = done.callback()](const std::vector<engines::renew_reply>& replies) {
                     EXPECT_EQ(replies.size(), 1U);
                     count();
                 });
    engine.release({.name = name, .owner = owner}, this->too_late(), ended);
    std::size_t calls = 3;
    if (auto* const operators = engine.offers().operators) {
        operators->revoke(
            {.name = name, .owner = owner, .token = {1}, .actor = "alice", .reason = "late"},
            this->too_late(), ended);
        operators->inspect(name, this->too_late(), ended);
        operators->list({.prefix = name, .from = {}}, this->too_late(), ended);
        calls += 3;
    }
    if (auto* const latches = engine.offers().latches) {
        latches->latch({.name = name, .request = owner}, this->too_late(), ended);
        ++calls;
    }
    EXPECT_TRUE(done.wait_for(calls, this->promptly)) << done.count() << " answers";
}

TYPED_TEST_P(call_contract, an_engine_that_is_destroyed_has_answered_every_call_exactly_once) {
    constexpr std::size_t calls = 200;
    const auto name = this->unique("stock");
    event_counter answers;
    {
        auto alice = this->join("alice");
        for (std::size_t index = 0; index < calls / 2; ++index) {
            const auto owner = alice.become_fresh_owner();
            alice.store().raw().acquire({.name = name, .owner = owner, .ttl = long_ttl}, this->soon(),
                                        [count = answers.callback()](const auto&) { count(); });
            alice.store().raw().release({.name = name, .owner = owner}, this->soon(),
                                        [count = answers.callback()](const auto&) { count(); });
        }
    }
    EXPECT_EQ(answers.count(), calls);
}

TYPED_TEST_P(call_contract, an_engine_that_is_destroyed_gives_no_more_hints) {
    const auto name = this->unique("stock");
    auto bob = this->join("bob");
    if (!this->offers_watching(bob)) {
        return;
    }
    event_counter hints;
    std::size_t heard{};
    {
        auto alice = this->join("alice");
        const auto watch = alice.watch(name, hints.callback());
        bob.hold(name);
        ASSERT_TRUE(released(bob.release(name)));
    }
    heard = hints.count();
    for (int round = 0; round < 10; ++round) {
        bob.hold(name);
        ASSERT_TRUE(released(bob.release(name)));
    }
    EXPECT_EQ(hints.count(), heard);
}

TYPED_TEST_P(call_contract, an_engine_can_be_used_by_many_threads_at_once) {
    constexpr int threads = 8;
    constexpr int rounds = 20;
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    std::atomic<int> completed{0};
    {
        std::vector<std::jthread> workers;
        for (int index = 0; index < threads; ++index) {
            workers.emplace_back([&, owner = alice.another_owner(),
                                  name = this->unique("own/" + std::to_string(index))] {
                for (int round = 0; round < rounds; ++round) {
                    const auto watch =
                        alice.store().raw().offers().watching->watch(name, lock_kind::mutex, [] {});
                    completed += granted(alice.acquire(name, {.as = owner})) &&
                                         renewed(alice.renew(name, {.as = owner})) &&
                                         alice.inspect(name).holders.size() == 1 &&
                                         released(alice.release(name, {.as = owner}))
                                     ? 1
                                     : 0;
                }
            });
        }
    }
    EXPECT_EQ(completed, threads * rounds);
}

REGISTER_TYPED_TEST_SUITE_P(call_contract,  //
                            the_engine_says_what_it_promises,
                            a_reply_never_says_a_longer_ttl_than_the_store_grants,
                            requests_on_one_name_take_effect_in_the_order_they_were_made,
                            a_completion_may_call_the_engine,
                            callers_that_must_not_block_are_answered_too,
                            a_call_whose_deadline_has_passed_ends_promptly_and_tells_the_truth,
                            every_kind_of_call_ends_promptly_when_its_deadline_has_passed,
                            an_engine_that_is_destroyed_has_answered_every_call_exactly_once,
                            an_engine_that_is_destroyed_gives_no_more_hints,
                            an_engine_can_be_used_by_many_threads_at_once);

}  // namespace holdfast::testing
