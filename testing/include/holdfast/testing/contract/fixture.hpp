#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>

#include <holdfast/client.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/contender.hpp>
#include <holdfast/testing/event_counter.hpp>
#include <holdfast/testing/eventually.hpp>

namespace holdfast::testing {

/// What the suite needs of an engine's author. One is made for every test and destroyed after it.
template <class Store>
concept contract_store = std::default_initializable<Store> && requires(Store store) {
    /// Where the store is. Clients with this address share it.
    { store.address() } -> std::convertible_to<std::string>;
    /// The shortest ttl that makes sense here; tests of expiry wait for it to pass.
    { Store::short_ttl } -> std::convertible_to<std::chrono::milliseconds>;
    /// How soon, even on a busy machine, a release is heard of by those who wait.
    { Store::wake_bound } -> std::convertible_to<std::chrono::milliseconds>;
};

/// Whether somebody is heard to wait for `name`; true where the store cannot tell.
[[nodiscard]] inline bool somebody_waits(client& opened, const std::string& name) {
    try {
        return opened.inspect(name).waiters.value_or(1) >= 1;
    } catch (const std::system_error& error) {
        if (error.code() == errc::guarantee_not_met) {
            return true;
        }
        throw;
    }
}

/// Where every contract test starts.
///
/// The rule for what an engine does not promise: it must say so. Asked for a kind of lock that it
/// lacks it answers `errc::guarantee_not_met`, and the tests of that kind check this refusal in place
/// of the behaviour. Without tokens (`fencing::none`) every token is zero, never an invented number.
template <contract_store Store>
class engine_contract : public ::testing::Test {
protected:
    static constexpr std::chrono::milliseconds short_ttl{Store::short_ttl};
    static constexpr std::chrono::milliseconds wake_bound{Store::wake_bound};
    /// How much earlier than by the test's clock a store may end a lease: stores count in whole
    /// milliseconds.
    static constexpr std::chrono::milliseconds clock_grain{2};

    [[nodiscard]] std::string address() { return store_.address(); }

    /// Another participant, with a client of its own.
    [[nodiscard]] contender join(const std::string& label, lock_kind locks = lock_kind::mutex) {
        return contender{address(), label, locks};
    }

    /// A name that no other test uses, even in a store that outlives this one.
    [[nodiscard]] std::string unique(const std::string& name) const { return prefix_ + name; }

    /// The tests of shared locks start with this. False: not promised, and refused as it must be.
    [[nodiscard]] bool offers_shared(contender& anybody) {
        if (anybody.store().promises().shared) {
            return true;
        }
        EXPECT_TRUE(refused(anybody.acquire(unique("probe"), {.mode = claim_mode::shared}),
                            errc::guarantee_not_met));
        return false;
    }

    [[nodiscard]] bool offers_permits(contender& anybody) {
        if (anybody.store().promises().permits) {
            return true;
        }
        EXPECT_TRUE(refused(anybody.acquire(unique("probe"), {.mode = claim_mode::permit, .limit = 1}),
                            errc::guarantee_not_met));
        return false;
    }

    [[nodiscard]] bool offers_latches(contender& anybody) {
        if (anybody.store().promises().latches) {
            return true;
        }
        EXPECT_TRUE(refused(anybody.set_latch(unique("probe"), 1), errc::guarantee_not_met));
        return false;
    }

    [[nodiscard]] bool offers_tokens(contender& anybody) {
        if (anybody.store().promises().tokens != engines::fencing::none) {
            return true;
        }
        EXPECT_EQ(anybody.hold(unique("probe")), fencing_token{});
        return false;
    }

    /// The operators' view is an ability: without it nobody can be shown or revoked.
    [[nodiscard]] bool offers_operators(contender& anybody) {
        if (anybody.store().raw().offers().operators != nullptr) {
            return true;
        }
        client user{address()};
        EXPECT_THROW(static_cast<void>(user.inspect(unique("probe"))), std::system_error);
        EXPECT_THROW(static_cast<void>(user.list()), std::system_error);
        return false;
    }
    [[nodiscard]] bool offers_operators(const client&) {
        contender anybody = join("probe");
        return offers_operators(anybody);
    }

    /// Without it those who wait ask again and again: see `client_contract`.
    [[nodiscard]] static bool offers_watching(contender& anybody) {
        return anybody.store().raw().offers().watching != nullptr;
    }

    [[nodiscard]] bool offers_token_floor(contender& anybody) {
        return offers_tokens(anybody) && anybody.store().raw().offers().votes != nullptr;
    }

    /// For a lease that was asked for at `taken_at`, and was seen to have ended at `ended_at`.
    static void expect_not_before(std::chrono::milliseconds ttl, clock::time_point taken_at,
                                  clock::time_point ended_at) {
        EXPECT_GE(ended_at - taken_at, ttl - clock_grain) << "the lease ended before its ttl";
    }

private:
    [[nodiscard]] static std::string make_prefix() {
        return "contract-" + owner_id::random_client().client_text() + "/";
    }

    Store store_;
    std::string prefix_{make_prefix()};
};

}  // namespace holdfast::testing
