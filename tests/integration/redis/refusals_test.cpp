#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// Servers that answer, but with a refusal: what each of them means to the caller.
namespace holdfast::testing {

namespace {

class redis_refusals : public redis_stage {
protected:
    explicit redis_refusals(redis_server_options options = {}) : redis_stage{std::move(options)} {}

    /// Asks once, must be refused as if there were no server, and with these words.
    void expect_unavailable(const std::string& words) {
        const auto ask = [this] { return mutex{client_, "another"}.try_acquire_for(300ms); };
        EXPECT_EQ(error_of(ask), errc::store_unavailable);
        const auto text = error_text_of(ask);
        EXPECT_NE(text.find(words), std::string::npos) << text;
    }
    void expect_work_goes_on() {
        EXPECT_TRUE(mutex(client_, "another").try_acquire_for(5s).has_value());
    }

    client client_{make_client()};
};

TEST_F(redis_refusals, a_full_server_refuses_new_locks_but_renews_and_releases_old_ones) {
    auto held = mutex{client_, "stock", {.ttl = 900ms}}.acquire();
    server_.cli({"CONFIG", "SET", "maxmemory", "1"});

    expect_unavailable("maxmemory");
    const auto renewals = events_->count(event_kind::renewed);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 2));
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_FALSE(is_there("stock"));

    server_.cli({"CONFIG", "SET", "maxmemory", "0"});
    expect_work_goes_on();
}

TEST_F(redis_refusals, a_master_that_became_a_replica_is_not_used_until_it_is_a_master_again) {
    server_.cli({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});

    expect_unavailable("replica");

    server_.cli({"REPLICAOF", "NO", "ONE"});
    expect_work_goes_on();
}

TEST_F(redis_refusals, a_lease_lives_through_a_short_time_as_a_replica) {
    auto held = mutex{client_, "stock", {.ttl = 3s}}.acquire();
    server_.cli({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
    EXPECT_TRUE(events_->wait_for(event_kind::renewal_failed));

    server_.cli({"REPLICAOF", "NO", "ONE"});

    const auto renewals = events_->count(event_kind::renewed);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 1));
    EXPECT_EQ(events_->count(event_kind::lost), 0);
    EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(redis_refusals, a_replica_is_no_store_to_start_with) {
    server_.cli({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
    EXPECT_EQ(error_of([&] { client{address()}; }), errc::store_unavailable);
    const auto text = error_text_of([&] { client{address()}; });
    EXPECT_NE(text.find("replica"), std::string::npos) << text;
}

TEST(redis_of_a_cluster, is_no_server_of_its_own) {
    const redis_server server{{.arguments = {"--cluster-enabled", "yes"}}};
    try {
        client store{address_of(server.port())};
        FAIL();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_NE(std::string{error.what()}.find("use redis+cluster://127.0.0.1:"), std::string::npos)
            << error.what();
    }
}

TEST_F(redis_refusals, a_server_busy_with_a_script_is_waited_for) {
    server_.cli({"CONFIG", "SET", "busy-reply-threshold", "20"});
    auto looping = in_background([this] { return server_.ask({"EVAL", "while true do end", "0"}); });
    EXPECT_TRUE(eventually([&] { return server_.ask({"GET", "x"}).text.starts_with("BUSY"); }));

    expect_unavailable("busy with somebody's script");
    auto waiting = in_background([&] { return mutex{client_, "stock"}.try_acquire_for(20s); });
    const auto asked = client_.requests();
    EXPECT_TRUE(eventually([&] { return client_.requests() >= asked + 2; }));
    server_.cli({"SCRIPT", "KILL"});

    EXPECT_TRUE(looping.get().is_error());
    EXPECT_TRUE(waiting.get().has_value());
}

TEST_F(redis_refusals, a_server_with_too_few_replicas_is_waited_for) {
    server_.cli({"CONFIG", "SET", "min-replicas-to-write", "1"});

    expect_unavailable("too few replicas");

    server_.cli({"CONFIG", "SET", "min-replicas-to-write", "0"});
    expect_work_goes_on();
}

/// Tokens rise only if the counter counts.
TEST_F(redis_refusals, a_token_counter_that_counts_nothing_is_named_and_left_alone) {
    const std::vector<std::vector<std::string>> spoiled{
        {"SET", "holdfast_token", "precious"},
        {"SET", "holdfast_token", "1.5"},
        {"SET", "holdfast_token", "9223372036854775807"},
        {"SET", "holdfast_token", "9007199254740992"},
        {"RPUSH", "holdfast_token", "precious"}};
    for (const auto& words : spoiled) {
        SCOPED_TRACE(words.front() + " " + words.back());
        auto held = mutex{client_, "stock"}.acquire();
        auto other = make_client();
        auto waiting = in_background([&] {
            return error_text_of([&] { return mutex{other, "stock"}.try_acquire_for(10s); });
        });
        ASSERT_TRUE(eventually([&] { return count({"LLEN", "holdfast_wishes:{stock}"}) == 1; }));
        server_.cli({"DEL", "holdfast_token"});
        server_.cli(words);
        const auto before = server_.ask({"DUMP", "holdfast_token"}).text;
        EXPECT_EQ(held.release(), release_outcome::released) << "a release needs no token";
        EXPECT_NE(waiting.get().find("holdfast_token"), std::string::npos);
        for (const bool shared : {false, true}) {
            const auto ask = [&] {
                return shared ? static_cast<bool>(shared_mutex{client_, "read"}.try_acquire_shared())
                              : static_cast<bool>(mutex{client_, "stock"}.try_acquire());
            };
            EXPECT_EQ(error_of(ask), errc::wrong_kind);
            const auto text = error_text_of(ask);
            EXPECT_NE(text.find("the key holdfast_token"), std::string::npos) << text;
            EXPECT_NE(text.find("DEL holdfast_token"), std::string::npos) << text;
        }
        EXPECT_EQ(error_of([&] {
                      return semaphore{client_, "pool", 2}.try_acquire();
                  }),
                  errc::wrong_kind);
        EXPECT_EQ(server_.ask({"DUMP", "holdfast_token"}).text, before);
        server_.cli({"DEL", "holdfast_token"});
        expect_work_goes_on();
    }
}

TEST_F(redis_refusals, a_card_that_could_not_be_given_an_end_is_written_again) {
    server_.cli({"ACL", "SETUSER", "default", "-pexpire"});
    auto other = make_client();
    std::string card;
    ASSERT_TRUE(eventually([&] {
        for (const auto& key : server_.ask({"KEYS", "holdfast_card:*"}).items) {
            card = server_.ask({"PTTL", key.text}).integer == -1 ? key.text : card;
        }
        return !card.empty();
    }));

    server_.cli({"ACL", "SETUSER", "default", "+@all"});

    EXPECT_TRUE(eventually([&] {
        mutex(other, "another").acquire().release();
        return server_.ask({"PTTL", card}).integer > 0;
    }));
}

TEST_F(redis_refusals, a_name_that_is_for_what_is_known_about_locks_is_refused_among_others) {
    for (const auto* const reserved : {"redisson_lock_queue:{x}", "holdfast_holds:{x}"}) {
        multi_lock both{client_, {reserved, "another"}};
        EXPECT_EQ(error_of([&] { return both.try_acquire(); }), errc::invalid_name) << reserved;
        EXPECT_FALSE(is_there(reserved));
    }
    EXPECT_FALSE(is_there("another"));
}

TEST_F(redis_refusals, the_names_that_are_refused_are_those_that_the_documentation_lists) {
    for (const std::string page : {"/docs/redis.md", "/docs/troubleshooting.md"}) {
        std::ifstream file{HOLDFAST_SOURCE_DIR + page};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        for (const std::string beginning :
             {"holdfast_", "redisson_lock_queue:", "redisson_lock_timeout:", "redisson_lock_token:"}) {
            EXPECT_NE(text.find("`" + beginning + "`"), std::string::npos) << page << beginning;
            mutex refused{client_, beginning + "x"};
            EXPECT_EQ(error_of([&] { return refused.try_lock(); }), errc::invalid_name) << beginning;
        }
        EXPECT_EQ(text.find("`redisson_`"), std::string::npos) << page;
    }
    mutex other{client_, "redisson_x"};
    EXPECT_TRUE(other.try_lock());
    other.unlock();
}

TEST_F(redis_refusals, something_else_under_the_locks_name_is_not_touched) {
    server_.cli({"SET", "text", "precious"});
    server_.cli({"RPUSH", "list", "precious"});
    server_.cli({"SADD", "set", "precious"});
    server_.cli({"ZADD", "sorted", "1", "precious"});
    for (const std::string name : {"text", "list", "set", "sorted"}) {
        const auto before = server_.cli({"DUMP", name});
        const stopwatch watch;
        EXPECT_EQ(error_of([&] {
                      return mutex{client_, name}.try_acquire_for(10s);
                  }),
                  errc::wrong_kind)
            << name;
        EXPECT_EQ(error_of([&] {
                      return fair_mutex{client_, name}.try_acquire_for(10s);
                  }),
                  errc::wrong_kind)
            << name;
        EXPECT_EQ(error_of([&] {
                      return shared_mutex{client_, name}.try_acquire_shared();
                  }),
                  errc::wrong_kind)
            << name;
        EXPECT_LT(watch.elapsed(), 3s) << "a refusal is not waited for";
        EXPECT_EQ(server_.cli({"DUMP", name}), before);
        EXPECT_EQ(server_.cli({"PTTL", name}), "-1");
    }
    EXPECT_TRUE(client_.list().locks.empty());
}

TEST_F(redis_refusals, a_latch_of_javas_that_counts_further_than_ours_do_is_not_open) {
    server_.cli({"SET", "start", "4294967296"});
    latch start{client_, "start"};
    EXPECT_EQ(start.count(), 0xFFFF'FFFFU);
    EXPECT_FALSE(start.try_wait());
}

class redis_loading : public redis_refusals {
protected:
    redis_loading() : redis_refusals{{.arguments = {"--enable-debug-command", "local"}}} {}
};

TEST_F(redis_loading, a_server_that_loads_its_data_is_waited_for) {
    auto held = mutex{client_, "stock", {.ttl = 30s}}.acquire();
    server_.cli({"DEBUG", "POPULATE", "4000", "filler", "100"});
    server_.cli({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"});
    server_.cli({"CONFIG", "SET", "key-load-delay", "400"});
    auto loading = in_background([this] { return server_.cli({"DEBUG", "RELOAD"}); });
    EXPECT_TRUE(eventually([&] { return server_.ask({"GET", "x"}).text.starts_with("LOADING"); }));

    expect_unavailable("loading");
    server_.cli({"CONFIG", "SET", "key-load-delay", "0"});

    EXPECT_EQ(loading.get(), "OK");
    expect_work_goes_on();
    EXPECT_EQ(held.release(), release_outcome::released);
}

class redis_unsaved : public redis_refusals {
protected:
    redis_unsaved() : redis_refusals{{.arguments = {"--dbfilename", "occupied"}}} {}
};

TEST_F(redis_unsaved, a_server_that_cannot_save_is_waited_for) {
    std::filesystem::create_directory(server_.directory() / "occupied");
    server_.cli({"CONFIG", "SET", "save", "3600 1000000"});
    server_.cli({"BGSAVE"});
    EXPECT_TRUE(eventually([&] { return server_.info("rdb_last_bgsave_status") == "err"; }));

    expect_unavailable("cannot save");

    server_.cli({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"});
    expect_work_goes_on();
}

class redis_credentials : public redis_stage {
protected:
    redis_credentials()
        : redis_stage{{.acl = "user default off\n"
                              "user locker on >secret ~* &* +@all\n"
                              "user reader on >secret ~* &* +@all -evalsha -eval\n"
                              "user narrow on >secret ~stock* ~{stock* ~redisson_* ~holdfast_* "
                              "&* +@all"}} {}

    [[nodiscard]] std::string address_as(const std::string& who) const {
        return "redis://" + who + "@127.0.0.1:" + std::to_string(server_.port());
    }
};

TEST_F(redis_credentials, a_wrong_password_is_refused_at_once_and_not_repeated_in_the_error) {
    const stopwatch watch;
    EXPECT_EQ(error_of([&] { client{address_as("locker:mistaken")}; }), errc::unauthorised);
    EXPECT_LT(watch.elapsed(), 1s);
    const auto text = error_text_of([&] { client{address_as("locker:mistaken")}; });
    EXPECT_EQ(text.find("mistaken"), std::string::npos) << text;
    EXPECT_NE(text.find("127.0.0.1:" + std::to_string(server_.port())), std::string::npos) << text;
}

TEST_F(redis_credentials, a_missing_password_is_refused_at_once) {
    EXPECT_EQ(error_of([&] { client{address()}; }), errc::unauthorised);
}

TEST_F(redis_credentials, a_user_without_a_needed_command_is_refused_at_once) {
    client limited{address_as("reader:secret")};
    const stopwatch watch;
    EXPECT_EQ(error_of([&] {
                  return mutex{limited, "stock"}.try_acquire_for(10s);
              }),
              errc::unauthorised);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(redis_credentials, a_user_without_a_needed_key_is_refused_at_once) {
    client limited{address_as("narrow:secret")};
    EXPECT_TRUE(mutex(limited, "stock:1").try_acquire().has_value());
    EXPECT_EQ(error_of([&] {
                  return mutex{limited, "other"}.try_acquire_for(10s);
              }),
              errc::unauthorised);
}

TEST_F(redis_credentials, a_holder_whose_rights_are_taken_away_loses_its_lease_by_its_own_clock) {
    client limited{address_as("locker:secret"), {.events = events_}};
    auto held = mutex{limited, "stock", {.ttl = 900ms}}.acquire();
    server_.cli({"ACL", "SETUSER", "locker", "-evalsha", "-eval"});
    const stopwatch watch;
    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(watch.elapsed(), 900ms + slack);
    EXPECT_EQ(events_->last(event_kind::renewal_failed).error.code, errc::unauthorised);
    EXPECT_EQ(held.loss_reason(), errc::lost);
}

TEST_F(redis_credentials, a_password_that_changed_is_reported_when_the_connection_has_to_be_made_anew) {
    client limited{address_as("locker:secret")};
    server_.cli({"ACL", "SETUSER", "locker", "resetpass", ">changed"});
    server_.client_kill("normal");
    EXPECT_EQ(error_of([&] {
                  return mutex{limited, "stock"}.try_acquire_for(1s);
              }),
              errc::unauthorised);
}

}  // namespace

}  // namespace holdfast::testing
