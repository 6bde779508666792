#include <gtest/gtest.h>
#include <core/places.hpp>
#include <core/script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::lock_kind;

class places_of_a_client : public testing::Test {
protected:
    [[nodiscard]] acquisition refused() const {
        acquisition machine{{}, lease_terms(), contention_settings{}};
        static_cast<void>(machine.ask(start, 1));
        static_cast<void>(machine.on_reply(busy(), start, 0));
        return machine;
    }
    void end_step() {
        while (auto* const where = places.take_touched()) {
            places.tidy(*where);
        }
    }
    [[nodiscard]] std::size_t watch_updates() { return out.take({}).size(); }

    outbox out{owner(0), 1, false};
    holdfast::core::places places{out};
    contest one{1, places.of("stock", lock_kind::mutex), refused(), nullptr};
};

TEST_F(places_of_a_client, one_that_nothing_needs_is_forgotten_at_the_end_of_the_step) {
    EXPECT_NE(places.find("stock"), nullptr);

    end_step();

    EXPECT_EQ(places.find("stock"), nullptr);
    EXPECT_EQ(places.size(), 0U);
}

TEST_F(places_of_a_client, each_that_was_touched_is_looked_at_once) {
    places.touch(one.site);
    places.touch(one.site);

    EXPECT_EQ(places.take_touched(), &one.site);
    EXPECT_EQ(places.take_touched(), nullptr);
}

TEST_F(places_of_a_client, one_that_awaits_a_release_stays_until_it_is_free) {
    one.site.awaits_release = true;
    end_step();
    EXPECT_EQ(places.size(), 1U);

    places.free(one.site, 2);

    EXPECT_TRUE(one.site.idle());
    EXPECT_EQ(one.site.others_waiting, 2U);
    end_step();
    EXPECT_EQ(places.size(), 0U);
}

TEST_F(places_of_a_client, one_with_a_refused_contender_is_watched_until_nobody_waits) {
    auto& here = places.line_of(one.site);
    here.contests.push_back(&one);
    end_step();
    EXPECT_TRUE(places.wants_watch("stock"));
    EXPECT_EQ(watch_updates(), 1U);

    here.contests.clear();
    places.touch(one.site);
    end_step();

    EXPECT_FALSE(places.wants_watch("stock"));
    EXPECT_EQ(watch_updates(), 1U);
}

TEST_F(places_of_a_client, fair_locks_are_not_watched) {
    one.site.kind = lock_kind::fair_mutex;
    places.line_of(one.site).contests.push_back(&one);

    end_step();

    EXPECT_FALSE(places.wants_watch("stock"));
}

}  // namespace
