// What becomes of a store's files between and during uses.
#include <local/database.hpp>
#include <local/schema.hpp>

#include <atomic>
#include <fstream>

#include "support.hpp"

#include <sys/stat.h>

namespace holdfast::engines::test {

namespace {

using local::database;

class store_file : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<engine> open() const { return open_local(base_.path(), who_); }
    [[nodiscard]] std::string file() const { return base_.path() + "/locks.db"; }
    [[nodiscard]] failure refusal() const {
        return refusal_of([this] { return open(); });
    }
    void execute(const std::string& sql) const {
        database{file(), database::opening::create_if_missing, clock::now() + patience, running_}
            .execute(sql);
    }

    const temporary_directory base_;
    const client_identity who_ = identity();
    std::atomic<bool> running_{};
};

TEST_F(store_file, tokens_rise_over_reopening) {
    const auto first = acquire(*open(), exclusive("stock", owner_of(who_, 1))).first_token;
    const auto second = acquire(*open(), exclusive("other", owner_of(who_, 2))).first_token;
    EXPECT_GT(second, first);
}

TEST_F(store_file, holds_outlive_the_client_until_their_ttl) {
    ASSERT_EQ(acquire(*open(), exclusive("stock", owner_of(who_, 1))).result, granted);
    EXPECT_EQ(acquire(*open(), exclusive("stock", owner_of(who_, 2))).result, busy);
}

TEST_F(store_file, a_new_store_starts_its_tokens_at_the_wall_clock) {
    using namespace std::chrono;
    const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
    EXPECT_GE(acquire(*open(), exclusive("stock", owner_of(who_))).first_token.value,
              static_cast<std::uint64_t>(now));
}

TEST_F(store_file, after_a_reboot_all_holds_are_void_and_tokens_still_rise) {
    const auto before = acquire(*open(), exclusive("stock", owner_of(who_, 1)));
    execute("UPDATE boot SET id = x'00'; UPDATE hold SET token = 5 WHERE name = x''");
    const auto after = acquire(*open(), exclusive("stock", owner_of(who_, 2)));
    EXPECT_EQ(after.result, granted);
    EXPECT_GT(after.first_token, before.first_token);
}

/// As many programs at once, each of which finds that others have the store open.
TEST_F(store_file, a_new_store_is_opened_without_being_alone) {
    database store{file(), database::opening::create_if_missing, clock::now() + patience, running_};
    const auto never_alone = [] {
        ADD_FAILURE() << "nobody needs to be excluded";
        return local::company::newcomers;
    };
    EXPECT_NO_THROW(local::prepare_schema(store, file(), local::this_time_base(),
                                          clock::now() + patience, never_alone));
}

TEST_F(store_file, others_who_are_opening_a_store_of_an_earlier_boot_are_waited_for) {
    static_cast<void>(open());
    execute("UPDATE boot SET id = x'00'");
    database store{file(), database::opening::create_if_missing, clock::now() + patience, running_};
    const auto began = clock::now();
    const auto long_in_company = [&] {
        return clock::now() - began < 1500ms ? local::company::newcomers : local::company::none;
    };
    EXPECT_NO_THROW(local::prepare_schema(store, file(), local::this_time_base(),
                                          clock::now() + patience, long_in_company));
    EXPECT_EQ(store.read_number("SELECT id <> x'00' FROM boot"), 1);
}

TEST_F(store_file, others_who_use_a_store_of_another_boot_are_not_waited_for_long) {
    static_cast<void>(open());
    execute("UPDATE boot SET id = x'00'");
    database store{file(), database::opening::create_if_missing, clock::now() + patience, running_};
    const auto began = clock::now();
    EXPECT_THROW(local::prepare_schema(store, file(), local::this_time_base(), clock::now() + patience,
                                       [] { return local::company::users; }),
                 local::database_error);
    EXPECT_LT(clock::now() - began, 10s);
}

TEST_F(store_file, after_a_reboot_a_counter_ahead_of_the_wall_clock_is_kept) {
    static_cast<void>(open());
    execute("UPDATE boot SET id = x'00'; UPDATE hold SET token = 9000000000000000000 WHERE name = x''");
    EXPECT_EQ(acquire(*open(), exclusive("stock", owner_of(who_))).first_token.value,
              9000000000000000001U);
}

/// Everything that the store keeps there, and what others may do with it.
mode_t rights_of_others(const std::string& directory) {
    mode_t rights = 0;
    for (const auto& entry : std::filesystem::directory_iterator{directory}) {
        rights |= static_cast<mode_t>(entry.status().permissions()) & 0077U;
    }
    return rights;
}

TEST_F(store_file, in_a_directory_that_others_may_look_into_the_files_are_ours_alone) {
    std::filesystem::permissions(base_.path(), std::filesystem::perms{0755});
    const auto before = ::umask(0);
    const auto store = open();
    static_cast<void>(acquire(*store, exclusive("stock", owner_of(who_))));
    ::umask(before);
    EXPECT_EQ(rights_of_others(base_.path()), 0U);
    EXPECT_TRUE(std::filesystem::exists(file() + "-wal"));
}

TEST_F(store_file, rights_that_others_had_are_taken_away) {
    const auto earlier = open();
    for (const char* name : {"/locks.db", "/locks.db-wal", "/locks.db-shm", "/wake"}) {
        std::filesystem::permissions(base_.path() + name, std::filesystem::perms{0664});
    }
    const auto store = open();
    EXPECT_EQ(rights_of_others(base_.path()), 0U);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(store_file, a_damaged_file_is_refused_with_what_to_do) {
    std::filesystem::create_directories(base_.path());
    std::ofstream{file()} << std::string(8192, 'x');
    const failure refused = refusal();
    EXPECT_EQ(refused.code, errc::store_error);
    EXPECT_NE(refused.detail.find("delete " + file()), std::string::npos);
}

TEST_F(store_file, another_programs_database_is_refused_and_left_alone) {
    execute("CREATE TABLE precious(x); INSERT INTO precious VALUES(1)");
    const auto before = std::filesystem::last_write_time(file());
    EXPECT_EQ(refusal().code, errc::bad_configuration);
    EXPECT_EQ(std::filesystem::last_write_time(file()), before);
}

TEST_F(store_file, a_store_of_a_newer_version_is_refused) {
    static_cast<void>(open());
    execute("PRAGMA user_version=" + std::to_string(local::schema_version + 1));
    const failure refused = refusal();
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_NE(refused.detail.find("newer"), std::string::npos);
}

TEST_F(store_file, a_store_of_an_older_version_is_refused) {
    static_cast<void>(open());
    execute("PRAGMA user_version=" + std::to_string(local::schema_version - 1));
    const failure refused = refusal();
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_NE(refused.detail.find("older"), std::string::npos);
}

TEST_F(store_file, a_link_in_place_of_the_file_is_refused) {
    std::filesystem::create_symlink(base_.path() + "/elsewhere", file());
    EXPECT_TRUE(refusal());
    EXPECT_FALSE(std::filesystem::exists(base_.path() + "/elsewhere"));
}

/// Whatever is asked of a store whose file is gone: others would see nothing of it.
struct request_to_a_deleted_store {
    const char* name;
    failure (*ask)(engine& store, const client_identity& who);
};

void PrintTo(const request_to_a_deleted_store& each, std::ostream* out) {
    *out << each.name;
}

class deleted_store : public store_file,
                      public testing::WithParamInterface<request_to_a_deleted_store> {};

TEST_P(deleted_store, is_noticed_by_every_request_that_would_mislead) {
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    std::filesystem::remove(file());
    const auto deadline = clock::now() + patience;
    failure answer;
    while (!answer && clock::now() < deadline) {
        answer = GetParam().ask(*store, who_);
    }
    EXPECT_EQ(answer.code, errc::store_error) << answer.detail;
}

INSTANTIATE_TEST_SUITE_P(
    requests, deleted_store,
    testing::Values(
        request_to_a_deleted_store{"acquire",
                                   [](engine& store, const client_identity& who) {
                                       return acquire(store, exclusive("stock", owner_of(who))).error;
                                   }},
        request_to_a_deleted_store{
            "renew",
            [](engine& store, const client_identity& who) {
                return renew(store, {.name = "stock", .owner = owner_of(who), .ttl = 1min}).error;
            }},
        request_to_a_deleted_store{"revoke",
                                   [](engine& store, const client_identity& who) {
                                       return revoke(store, {"other", owner_of(who), {}, {}, {}}).error;
                                   }},
        request_to_a_deleted_store{"inspect",
                                   [](engine& store, const client_identity&) {
                                       return answer_of<inspect_reply>([&](auto done) {
                                                  store.offers().operators->inspect("stock", soon(),
                                                                                    done);
                                              })
                                           .error;
                                   }},
        request_to_a_deleted_store{
            "list", [](engine& store, const client_identity&) { return list(store, {}).error; }},
        request_to_a_deleted_store{
            "latch_read",
            [](engine& store, const client_identity&) {
                return latch(store, {latch_request::operation::read, "door", 0, {}, {}}).error;
            }},
        request_to_a_deleted_store{
            "latch_count_down",
            [](engine& store, const client_identity&) {
                return latch(store, {latch_request::operation::count_down, "door", 1, {}, {}}).error;
            }}),
    [](const auto& one) { return std::string{one.param.name}; });

TEST_F(store_file, a_store_that_another_keeps_locked_is_unavailable_at_the_deadline) {
    const auto store = open();
    database other{file(), database::opening::existing, clock::now() + patience, running_};
    other.begin();
    for (const caller from : {caller::may_block, caller::must_not_block}) {
        const auto deadline = clock::now() + 30ms;
        const auto reply = acquire(*store, exclusive("stock", owner_of(who_)), {deadline, from});
        EXPECT_EQ(reply.error.code, errc::store_unavailable);
        EXPECT_GE(clock::now(), deadline);
    }
    other.rollback();
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
}

TEST_F(store_file, a_waiting_client_that_only_looks_needs_no_write_lock) {
    const auto store = open();
    const auto watch = store->offers().watching->watch("stock", lock_kind::mutex, [] {});
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_, 1))).result, granted);
    database other{file(), database::opening::existing, clock::now() + patience, running_};
    other.begin();
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(who_, 2))).result, busy);
    EXPECT_EQ(inspect(*store, "stock").holders.size(), 1U);
}

TEST_F(store_file, ending_does_not_wait_for_a_store_that_another_keeps_locked) {
    auto store = open();
    database other{file(), database::opening::existing, clock::now() + patience, running_};
    other.begin();
    counter answered;
    store->acquire(exclusive("stock", owner_of(who_)), {clock::now() + 1h, caller::must_not_block},
                   [&](const acquire_reply& reply) {
                       EXPECT_EQ(reply.error.code, errc::shut_down);
                       answered.add();
                   });
    const auto start = clock::now();
    store.reset();
    EXPECT_LT(clock::now() - start, patience);
    EXPECT_EQ(answered.value(), 1);
}

TEST_F(store_file, what_expired_is_swept_when_a_store_is_opened) {
    ASSERT_EQ(acquire(*open(), exclusive("stock", owner_of(who_))).result, granted);
    execute("UPDATE hold SET expires = 1 WHERE name <> x''");
    const auto store = open();
    database other{file(), database::opening::existing, clock::now() + patience, running_};
    EXPECT_EQ(other.read_number("SELECT count(*) FROM hold"), 1);
    EXPECT_EQ(other.read_number("SELECT count(*) FROM client"), 1);
}

TEST_F(store_file, a_holders_card_is_kept_however_many_clients_come_after_it) {
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    execute("UPDATE client SET sequence = 1");
    // As if so many had come and gone.
    execute("INSERT INTO client VALUES(1000000, x'01', x'', 1, x'', x'', 1, 1, 1)");
    const auto newest = open_local(base_.path(), identity());
    const auto holders = inspect(*newest, "stock").holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_TRUE(holders.front().card);
    EXPECT_EQ(holders.front().process, liveness::alive);
}

TEST_F(store_file, the_card_of_a_living_client_is_kept_too_until_it_holds_something) {
    const auto store = open();
    execute("UPDATE client SET sequence = 1");
    execute("INSERT INTO client VALUES(1000000, x'01', x'', 1, x'', x'', 1, 1, 1)");
    const auto newest = open_local(base_.path(), identity());
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    EXPECT_TRUE(inspect(*newest, "stock").holders.front().card);
}

TEST_F(store_file, of_idle_clients_that_nobody_can_see_the_newest_are_remembered) {
    static_cast<void>(open());
    execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
        "INSERT INTO client SELECT i, CAST(printf('%016d', i) AS BLOB), x'', 1, x'', x'', 1, 1, 1 "
        "FROM n");
    const auto store = open();
    database other{file(), database::opening::existing, clock::now() + patience, running_};
    EXPECT_EQ(other.read_number("SELECT count(*) FROM client"), 4096 + 1);
    EXPECT_EQ(other.read_number("SELECT min(sequence) FROM client"), 5000 - 4096 + 1);
}

TEST_F(store_file, a_hold_that_expires_while_others_wait_for_the_file_is_not_in_their_way) {
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_, 1), 400ms)).result, granted);
    database blocker{file(), database::opening::existing, clock::now() + patience, running_};
    blocker.execute("BEGIN IMMEDIATE");
    auto asked = std::async(std::launch::async,
                            [&] { return acquire(*store, exclusive("stock", owner_of(who_, 2))); });
    EXPECT_EQ(asked.wait_for(500ms), std::future_status::timeout);
    blocker.execute("COMMIT");
    EXPECT_EQ(asked.get().result, granted);
}

TEST_F(store_file, a_renewal_that_could_not_be_made_is_no_loss) {
    const auto store = open();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(who_))).result, granted);
    database blocker{file(), database::opening::existing, clock::now() + patience, running_};
    blocker.execute("BEGIN IMMEDIATE");
    const auto reply = renew(*store, {.name = "stock", .owner = owner_of(who_), .ttl = 1min},
                             {clock::now() + 200ms, caller::may_block});
    EXPECT_EQ(reply.result, renew_reply::outcome::failed);
    EXPECT_EQ(reply.error.code, errc::store_unavailable);
}

}  // namespace

}  // namespace holdfast::engines::test
