#include <quorum/late_member.hpp>

#include <atomic>

#include "stage.hpp"

namespace holdfast::testing {
namespace {

using engines::quorums::late_member;

/// A store that could not be reached when the quorum was opened, and is there now.
class late_store : public ::testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<engines::engine> open() const {
        return engines::open(address_, engines::make_identity("late"));
    }

    const std::string address_{"memory:late-" + owner_id::random_client().client_text()};
    std::unique_ptr<engines::engine> other_{open()};
    late_member member_{
        address_, other_->store_identity(), *other_, {errc::store_unavailable, "not there yet"}};
};

TEST_F(late_store, tells_those_who_watch_already_that_it_is_there) {
    std::atomic<int> hints{};
    const auto watch = member_.watch(lock_name, lock_kind::mutex, [&] { ++hints; });
    EXPECT_FALSE(watch->active());
    member_.adopt(open());
    EXPECT_TRUE(eventually([&] { return hints > 0; }));
    EXPECT_TRUE(watch->active());
}

TEST_F(late_store, tells_of_revocations) {
    std::atomic<int> changes{};
    member_.attach({[&] { ++changes; }, {}});
    member_.adopt(open());
    const auto owner = owner_id::random_client();
    std::atomic<std::uint64_t> token{};
    member_.acquire({.name = lock_name, .owner = owner, .ttl = quorum_ttl},
                    {clock::now() + patience, engines::caller::may_block},
                    [&](const engines::acquire_reply& reply) { token = reply.first_token.value; });
    ASSERT_TRUE(eventually([&] { return token != 0; }));
    other_->offers().operators->revoke({lock_name, owner, {token}, "test", "test"},
                                       {clock::now() + patience, engines::caller::may_block},
                                       [](const engines::revoke_reply&) {});
    EXPECT_TRUE(eventually([&] { return changes > 0; }));
}

}  // namespace
}  // namespace holdfast::testing
