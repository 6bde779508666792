#include <gmock/gmock.h>

#include <future>
#include <quorum/stage.hpp>
#include <set>

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;
using names = std::set<std::string>;

/// Lists of a quorum some of whose members cannot list, with odd and even numbers of members.
class quorum_listing : public quorum_test, public ::testing::WithParamInterface<std::size_t> {
protected:
    quorum_listing() : quorum_test{GetParam()} {}

    void hold(blocking_engine& store, const names& wanted) const {
        std::int64_t sequence = 0;
        for (const auto& name : wanted) {
            auto request = claim_of(owner(++sequence));
            request.name = name;
            ASSERT_TRUE(granted(store.acquire(request)));
        }
    }
    /// Everything, a page at a time. `between` is called before every page but the first.
    [[nodiscard]] names listed(
        blocking_engine& store, std::size_t limit = 1000,
        const std::function<void()>& between = [] {}) {
        names all;
        std::string from;
        for (int page = 0; page < 100; ++page) {
            const auto reply = store.list({.prefix = "", .from = from, .limit = limit});
            EXPECT_FALSE(reply.error) << reply.error.detail;
            for (const auto& lock : reply.locks) {
                all.insert(lock.name);
            }
            from = reply.next;
            if (from.empty()) {
                return all;
            }
            between();
        }
        ADD_FAILURE() << "it does not end";
        return all;
    }
    /// The largest number of members that may be away.
    [[nodiscard]] std::size_t spare() const { return (addresses.size() - 1) / 2; }

    const holdfast::failure forbidden{errc::unauthorised, "this user has no permission to SCAN"};
};

INSTANTIATE_TEST_SUITE_P(members, quorum_listing, ::testing::Values(1U, 2U, 3U, 4U, 5U));

TEST_P(quorum_listing, what_a_majority_holds_is_listed_whichever_minority_cannot_list) {
    auto store = open();
    hold(store, {"a", "b"});
    for (std::size_t first = 0; first < addresses.size(); ++first) {
        for (std::size_t more = 0; more < spare(); ++more) {
            faults[(first + more) % addresses.size()]->fail_next(call_kind::list, 1, forbidden);
        }
        EXPECT_EQ(listed(store), (names{"a", "b"})) << "from member " << first;
    }
}

TEST_P(quorum_listing, a_member_that_fails_between_two_pages_hides_nothing) {
    auto store = open();
    const names held{"a", "b", "c", "d"};
    hold(store, held);
    for (std::size_t member = 0; spare() > 0 && member < addresses.size(); ++member) {
        bool failed = false;
        EXPECT_EQ(listed(store, 1,
                         [&] {
                             if (!failed) {
                                 faults[member]->fail_next(call_kind::list, 1, forbidden);
                                 failed = true;
                             }
                         }),
                  held)
            << "member " << member;
        // What was not used up must not meet the next round.
        const auto rest = store.list({.prefix = "", .from = {}});
    }
}

TEST_P(quorum_listing, a_majority_that_cannot_list_is_an_error_and_not_an_empty_list) {
    auto store = open();
    hold(store, {"a"});
    for (std::size_t member = 0; member <= spare(); ++member) {
        faults[member]->fail_next(call_kind::list, 1, forbidden);
    }
    const auto reply = store.list({.prefix = "", .from = {}});
    EXPECT_TRUE(reply.error);
    EXPECT_THAT(reply.error.detail, HasSubstr("SCAN"));
    EXPECT_TRUE(reply.locks.empty());
}

TEST_P(quorum_listing, members_that_hang_leave_time_for_the_others) {
    auto store = open({.member_timeout = 50ms});
    hold(store, {"a"});
    for (std::size_t first = 0; spare() > 0 && first < addresses.size(); ++first) {
        for (std::size_t more = 0; more < spare(); ++more) {
            faults[(first + more) % addresses.size()]->go_silent();
        }
        engines::list_reply reply;
        std::atomic<bool> answered{false};
        store.raw().offers().operators->list(
            {.prefix = "", .from = {}},
            {.deadline = clock::now() + 1s, .from = engines::caller::must_not_block},
            [&](engines::list_reply said) {
                reply = std::move(said);
                answered = true;
            });
        ASSERT_TRUE(eventually([&] { return answered.load(); }));
        EXPECT_FALSE(reply.error) << reply.error.detail;
        EXPECT_EQ(reply.locks.size(), 1U) << "from member " << first;
        for (const auto& each : faults) {
            each->heal();
        }
    }
}

TEST_P(quorum_listing, a_place_to_go_on_that_it_did_not_name_is_refused) {
    auto store = open();
    for (const auto* const from : {"x", "9:", "!:", "0!:a", "0!9:", ":", "0!0!", "-1:"}) {
        const auto reply = store.list({.prefix = "", .from = from});
        EXPECT_EQ(reply.error.code, errc::invalid_argument) << from;
    }
}

class quorum_listing_of_three : public quorum_test {};

TEST_F(quorum_listing_of_three, what_a_member_was_granted_after_it_had_listed_is_not_left_out) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    ASSERT_TRUE(eventually([&] { return holders_in(0).size() == 1; }));
    const auto late = holders_in(0).front().owner;
    ASSERT_TRUE(released(outsiders[0]->release(release_of(late))));

    faults[1]->delay_next(call_kind::list);
    auto listing = std::async(std::launch::async,
                              [&] { return store.list({.prefix = "", .from = "", .limit = 10}); });
    ASSERT_TRUE(eventually([&] { return faults[1]->calls(call_kind::list) == 1; }));
    ASSERT_TRUE(granted(outsiders[0]->acquire(claim_of(late))));
    faults[1]->let_go();

    const auto reply = listing.get();
    ASSERT_FALSE(reply.error) << reply.error.detail;
    ASSERT_EQ(reply.locks.size(), 1U);
    EXPECT_EQ(reply.locks[0].name, lock_name);
}

}  // namespace
}  // namespace holdfast::testing
