#include <quorum/stage.hpp>
#include <tuple>

/// Two members of a quorum, or one of them twice, fail in any two ways, with odd and even numbers of
/// members. Nobody else gets the lock while it is held, and what the owner gives back is given back
/// everywhere.
namespace holdfast::testing {
namespace {

enum class mishap : std::uint8_t { fails, answer_is_lost, answer_is_late };

struct planted_fault {
    call_kind call;
    mishap what;
};

[[nodiscard]] std::vector<planted_fault> all_faults() {
    std::vector<planted_fault> all;
    for (const auto call : {call_kind::acquire, call_kind::release}) {
        for (const auto what : {mishap::fails, mishap::answer_is_lost, mishap::answer_is_late}) {
            all.push_back({call, what});
        }
    }
    return all;
}

void plant(fault_plan& where, const planted_fault& one) {
    switch (one.what) {
        case mishap::fails:
            where.fail_next(one.call, 1, {errc::store_unavailable, "planted"});
            break;
        case mishap::answer_is_lost:
            where.lose_replies_of_next(one.call);
            break;
        case mishap::answer_is_late:
            where.delay_replies_of_next(one.call);
            break;
    }
}

class quorum_second_fault : public quorum_test, public ::testing::WithParamInterface<std::size_t> {
protected:
    quorum_second_fault() : quorum_test{GetParam()} {}

    /// As a client does: until it is certain.
    [[nodiscard]] bool gives_back(blocking_engine& store, const owner_id& who) {
        return eventually([&] {
            const auto reply = store.release(release_of(who));
            return reply.result != engines::release_reply::outcome::failed;
        });
    }
    void ask_for_something_else(blocking_engine& store) {
        const auto somebody = owner(1'000'000 + ++sequence_);
        auto request = claim_of(somebody);
        request.name = "another";
        if (granted(store.acquire(request))) {
            auto back = release_of(somebody);
            back.name = "another";
            static_cast<void>(store.release(back));
        }
    }
    void let_everything_arrive() {
        for (const auto& each : faults) {
            each->let_go();
        }
    }

    void run(const planted_fault& first, std::size_t at, const planted_fault& second,
             std::size_t then_at) {
        auto store = open({.member_timeout = 20ms});
        const auto mine = owner(++sequence_);
        plant(*faults[at], first);
        plant(*faults[then_at], second);
        const auto reply = store.acquire(claim_of(mine));
        const auto needed = addresses.size() / 2 + 1;
        if (granted(reply)) {
            EXPECT_GE(members_that_have_it(), needed) << "granted by too few";
            auto rival_store = engines::open_quorum({.stores = addresses}, outsider);
            blocking_engine rival{std::move(rival_store)};
            EXPECT_FALSE(granted(rival.acquire(claim_of(stranger(sequence_)))));
        }
        let_everything_arrive();
        const bool may_have_it = granted(reply) || reply.error.code == holdfast::errc::outcome_unknown;
        if (may_have_it) {
            EXPECT_TRUE(gives_back(store, mine));
        }
        // What could not be given back in a lost round goes with the owner's next one.
        let_everything_arrive();
        EXPECT_TRUE(eventually([&] { return granted(store.acquire(claim_of(mine))); }));
        EXPECT_TRUE(gives_back(store, mine));
        let_everything_arrive();
        // What a minority missed goes with anybody's next requests.
        EXPECT_TRUE(eventually([&] {
            ask_for_something_else(store);
            return members_that_have_it() == 0;
        })) << "something is left";
    }

    std::int64_t sequence_{};
};

INSTANTIATE_TEST_SUITE_P(members, quorum_second_fault, ::testing::Values(1U, 2U, 3U, 4U));

TEST_P(quorum_second_fault, leaves_nothing_behind) {
    const auto all = all_faults();
    for (std::size_t at = 0; at < addresses.size(); ++at) {
        for (std::size_t then_at = at; then_at < addresses.size(); ++then_at) {
            for (std::size_t one = 0; one < all.size(); ++one) {
                for (std::size_t other = 0; other < all.size(); ++other) {
                    SCOPED_TRACE("faults " + std::to_string(one) + " at " + std::to_string(at) +
                                 ", then " + std::to_string(other) + " at " + std::to_string(then_at));
                    run(all[one], at, all[other], then_at);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace holdfast::testing
