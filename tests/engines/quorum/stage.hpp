#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/quorum.hpp>
#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/blocking_engine.hpp>
#include <holdfast/testing/eventually.hpp>
#include <holdfast/testing/fault_engine.hpp>
#include <holdfast/testing/forwarding_engine.hpp>

/// Quorums of stores in this process, whose connections fail on demand and which can be looked into one
/// by one.
namespace holdfast::testing {

using namespace std::chrono_literals;

inline constexpr auto quorum_ttl = 60s;
inline const std::string lock_name = "stock";

/// An engine that says what the test wants about the server behind it.
class disguised final : public forwarding_engine, public engines::votes {
public:
    disguised(std::unique_ptr<engine> inner, engines::store_instance who)
        : forwarding_engine{std::move(inner)},
          who_{std::move(who)},
          promises_{this->inner().promises()} {}
    disguised(std::unique_ptr<engine> inner, engines::guarantees promises)
        : forwarding_engine{std::move(inner)}, promises_{std::move(promises)} {}

    const engines::guarantees& promises() const noexcept override { return promises_; }
    engines::abilities offers() noexcept override {
        auto offered = inner().offers();
        offered.votes = this;
        return offered;
    }
    // An address of its own is all that its identity is.
    std::string store_identity() const override { return address(); }
    void acquire(engines::acquire_request request, engines::call how,
                 engines::completion<engines::acquire_reply> done) override {
        asked_ = true;
        forwarding_engine::acquire(std::move(request), how, std::move(done));
    }
    /// Known only once it has been asked something, as with a server that is met late.
    engines::store_instance instance(const std::string&) const override {
        return asked_ ? who_ : engines::store_instance{};
    }

private:
    engines::store_instance who_;
    const engines::guarantees promises_;
    std::atomic<bool> asked_{false};
};

/// Some stores (three if nothing else is said), a client of theirs with a quorum, and everything that
/// may happen between.
class quorum_test : public ::testing::Test {
protected:
    explicit quorum_test(std::size_t members = 3) {
        static std::atomic<int> number{0};
        const auto prefix = "memory:quorum-test-" + std::to_string(++number);
        for (std::size_t index = 0; index < members; ++index) {
            addresses.push_back(prefix + "/" + std::to_string(index));
            faults.push_back(std::make_shared<fault_plan>());
            outsiders.push_back(
                std::make_unique<blocking_engine>(engines::open(addresses[index], outsider)));
        }
    }

    /// The client's way to one store.
    [[nodiscard]] std::unique_ptr<engines::engine> way_to(std::size_t index) const {
        return std::make_unique<fault_engine>(engines::open(addresses[index], identity), faults[index]);
    }
    [[nodiscard]] blocking_engine open(engines::quorum_options options = {.member_timeout = 5s}) const {
        std::vector<std::unique_ptr<engines::engine>> members;
        for (std::size_t index = 0; index < addresses.size(); ++index) {
            members.push_back(way_to(index));
        }
        return blocking_engine{engines::make_quorum(std::move(members), options)};
    }

    [[nodiscard]] owner_id owner(std::int64_t sequence) const {
        return {identity.client.high, identity.client.low, sequence};
    }
    [[nodiscard]] owner_id stranger(std::int64_t sequence) const {
        return {outsider.client.high, outsider.client.low, sequence};
    }
    [[nodiscard]] static engines::acquire_request claim_of(const owner_id& who,
                                                           claim_mode mode = claim_mode::exclusive) {
        return {.name = lock_name,
                .mode = mode,
                .owner = who,
                .ttl = quorum_ttl,
                .kind = holdfast::lock_kind::shared_mutex};
    }
    [[nodiscard]] static engines::renew_request renewal_of(const owner_id& who,
                                                           claim_mode mode = claim_mode::exclusive) {
        return {.name = lock_name,
                .mode = mode,
                .owner = who,
                .ttl = quorum_ttl,
                .kind = holdfast::lock_kind::shared_mutex};
    }
    [[nodiscard]] static engines::release_request release_of(const owner_id& who,
                                                             claim_mode mode = claim_mode::exclusive) {
        return {
            .name = lock_name, .mode = mode, .owner = who, .kind = holdfast::lock_kind::shared_mutex};
    }
    /// Somebody who has nothing to do with the quorum takes the lock in one store.
    void take(std::size_t index, std::int64_t sequence = 1, claim_mode mode = claim_mode::exclusive) {
        ASSERT_TRUE(granted(outsiders[index]->acquire(claim_of(stranger(sequence), mode))));
    }
    void give_back(std::size_t index, std::int64_t sequence = 1) {
        ASSERT_TRUE(released(outsiders[index]->release(release_of(stranger(sequence)))));
    }
    [[nodiscard]] std::vector<holdfast::holder_info> holders_in(std::size_t index) {
        return outsiders[index]->inspect(lock_name).info.holders;
    }

    [[nodiscard]] std::size_t members_that_have_it() {
        std::size_t count = 0;
        for (std::size_t member = 0; member < addresses.size(); ++member) {
            count += holders_in(member).empty() ? 0U : 1U;
        }
        return count;
    }

    engines::client_identity identity = engines::make_identity("in the quorum");
    engines::client_identity outsider = engines::make_identity("outside of it");
    std::vector<std::string> addresses;
    std::vector<std::shared_ptr<fault_plan>> faults;
    std::vector<std::unique_ptr<blocking_engine>> outsiders;
};

}  // namespace holdfast::testing
