#include <quorum/stage.hpp>

#include <stdexcept>

namespace holdfast::testing {
namespace {

using engines::call;
using engines::completion;

/// What becomes of the requests to a member.
enum class conduct { answers, throws, answers_and_throws };

/// An engine that throws from every request while the test wants it.
class throwing final : public forwarding_engine, public engines::operators_view {
public:
    throwing(std::unique_ptr<engine> inner, std::shared_ptr<std::atomic<conduct>> how)
        : forwarding_engine{std::move(inner)}, how_{std::move(how)} {}

    engines::abilities offers() noexcept override {
        auto offered = inner().offers();
        offered.operators = this;
        return offered;
    }
    void acquire(engines::acquire_request request, call limits,
                 completion<engines::acquire_reply> done) override {
        perform([&] { inner().acquire(std::move(request), limits, std::move(done)); });
    }
    void renew(std::vector<engines::renew_request> batch, call limits,
               completion<std::vector<engines::renew_reply>> done) override {
        perform([&] { inner().renew(std::move(batch), limits, std::move(done)); });
    }
    void release(engines::release_request request, call limits,
                 completion<engines::release_reply> done) override {
        perform([&] { inner().release(std::move(request), limits, std::move(done)); });
    }
    void inspect(std::string name, call limits, completion<engines::inspect_reply> done) override {
        perform([&] { view().inspect(std::move(name), limits, std::move(done)); });
    }
    void list(engines::list_request request, call limits,
              completion<engines::list_reply> done) override {
        perform([&] { view().list(std::move(request), limits, std::move(done)); });
    }
    void revoke(engines::revoke_request request, call limits,
                completion<engines::revoke_reply> done) override {
        perform([&] { view().revoke(std::move(request), limits, std::move(done)); });
    }

private:
    [[nodiscard]] engines::operators_view& view() const { return *inner().offers().operators; }
    template <class Request>
    void perform(const Request& request) const {
        const conduct now = *how_;
        if (now != conduct::throws) {
            request();
        }
        if (now != conduct::answers) {
            throw std::runtime_error{"no thread to be had"};
        }
    }

    std::shared_ptr<std::atomic<conduct>> how_;
};

class quorum_throwing : public quorum_test {
protected:
    quorum_throwing() {
        for (std::size_t index = 0; index < addresses.size(); ++index) {
            conducts.push_back(std::make_shared<std::atomic<conduct>>(conduct::answers));
        }
    }
    [[nodiscard]] blocking_engine open() const {
        std::vector<std::unique_ptr<engines::engine>> members;
        for (std::size_t index = 0; index < addresses.size(); ++index) {
            members.push_back(std::make_unique<throwing>(way_to(index), conducts[index]));
        }
        return blocking_engine{engines::make_quorum(std::move(members), {.member_timeout = 5s})};
    }

    std::vector<std::shared_ptr<std::atomic<conduct>>> conducts;
};

TEST_F(quorum_throwing, a_member_that_throws_counts_as_one_that_did_not_answer) {
    auto store = open();
    *conducts[0] = conduct::throws;
    EXPECT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    const auto seen = store.inspect(lock_name);
    EXPECT_TRUE(answered(seen));
    EXPECT_EQ(seen.info.holders.size(), 1U);
    EXPECT_TRUE(answered(store.list({.prefix = "", .from = "", .limit = 10})));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
}

TEST_F(quorum_throwing, calls_end_when_a_majority_throws_and_say_what_it_threw) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    *conducts[0] = *conducts[1] = conduct::throws;
    const auto reply = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_TRUE(refused(reply, errc::outcome_unknown));
    EXPECT_NE(reply.error.detail.find("no thread to be had"), std::string::npos) << reply.error.detail;
    EXPECT_TRUE(refused(store.inspect(lock_name), errc::outcome_unknown));
    EXPECT_EQ(store.release(release_of(owner(1))).error.code, errc::outcome_unknown);
}

TEST_F(quorum_throwing, the_same_owner_may_ask_again_after_members_threw) {
    auto store = open();
    *conducts[0] = *conducts[1] = conduct::throws;
    EXPECT_TRUE(refused(store.acquire(claim_of(owner(1))), errc::outcome_unknown));
    EXPECT_TRUE(refused(store.acquire(claim_of(owner(1))), errc::outcome_unknown));
    *conducts[0] = *conducts[1] = conduct::answers;
    EXPECT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
}

TEST_F(quorum_throwing, a_member_that_threw_after_its_answer_has_one_vote) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    *conducts[0] = conduct::answers_and_throws;
    *conducts[1] = conduct::throws;
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    *conducts[2] = conduct::throws;
    EXPECT_TRUE(refused(store.renew({renewal_of(owner(1))}).at(0), errc::outcome_unknown));
}

}  // namespace
}  // namespace holdfast::testing
