#include <gmock/gmock.h>

#include <future>
#include <stdexcept>
#include <system_error>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <quorum/address.hpp>
#include <quorum/stage.hpp>

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;

class quorum_opening : public quorum_test {
protected:
    [[nodiscard]] std::system_error thrown_for(const holdfast::quorum& stores) const {
        try {
            static_cast<void>(engines::open_quorum(stores, identity));
        } catch (const std::system_error& error) {
            return error;
        }
        ADD_FAILURE() << "it was opened";
        return std::system_error{std::error_code{}};
    }

    /// Stores `sleepy:name` are those of `memory:name`, once they are awake.
    static void register_sleepy_stores() {
        engines::register_engine(
            "sleepy", [](std::string_view rest, const engines::client_identity& who) {
                if (asleep) {
                    holdfast::failure{errc::store_unavailable, "still asleep"}.raise("sleepy store");
                }
                return engines::open("memory:" + std::string{rest}, who);
            });
    }

    static inline std::atomic<bool> asleep{true};
};

TEST_F(quorum_opening, an_address_names_options_and_stores) {
    const auto stores = engines::quorums::parse_quorum(
        "?restart_grace=30s&member_timeout=50ms&drift=1s redis://a \t redis://b:1?x=y");
    EXPECT_EQ(stores.stores, (std::vector<std::string>{"redis://a", "redis://b:1?x=y"}));
    EXPECT_EQ(stores.restart_grace, 30s);
    EXPECT_EQ(stores.member_timeout, 50ms);
    EXPECT_EQ(stores.drift, 1s);
    EXPECT_THROW(static_cast<void>(engines::quorums::parse_quorum("?patience=3s memory:a")),
                 std::system_error);
    EXPECT_THROW(static_cast<void>(engines::quorums::parse_quorum("?drift=3 memory:a")),
                 std::system_error);
}

TEST_F(quorum_opening, an_address_that_is_shown_has_no_secrets) {
    EXPECT_EQ(engines::summarise_address("redis://me:secret@host:1/2?prefix=x").shown,
              "redis://host:1/2?prefix=x");
    EXPECT_EQ(engines::summarise_address("local:/a/b").shown, "local:/a/b");
    EXPECT_EQ(engines::summarise_address("mine:a@b").shown, "…");
    EXPECT_EQ(engines::summarise_address("mine://a@b").shown, "mine:…");
}

TEST_F(quorum_opening, its_identity_is_the_same_while_a_member_is_away) {
    const std::string away = "redis://ann:secret@127.0.0.1:1?prefix=x&connect_timeout=100";
    const auto opened = engines::open_quorum({{addresses[0], addresses[1], away}}, identity);
    const auto text = "quorum:" + addresses[0] + " " + addresses[1] + " " + away;
    EXPECT_EQ(opened->store_identity(), engines::summarise_address(text).identity);
    EXPECT_EQ(opened->address(),
              "quorum:" + addresses[0] + " " + addresses[1] + " redis://127.0.0.1:1?prefix=x");
    const auto elsewhere = engines::summarise_address(
        "quorum:?drift=1s redis://eve@127.0.0.1:1?prefix=x " + addresses[1] + " " + addresses[0]);
    EXPECT_EQ(opened->store_identity(), elsewhere.identity) << "in another order, by another user";
}

TEST_F(quorum_opening, what_is_shown_is_an_address_of_the_same_quorum) {
    for (const std::string text :
         {"quorum:redis://a:1?prefix=x: redis://b:1?prefix=x: redis://c:1?prefix=x:",
          "quorum:?restart_grace=30000ms redis://a:1?prefix=: redis://b:1 memory:c",
          "quorum:redis://a:1?prefix=%25%20%3F%26 memory:b"}) {
        const auto shown = engines::summarise_address(text).shown;
        EXPECT_EQ(engines::summarise_address(shown).shown, shown);
        EXPECT_EQ(engines::summarise_address(shown).identity,
                  engines::summarise_address(text).identity);
    }
    EXPECT_EQ(engines::summarise_address("quorum: redis://a:1?prefix=x:  redis://b:1?prefix=x:").shown,
              "quorum:redis://a:1?prefix=x: redis://b:1?prefix=x:");
}

TEST_F(quorum_opening, quorums_whose_members_differ_in_any_part_are_two) {
    const auto of = [](const std::string& member) {
        return engines::summarise_address("quorum:memory:a memory:b " + member).identity;
    };
    EXPECT_NE(of("redis://h?prefix=a"), of("redis://h?prefix=b"));
    EXPECT_NE(of("redis://h/1"), of("redis://h/2"));
    EXPECT_NE(of("redis://h"), of("redis://h memory:c"));
    EXPECT_EQ(of("redis://h"), of("redis://h:6379"));
}

TEST_F(quorum_opening, one_store_has_one_vote) {
    EXPECT_THAT(thrown_for({{addresses[0], addresses[1], addresses[0]}}).what(),
                HasSubstr("is named twice"));
    std::vector<std::unique_ptr<engines::engine>> members;
    members.push_back(way_to(0));
    members.push_back(way_to(0));
    EXPECT_THROW(static_cast<void>(engines::make_quorum(std::move(members))), std::system_error);
}

TEST_F(quorum_opening, a_quorum_without_stores_or_of_quorums_is_refused) {
    EXPECT_EQ(thrown_for({}).code(), errc::bad_configuration);
    EXPECT_EQ(thrown_for({{"quorum:memory:a", addresses[0], addresses[1]}}).code(),
              errc::bad_configuration);
    EXPECT_EQ(thrown_for({{"nonsense:x", addresses[0], addresses[1]}}).code(), errc::bad_configuration)
        << "what can never be opened is not waited for";
}

TEST_F(quorum_opening, a_member_that_refuses_our_credentials_is_not_taken_for_one_that_is_away) {
    engines::register_engine("guarded", [](std::string_view, const engines::client_identity&) {
        holdfast::failure{errc::unauthorised, "wrong password"}.raise("cannot use the store guarded:x");
        return std::unique_ptr<engines::engine>{};
    });
    const auto error = thrown_for({{addresses[0], addresses[1], "guarded:x"}});
    EXPECT_EQ(error.code(), errc::unauthorised);
    EXPECT_EQ(std::string{error.what()},
              "cannot use the quorum: guarded:x: wrong password: " + error.code().message());
}

TEST_F(quorum_opening, an_option_that_is_not_known_is_named) {
    try {
        static_cast<void>(engines::quorums::parse_quorum("?grace=3 memory:a"));
        FAIL() << "it was taken";
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("there is no option \"grace\""));
    }
}

TEST_F(quorum_opening, an_option_that_no_clock_can_count_is_refused) {
    using std::chrono::milliseconds;
    const auto expect_refused = [this](const quorum& stores) {
        EXPECT_THROW(static_cast<void>(engines::open_quorum(stores, identity)), std::system_error);
    };
    for (const auto senseless : {milliseconds::max(), milliseconds{-1}, milliseconds{2562048h}}) {
        expect_refused({.stores = addresses, .member_timeout = senseless});
        expect_refused({.stores = addresses, .drift = senseless});
        expect_refused({.stores = addresses, .restart_grace = senseless});
    }
}

TEST_F(quorum_opening, a_majority_must_be_there) {
    register_sleepy_stores();
    asleep = true;
    const auto error = thrown_for({{addresses[0], "sleepy:x", "sleepy:y"}});
    EXPECT_EQ(error.code(), errc::store_unavailable);
    EXPECT_THAT(error.what(), HasSubstr("no quorum: 1 of 3"));
    EXPECT_THAT(error.what(), HasSubstr("sleepy:x: sleepy store: still asleep"));
}

TEST_F(quorum_opening, a_member_that_was_missing_takes_part_once_it_is_there) {
    register_sleepy_stores();
    asleep = true;
    const auto sleepy = "sleepy:" + addresses[2].substr(addresses[2].find(':') + 1);
    blocking_engine store{engines::open_quorum(
        {.stores = {addresses[0], addresses[1], sleepy}, .member_timeout = 5s}, identity)};
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(holders_in(2).empty());
    std::atomic<int> hints{0};
    const auto watch =
        store.raw().offers().watching->watch(lock_name, holdfast::lock_kind::mutex, [&] { ++hints; });
    asleep = false;
    EXPECT_TRUE(eventually([&] {
        return renewed(store.renew({renewal_of(owner(1))}).at(0)) && !holders_in(2).empty();
    })) << "it is repaired like any member that forgot";
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    EXPECT_TRUE(holders_in(2).empty());
    EXPECT_GE(hints, 1);
}

/// What `examine` says of a quorum, all together.
[[nodiscard]] std::string findings_of(engines::engine& store) {
    std::promise<std::string> said;
    store.offers().examination->examine(
        {.deadline = clock::now() + 5s, .from = engines::caller::must_not_block},
        [&](const engines::examine_reply& reply) {
            std::string text;
            for (const auto& one : reply.findings) {
                text += one.server + ": " + one.text + "\n";
            }
            said.set_value(text);
        });
    return said.get_future().get();
}

TEST_F(quorum_opening, a_member_that_comes_late_and_is_another_one_again_does_not_vote) {
    register_sleepy_stores();
    asleep = true;
    const auto twin = "sleepy:" + addresses[0].substr(addresses[0].find(':') + 1);
    const auto store = engines::open_quorum({{addresses[0], addresses[1], twin}}, identity);
    asleep = false;
    EXPECT_TRUE(eventually([&] { return findings_of(*store).find("one vote") != std::string::npos; }));
}

TEST_F(quorum_opening, a_member_that_comes_late_and_promises_less_does_not_vote) {
    asleep = true;
    engines::register_engine("lesser", [](std::string_view rest, const engines::client_identity& who) {
        if (asleep) {
            holdfast::failure{errc::store_unavailable, "still asleep"}.raise("lesser store");
        }
        auto inner = engines::open("memory:" + std::string{rest}, who);
        auto promises = inner->promises();
        promises.shared = false;
        return std::make_unique<disguised>(std::move(inner), std::move(promises));
    });
    const auto lesser = "lesser:" + addresses[2].substr(addresses[2].find(':') + 1);
    const auto store = engines::open_quorum({{addresses[0], addresses[1], lesser}}, identity);
    asleep = false;
    EXPECT_TRUE(
        eventually([&] { return findings_of(*store).find("promises less") != std::string::npos; }));
}

TEST_F(quorum_opening, a_client_is_made_of_several_stores) {
    holdfast::client client{holdfast::quorum{addresses}};
    EXPECT_THAT(client.promises().reach_text, HasSubstr("quorum of 3 stores (2 needed)"));
    EXPECT_EQ(client.store(), "quorum:" + addresses[0] + " " + addresses[1] + " " + addresses[2]);
    holdfast::mutex lock{client, lock_name};
    const auto lease = lock.try_acquire();
    ASSERT_TRUE(lease);
    EXPECT_EQ(holders_in(0).size(), 1U);
    EXPECT_LE(lease->remaining(), 30s - 500ms - 302ms) << "the drift is not trusted either";
}

}  // namespace
}  // namespace holdfast::testing
