#include <gtest/gtest.h>

#include <memory>
#include <string>

#include <runtime/joint_hold.hpp>
#include <runtime/known_holds.hpp>

namespace holdfast::detail {

namespace {

/// One that was released already, so that its end concerns no session.
[[nodiscard]] std::shared_ptr<hold> some_hold() {
    auto made = std::make_shared<hold>(nullptr, 1, std::make_shared<const std::string>("stock"), 1,
                                       fencing_token{1}, clock::time_point{std::chrono::hours{1}},
                                       std::chrono::seconds{1}, clock::time_point::max(),
                                       lock_kind::mutex, claim_mode::exclusive);
    made->set_given_back();
    return made;
}

class known_holds_test : public testing::Test {
protected:
    core::node_memory memory;
    known_holds known{memory};
};

TEST_F(known_holds_test, a_renewal_extends_the_hold) {
    const auto held = some_hold();
    known.add(1, held);
    const clock::time_point later{std::chrono::hours{2}};

    known.extend(1, later);

    EXPECT_EQ(held->valid_until(), later);
}

TEST_F(known_holds_test, a_loss_is_told_by_whoever_owns_the_hold) {
    auto held = some_hold();
    known.add(1, held);

    EXPECT_EQ(known.lose(1, {errc::revoked, "by an operator"}).lock(), held);
    EXPECT_EQ(held->loss_detail(), "by an operator");
    held.reset();

    EXPECT_EQ(known.lose(2, {errc::lost, {}}).lock(), nullptr) << "nobody knows it";
}

TEST_F(known_holds_test, nothing_is_said_to_a_hold_that_has_ended) {
    const auto held = some_hold();
    known.add(1, held);

    known.end(1, release_outcome::released);
    known.extend(1, clock::time_point{std::chrono::hours{2}});

    EXPECT_EQ(held->valid_until(), clock::time_point{std::chrono::hours{1}});
}

TEST_F(known_holds_test, releases_that_are_waited_for_together_are_counted) {
    const auto answers = std::make_shared<release_tally>(2);
    known.await_release(1, answers, 0);
    known.await_release(2, answers, 1);

    known.end(2, release_outcome::already_lost);
    known.end(1, release_outcome::released);
    known.end(1, release_outcome::unknown);

    EXPECT_EQ(answers->wait(clock::now()),
              (std::vector{release_outcome::released, release_outcome::already_lost}));
}

}  // namespace

}  // namespace holdfast::detail
