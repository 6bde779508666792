#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/places.hpp>
#include <core/table_script.hpp>
#include <core/waiters.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using testing::ElementsAre;

class waiters_of_a_client : public testing::Test {
protected:
    outbox out{owner(0), 1, false};
    place stock;
    holdfast::core::waiters waiters{out};
};

TEST_F(waiters_of_a_client, equal_terms_are_kept_once) {
    const auto& one = waiters.add(1, exclusive(), stock, start);
    const auto& two = waiters.add(2, exclusive(), stock, start);
    const auto& three = waiters.add(3, on_terms(fixed_terms(), exclusive()), stock, start);

    EXPECT_EQ(one.terms, two.terms);
    EXPECT_NE(one.terms, three.terms);
}

TEST_F(waiters_of_a_client, are_due_at_their_deadlines) {
    waiters.add(1, until(at(2s), exclusive()), stock, start);
    waiters.add(2, until(at(1s), exclusive()), stock, start);
    waiters.add(3, exclusive(), stock, start);

    EXPECT_EQ(waiters.wake_at(), at(1s));
    EXPECT_EQ(waiters.take_due(at(1s)), waiters.find(2));
    EXPECT_EQ(waiters.take_due(at(1s)), nullptr);
}

TEST_F(waiters_of_a_client, one_that_is_removed_has_no_deadline) {
    waiters.add(1, until(at(2s), exclusive()), stock, at(1s));

    EXPECT_EQ(waiters.remove(1), at(1s));

    EXPECT_EQ(waiters.wake_at(), never);
    EXPECT_EQ(waiters.find(1), nullptr);
}

TEST_F(waiters_of_a_client, one_that_fails_is_told_the_reason) {
    auto& who = waiters.add(1, exclusive(), stock, start);

    waiters.fail(who, {holdfast::errc::busy, "somebody else holds it"}, at(1s));

    const auto actions = out.take({});
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(std::get<finish_acquire>(actions[0]).error.code, holdfast::errc::busy);
    EXPECT_EQ(waiters.size(), 0U);
}

TEST_F(waiters_of_a_client, are_listed_in_the_order_in_which_they_came) {
    waiters.add(4, exclusive(), stock, start);
    waiters.add(7, exclusive(), stock, start);
    waiters.add(5, exclusive(), stock, start);

    EXPECT_THAT(waiters.all(), ElementsAre(4, 5, 7));
}

}  // namespace
