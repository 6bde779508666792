#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/mutex.hpp>
#include <holdfast/testing/contract/fixture.hpp>

/// Which names there are, and that each is a lock of its own. The engine and the client agree.
namespace holdfast::testing {

template <class Store>
class name_contract : public engine_contract<Store> {
protected:
    static constexpr std::size_t longest_name = 1024;
    /// Errors are for people.
    static constexpr std::size_t longest_message = 400;

    /// Names that every store must carry unchanged.
    [[nodiscard]] std::vector<std::string> awkward_names() const {
        std::vector<std::string> names;
        for (const auto* name : {"Lager/größe/库存/🔒",
                                 "with  spaces ",
                                 " ",
                                 "{braces}",
                                 "}{",
                                 "'single'",
                                 "\"double\"",
                                 "`tick`",
                                 "100%",
                                 "%s%n",
                                 "a/b//c/",
                                 "../up",
                                 "back\\slash",
                                 "semi;colon",
                                 "a*b?[c]",
                                 "under_score",
                                 "$HOME",
                                 "#hash",
                                 "key=value&x",
                                 "<tag>",
                                 "name:with:colons",
                                 "-dash",
                                 "NULL",
                                 "'; DROP TABLE holds; --",
                                 "\xC2\xA0 no-break space",
                                 "e\xCC\x81 combining"}) {
            names.push_back(this->unique(name));
        }
        return names;
    }

    /// Names that nobody may use.
    [[nodiscard]] static std::vector<std::string> impossible_names() {
        using namespace std::string_literals;
        return {""s,
                "\0"s,
                "a\0b"s,
                "line\nbreak"s,
                "tab\tstop"s,
                "return\r"s,
                "escape\x1B[2J"s,
                "delete\x7F"s,
                "next line \xC2\x85"s,
                "\xFF\xFE"s,
                "cut off \xE2\x82"s,
                "overlong \xC0\xAF"s,
                "surrogate \xED\xA0\x80"s,
                "beyond \xF4\x90\x80\x80"s,
                "latin-1 \xE9"s,
                std::string(longest_name + 1, 'x'),
                std::string(std::size_t{10} * 1024 * 1024, 'x')};
    }

    /// The awkward names that the store can keep. One that spreads its keys over several servers may
    /// refuse names with braces, but then in every call.
    [[nodiscard]] std::vector<std::string> usable_names(contender& anybody) {
        auto names = awkward_names();
        std::erase_if(names, [&](const std::string& name) {
            if (name.find_first_of("{}") == std::string::npos) {
                return false;
            }
            const auto owner = anybody.another_owner();
            if (anybody.acquire(name, {.as = owner}).error.code != errc::invalid_name) {
                EXPECT_TRUE(released(anybody.release(name, {.as = owner})));
                return false;
            }
            EXPECT_TRUE(refused(anybody.release(name, {.as = owner}), errc::invalid_name));
            EXPECT_TRUE(refused(anybody.renew(name, {.as = owner}), errc::invalid_name));
            EXPECT_TRUE(refused(anybody.store().inspect(name), errc::invalid_name));
            EXPECT_EQ(anybody.revoke(name, owner, {1}).error.code, errc::invalid_name);
            return true;
        });
        return names;
    }

    /// A name for messages of this suite.
    [[nodiscard]] static std::string quoted(const std::string& name) {
        return ::testing::PrintToString(name.substr(0, 40)) + ", " + std::to_string(name.size()) +
               " bytes";
    }
};
TYPED_TEST_SUITE_P(name_contract);

TYPED_TEST_P(name_contract, awkward_names_are_locked_inspected_and_released_unchanged) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    for (const auto& name : this->usable_names(alice)) {
        SCOPED_TRACE(this->quoted(name));
        alice.become_fresh_owner();
        alice.hold(name);
        EXPECT_TRUE(busy(bob.acquire(name)));
        const auto info = bob.inspect(name);
        EXPECT_EQ(info.name, name);
        EXPECT_EQ(info.holders.size(), 1U);
        EXPECT_TRUE(renewed(alice.renew(name)));
        EXPECT_TRUE(released(alice.release(name)));
        EXPECT_TRUE(bob.inspect(name).holders.empty());
    }
}

TYPED_TEST_P(name_contract, awkward_names_are_listed_unchanged) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto names = this->usable_names(alice);
    for (const auto& name : names) {
        alice.hold(name);
    }
    const auto reply = alice.list(this->unique(""));
    for (const auto& name : names) {
        EXPECT_EQ(std::count_if(reply.locks.begin(), reply.locks.end(),
                                [&](const lock_info& lock) { return lock.name == name; }),
                  1)
            << this->quoted(name);
    }
    EXPECT_EQ(reply.locks.size(), names.size());
}

TYPED_TEST_P(name_contract, awkward_names_wake_their_waiters) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    for (const auto& name : this->usable_names(alice)) {
        SCOPED_TRACE(this->quoted(name));
        event_counter hints;
        alice.become_fresh_owner();
        alice.hold(name);
        const auto watch = bob.watch(name, hints.callback());
        const auto before = hints.count();
        ASSERT_TRUE(released(alice.release(name)));
        ASSERT_TRUE(hints.wait_for(before + 1, this->wake_bound));
    }
}

TYPED_TEST_P(name_contract, names_that_differ_only_a_little_are_different_locks) {
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(this->unique("stock"));
    for (const auto* other : {"Stock", "STOCK", "stock ", " stock", "stoc", "stock1", "stock/",
                              "stock%", "sto_k", "sto\xC4\x8Dk"}) {
        EXPECT_TRUE(granted(bob.acquire(this->unique(other)))) << other;
    }
    // The same letter, composed and decomposed.
    EXPECT_TRUE(granted(alice.acquire(this->unique("caf\xC3\xA9"))));
    EXPECT_TRUE(granted(bob.acquire(this->unique("cafe\xCC\x81"))));
}

TYPED_TEST_P(name_contract, the_longest_name_works) {
    const auto start = this->unique("");
    const auto name = start + std::string(this->longest_name - start.size(), 'x');
    const auto neighbour = name.substr(0, name.size() - 1) + "y";
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    EXPECT_TRUE(busy(bob.acquire(name)));
    EXPECT_TRUE(granted(bob.acquire(neighbour)));
    EXPECT_EQ(bob.inspect(name).name, name);
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(name_contract, impossible_names_are_refused_by_the_engine_in_few_words) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    for (const auto& name : this->impossible_names()) {
        SCOPED_TRACE(this->quoted(name));
        const auto reply = alice.acquire(name);
        EXPECT_TRUE(refused(reply, errc::invalid_name));
        EXPECT_LT(reply.error.detail.size(), this->longest_message);
        const auto inspected = alice.store().inspect(name);
        EXPECT_TRUE(refused(inspected, errc::invalid_name));
        EXPECT_LT(inspected.error.detail.size(), this->longest_message);
    }
    EXPECT_TRUE(granted(alice.acquire(this->unique("stock")))) << "the engine did not survive it";
}

TYPED_TEST_P(name_contract, impossible_names_of_latches_are_refused_by_the_engine) {
    auto alice = this->join("alice");
    if (!this->offers_latches(alice)) {
        return;
    }
    for (const auto& name : this->impossible_names()) {
        EXPECT_TRUE(refused(alice.set_latch(name, 1), errc::invalid_name)) << this->quoted(name);
    }
}

TYPED_TEST_P(name_contract, awkward_names_exclude_between_clients) {
    client first{this->address()};
    client second{this->address()};
    auto anybody = this->join("anybody");
    for (const auto& name : this->usable_names(anybody)) {
        SCOPED_TRACE(this->quoted(name));
        mutex first_lock{first, name};
        mutex second_lock{second, name};
        const auto held = first_lock.try_acquire();
        EXPECT_TRUE(held.has_value());
        EXPECT_FALSE(second_lock.try_acquire().has_value());
    }
}

TYPED_TEST_P(name_contract, impossible_names_are_refused_by_the_client_in_few_words) {
    client client{this->address()};
    if (!this->offers_operators(client)) {
        return;
    }
    for (const auto& name : this->impossible_names()) {
        SCOPED_TRACE(this->quoted(name));
        try {
            mutex impossible{client, name};
            ADD_FAILURE() << "accepted";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::invalid_name);
            EXPECT_LT(std::string{error.what()}.size(), this->longest_message);
        }
        EXPECT_THROW(static_cast<void>(client.inspect(name)), std::system_error);
    }
}

TYPED_TEST_P(name_contract, a_store_that_says_who_answers_says_the_same_to_all) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    static_cast<void>(alice.inspect(name));
    static_cast<void>(bob.inspect(name));
    const auto seen = alice.store().raw().offers().votes->instance(name);
    EXPECT_EQ(seen.id, bob.store().raw().offers().votes->instance(name).id);
    if (seen.since) {
        EXPECT_LE(*seen.since, clock::now());
    }
}

REGISTER_TYPED_TEST_SUITE_P(name_contract,  //
                            a_store_that_says_who_answers_says_the_same_to_all,
                            awkward_names_are_locked_inspected_and_released_unchanged,
                            awkward_names_are_listed_unchanged, awkward_names_wake_their_waiters,
                            names_that_differ_only_a_little_are_different_locks, the_longest_name_works,
                            impossible_names_are_refused_by_the_engine_in_few_words,
                            impossible_names_of_latches_are_refused_by_the_engine,
                            awkward_names_exclude_between_clients,
                            impossible_names_are_refused_by_the_client_in_few_words);

}  // namespace holdfast::testing
