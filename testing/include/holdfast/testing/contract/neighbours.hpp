#pragma once

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/mutex.hpp>
#include <holdfast/testing/contract/fixture.hpp>

/// Names that could be taken for each other: by the keys that a store derives from them, by what its
/// database calls equal, or because one begins with the other. Each is a lock of its own, also when all
/// of them are held and waited for at once.
namespace holdfast::testing {

template <class Store>
class neighbour_contract : public engine_contract<Store> {
protected:
    static constexpr std::size_t longest_name = 1024;

    /// Neighbours of `name`, which is among them. The same letters in other forms, parts of keys.
    [[nodiscard]] static std::vector<std::string> neighbours_of(const std::string& name) {
        std::vector<std::string> all{name,       name + "b", name + ":b", name + ":", ":" + name,
                                     name + " ", " " + name, name + "0",  name + "%", name + "_"};
        for (const auto* ending :
             {":write", ":lingering", ":timeout", ":1", ":rwlock_timeout:1",
              // Composed and decomposed, upper and lower case, wide, joined, in other scripts.
              "\xC3\xA9", "e\xCC\x81", "\xC3\x89", "\xC3\x9F", "ss", "\xE1\xBA\x9E", "I", "i",
              "\xC4\xB0", "\xC4\xB1", "\xEF\xBD\x81", "a", "A", "\xEF\xAC\x81", "fi", "\xC3\x85",
              "\xE2\x84\xAB", "k", "K", "\xE2\x84\xAA", "\xCF\x82", "\xCF\x83", "\xCE\xA3",
              "\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xD9\xA0", "\xE0\xA5\xA6",
              // Spaces, and characters without a shape.
              "\xC2\xA0", "\xE2\x80\x83", "\xE2\x80\x8B", "\xE2\x80\x8D", "\xE2\x80\x8F",
              "\xEF\xBB\xBF", "\xC2\xAD", "\xCC\x81",
              // Private, unassigned, beyond the first plane.
              "\xEE\x80\x80", "\xEF\xBF\xBE", "\xEF\xBF\xBD", "\xF0\x9F\x94\x92",
              "\xF0\x9F\x94\x92\xEF\xB8\x8F", "\xF4\x8F\xBF\xBF"}) {
            all.push_back(name + ending);
        }
        const std::string longest = name + std::string(longest_name - name.size(), 'x');
        const auto almost = longest.substr(0, longest_name - 1);
        all.insert(all.end(), {longest, almost, almost + "y"});
        return all;
    }
    /// Neighbours with braces, which decide where a cluster keeps a lock, and keys that stores in
    /// Redisson's layout have for `name`.
    [[nodiscard]] static std::vector<std::string> keys_of(const std::string& name) {
        const auto braced = "{" + name + "}";
        std::vector<std::string> all{braced,       braced + "b",       "b" + braced, "{" + braced + "}",
                                     "{" + name,   name + "}",         name + "{}",  braced + braced,
                                     braced + ":", braced + ":timeout"};
        for (const auto* start :
             {"holdfast_holds:", "holdfast_holds::", "holdfast_wishes:", "holdfast_waiters:",
              "holdfast_grants:", "holdfast_revoked:", "holdfast_absent:", "redisson_lock__channel:",
              "redisson_lock_queue:", "redisson_lock_timeout:", "redisson_lock_token:",
              "redisson_rwlock:", "redisson_sc:", "redisson_countdownlatch__channel__"}) {
            all.push_back(start + braced);
        }
        all.emplace_back("holdfast_token");
        return all;
    }

    /// Those of `all` that the store takes. It may refuse names with braces, and names of its own keys,
    /// but no others, and then in every call.
    [[nodiscard]] static std::vector<std::string> usable(contender& anybody,
                                                         std::vector<std::string> all) {
        std::erase_if(all, [&](const std::string& name) {
            const auto owner = anybody.another_owner();
            if (anybody.acquire(name, {.as = owner}).error.code != errc::invalid_name) {
                EXPECT_TRUE(released(anybody.release(name, {.as = owner}))) << name;
                return false;
            }
            EXPECT_NE(name.find_first_of("{}_"), std::string::npos) << name;
            EXPECT_TRUE(refused(anybody.release(name, {.as = owner}), errc::invalid_name)) << name;
            EXPECT_TRUE(refused(anybody.renew(name, {.as = owner}), errc::invalid_name)) << name;
            EXPECT_TRUE(refused(anybody.store().inspect(name), errc::invalid_name)) << name;
            EXPECT_EQ(anybody.revoke(name, owner, {1}).error.code, errc::invalid_name) << name;
            return true;
        });
        return all;
    }
    [[nodiscard]] std::vector<std::string> all_neighbours(contender& anybody) {
        const auto name = this->unique("a");
        auto all = neighbours_of(name);
        const auto keys = keys_of(name);
        all.insert(all.end(), keys.begin(), keys.end());
        return usable(anybody, std::move(all));
    }
};
TYPED_TEST_SUITE_P(neighbour_contract);

TYPED_TEST_P(neighbour_contract, are_held_inspected_and_released_one_by_one) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    std::vector<engines::renew_request> held;
    for (const auto& name : this->all_neighbours(alice)) {
        const auto owner = alice.another_owner();
        ASSERT_TRUE(granted(alice.acquire(name, {.as = owner}))) << name;
        held.push_back({.name = name, .owner = owner, .ttl = long_ttl});
    }
    while (!held.empty()) {
        const auto replies = alice.store().renew(held);
        for (std::size_t index = 0; index < held.size(); ++index) {
            ASSERT_TRUE(renewed(replies[index])) << held[index].name;
        }
        const auto last = held.back();
        held.pop_back();
        ASSERT_TRUE(busy(bob.acquire(last.name))) << last.name;
        const auto info = bob.inspect(last.name);
        EXPECT_EQ(info.name, last.name);
        ASSERT_EQ(info.holders.size(), 1U) << last.name;
        EXPECT_EQ(info.holders[0].owner, last.owner);
        ASSERT_TRUE(released(alice.release(last.name, {.as = last.owner}))) << last.name;
        EXPECT_TRUE(bob.inspect(last.name).holders.empty()) << last.name;
    }
}

TYPED_TEST_P(neighbour_contract, are_listed_one_by_one) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto names = this->all_neighbours(alice);
    for (const auto& name : names) {
        alice.hold(name, {.as = alice.another_owner()});
    }
    for (const auto& prefix : {this->unique("a"), "{" + this->unique("a")}) {
        const auto expected = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
            return name.starts_with(prefix);
        });
        const auto listed = alice.list(prefix).locks;
        EXPECT_EQ(static_cast<std::ptrdiff_t>(listed.size()), expected);
        for (const auto& lock : listed) {
            EXPECT_EQ(std::count(names.begin(), names.end(), lock.name), 1) << lock.name;
            EXPECT_EQ(lock.holders.size(), 1U) << lock.name;
        }
    }
}

/// Whatever kind of lock one of them is, and whatever the store keeps beside it.
TYPED_TEST_P(neighbour_contract, are_left_alone_by_every_kind_of_lock) {
    auto alice = this->join("alice");
    struct use {
        contender by;
        claim_mode mode{};
    };
    std::vector<use> uses;
    uses.push_back({this->join("plain", lock_kind::mutex), claim_mode::exclusive});
    uses.push_back({this->join("fair", lock_kind::fair_mutex), claim_mode::exclusive});
    uses.push_back({this->join("writer", lock_kind::shared_mutex), claim_mode::exclusive});
    uses.push_back({this->join("reader", lock_kind::shared_mutex), claim_mode::shared});
    uses.push_back({this->join("permit", lock_kind::semaphore), claim_mode::permit});
    const auto count = this->keys_of("").size();
    for (std::size_t index = 0; index < count; ++index) {
        const auto name = this->unique("a" + std::to_string(index));
        const auto usable = this->usable(alice, {this->keys_of(name)[index]});
        if (usable.empty()) {
            continue;
        }
        const auto& neighbour = usable.front();
        SCOPED_TRACE(neighbour);
        const auto owner = alice.another_owner();
        ASSERT_TRUE(granted(alice.acquire(neighbour, {.as = owner})));
        for (auto& [by, mode] : uses) {
            by.become_fresh_owner();
            const auto reply =
                by.acquire(name, {.mode = mode, .limit = mode == claim_mode::permit ? 1U : 0U});
            if (reply.result == engines::acquire_reply::outcome::granted) {
                EXPECT_TRUE(renewed(by.renew(name, {.mode = mode})));
                EXPECT_TRUE(released(by.release(name, {.mode = mode})));
            } else {
                // The neighbour is where it would keep its permits, or there are no such locks.
                EXPECT_TRUE(reply.error.code == errc::wrong_kind ||
                            reply.error.code == errc::guarantee_not_met)
                    << reply.error.detail;
            }
            ASSERT_TRUE(renewed(alice.renew(neighbour, {.as = owner})))
                << by.identity().card.label << " took it away";
        }
    }
}

/// Whoever releases one of them grants its waiter that one and no other.
TYPED_TEST_P(neighbour_contract, are_passed_on_to_their_own_waiters) {
    auto anybody = this->join("anybody");
    if (!this->offers_operators(anybody)) {
        return;
    }
    const auto name = this->unique("a");
    auto names = this->usable(anybody, this->keys_of(name));
    names.insert(names.begin(), {name, name + "b", name + ":b"});
    client first{this->address()};
    client second{this->address()};
    std::vector<lease> held;
    std::vector<std::future<std::optional<lease>>> waiting;
    for (const auto& each : names) {
        held.push_back(mutex{first, each}.acquire());
    }
    for (const auto& each : names) {
        waiting.push_back(std::async(std::launch::async, [&second, &each] {
            return mutex{second, each}.try_acquire_for(std::chrono::seconds{60});
        }));
        // As far as the store counts them.
        EXPECT_TRUE(eventually([&] { return anybody.inspect(each).waiters.value_or(1) > 0; })) << each;
    }
    // The last one first: who waits for a neighbour came before its waiter did.
    std::vector<lease> passed_on;
    for (auto index = names.size(); index-- > 0;) {
        SCOPED_TRACE(names[index]);
        held[index].release();
        ASSERT_EQ(waiting[index].wait_for(this->wake_bound), std::future_status::ready);
        auto got = waiting[index].get();
        ASSERT_TRUE(got);
        EXPECT_EQ(got->name(), names[index]);
        EXPECT_EQ(anybody.inspect(names[index]).holders.at(0).owner, got->owner());
        passed_on.push_back(*std::move(got));
        for (std::size_t other = 0; other < index; ++other) {
            ASSERT_TRUE(static_cast<bool>(held[other]));
            ASSERT_NE(waiting[other].wait_for(std::chrono::seconds{0}), std::future_status::ready)
                << "given away: " << names[other];
        }
    }
}

TYPED_TEST_P(neighbour_contract, have_readers_and_writers_of_their_own) {
    auto alice = this->join("alice", lock_kind::shared_mutex);
    auto bob = this->join("bob", lock_kind::shared_mutex);
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto names = this->all_neighbours(alice);
    const auto mode_of = [](std::size_t index) {
        return index % 2 == 0 ? claim_mode::exclusive : claim_mode::shared;
    };
    for (std::size_t index = 0; index < names.size(); ++index) {
        alice.hold(names[index], {.mode = mode_of(index)});
    }
    for (std::size_t index = 0; index < names.size(); ++index) {
        SCOPED_TRACE(names[index]);
        const auto mode = mode_of(index);
        const auto reads = bob.acquire(names[index], {.mode = claim_mode::shared});
        EXPECT_TRUE(mode == claim_mode::shared ? granted(reads) : busy(reads));
        EXPECT_TRUE(renewed(alice.renew(names[index], {.mode = mode})));
        EXPECT_TRUE(released(alice.release(names[index], {.mode = mode})));
        if (mode == claim_mode::shared) {
            EXPECT_TRUE(released(bob.release(names[index], {.mode = mode})));
        }
        EXPECT_TRUE(granted(bob.acquire(names[index])));
    }
}

/// Without braces: Redisson's layout counts the permits of `a` and `{a}` together.
TYPED_TEST_P(neighbour_contract, have_permits_of_their_own) {
    constexpr claim_terms one{.mode = claim_mode::permit, .permits = 1, .limit = 2};
    auto alice = this->join("alice", lock_kind::semaphore);
    auto bob = this->join("bob", lock_kind::semaphore);
    if (!this->offers_permits(alice)) {
        return;
    }
    const auto names = this->neighbours_of(this->unique("a"));
    for (const auto& name : names) {
        alice.hold(name, one);
    }
    for (const auto& name : names) {
        SCOPED_TRACE(name);
        EXPECT_TRUE(granted(bob.acquire(name, one)));
        auto third = one;
        third.as = bob.another_owner();
        EXPECT_TRUE(busy(bob.acquire(name, third)));
        EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::permit})));
        EXPECT_TRUE(released(alice.release(name, {.mode = claim_mode::permit})));
        EXPECT_TRUE(granted(bob.acquire(name, third)));
    }
}

TYPED_TEST_P(neighbour_contract, have_latches_of_their_own) {
    auto alice = this->join("alice", lock_kind::latch);
    if (!this->offers_latches(alice)) {
        return;
    }
    auto names = this->neighbours_of(this->unique("a"));
    for (auto& name : this->keys_of(this->unique("a"))) {
        if (alice.read_latch(name).error.code == errc::invalid_name) {
            EXPECT_TRUE(refused(alice.set_latch(name, 2), errc::invalid_name)) << name;
            EXPECT_TRUE(refused(alice.count_down(name), errc::invalid_name)) << name;
        } else {
            names.push_back(std::move(name));
        }
    }
    for (const auto& name : names) {
        EXPECT_TRUE(alice.set_latch(name, 2).applied) << name;
    }
    for (const auto& name : names) {
        EXPECT_EQ(alice.read_latch(name).count, 2U) << name;
        EXPECT_EQ(alice.count_down(name, 2).count, 0U) << name;
    }
}

REGISTER_TYPED_TEST_SUITE_P(neighbour_contract,  //
                            are_held_inspected_and_released_one_by_one, are_listed_one_by_one,
                            are_left_alone_by_every_kind_of_lock, are_passed_on_to_their_own_waiters,
                            have_readers_and_writers_of_their_own, have_permits_of_their_own,
                            have_latches_of_their_own);

}  // namespace holdfast::testing
