#include <gmock/gmock.h>
#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::event_kind;
using testing::ElementsAre;

table_settings observed() {
    table_settings settings;
    settings.observed = true;
    return settings;
}

class lock_table_observer : public table_conversation {
protected:
    lock_table_observer() : table_conversation{observed()} {}

    std::vector<event_kind> seen() {
        std::vector<event_kind> kinds;
        for (const auto& one : all<tell_observer>()) {
            kinds.push_back(one.news.kind);
        }
        return kinds;
    }
};

class lock_table_unobserved : public table_conversation {};

TEST_F(lock_table_unobserved, tells_nobody) {
    const auto id = hold();
    let_go(id);

    EXPECT_EQ(said<tell_observer>(), 0U);
}

TEST_F(lock_table_observer, sees_acquisition_and_release) {
    const auto id = hold();
    let_go(id);

    EXPECT_THAT(seen(), ElementsAre(event_kind::acquired, event_kind::released));
}

TEST_F(lock_table_observer, sees_how_long_it_took_and_how_long_it_was_held) {
    const auto id = acquire();
    at(3ms);
    answer(only<send_acquire>(), granted(7));
    const auto acquired = only<tell_observer>().news;
    at(10ms);
    let_go(id);
    const auto let_go_of = only<tell_observer>().news;

    EXPECT_EQ(acquired.duration, 3ms);
    EXPECT_EQ(acquired.token.value, 7U);
    EXPECT_EQ(acquired.name, "stock");
    EXPECT_EQ(let_go_of.duration, 7ms);
    EXPECT_EQ(let_go_of.token.value, 7U);
}

TEST_F(lock_table_observer, sees_contention_once) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());
    hint();
    answer(only<send_acquire>(), busy());
    cancel(id);

    EXPECT_THAT(seen(), ElementsAre(event_kind::contended, event_kind::not_acquired));
}

TEST_F(lock_table_observer, sees_contention_between_threads_and_the_hand_over) {
    const auto who = form_line();
    (void)seen();

    release(who.first);

    EXPECT_THAT(seen(), ElementsAre(event_kind::released, event_kind::handed_over));
    cancel(who.third);
    (void)all<finish_acquire>();
    let_go(who.second);
}

TEST_F(lock_table_observer, sees_why_a_lock_was_not_acquired) {
    acquire();
    answer(only<send_acquire>(), not_acquired(errc::unauthorised));

    const auto end = only<tell_observer>().news;
    EXPECT_EQ(end.kind, event_kind::not_acquired);
    EXPECT_EQ(end.error.code, errc::unauthorised);
}

TEST_F(lock_table_observer, sees_renewals_their_failures_jeopardy_and_loss) {
    const auto id = hold();
    at(10s);
    answer(only<send_renew>(), renewed());
    at(20s);
    answer(only<send_renew>(), not_renewed(errc::store_unavailable));
    at(10s + 29'500ms);

    EXPECT_THAT(seen(),
                ElementsAre(event_kind::acquired, event_kind::renewed, event_kind::renewal_failed,
                            event_kind::jeopardy, event_kind::lost));
    answer(only<send_renew>(), gone());
    release(id);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_observer, sees_a_release_without_an_answer) {
    const auto id = hold();
    release(id);
    at(2s);

    EXPECT_THAT(seen(), ElementsAre(event_kind::acquired, event_kind::release_unconfirmed));
    answer(only<send_release>(), released());
}

}  // namespace
