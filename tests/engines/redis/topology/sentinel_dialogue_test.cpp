#include <gtest/gtest.h>

#include <engines/redis/topology/replies.hpp>
#include <redis/topology/sentinel_dialogue.hpp>
#include <support/server_process.hpp>

#include <fstream>

namespace holdfast::engines::redis {
namespace {

std::string commands(const std::vector<std::vector<std::string_view>>& all) {
    std::string out;
    for (const auto& words : all) {
        append_command(out, words);
    }
    return out;
}

const value details = list({text("name"), text("shop"), text("config-epoch"), text("4")});
const value listening = list({text("subscribe"), text("+switch-master"), number(1)});
const value deaf = list({text("unsubscribe"), text("+switch-master"), number(0)});

value address_of(std::string host, std::string port) {
    return list({text(std::move(host)), text(std::move(port))});
}

value message(std::string words) {
    return list({text("message"), text("+switch-master"), text(std::move(words))});
}

/// Has said where the master is, and listens.
sentinel_dialogue settled_dialogue() {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    static_cast<void>(dialogue.take(address_of("10.0.0.1", "6379")));
    static_cast<void>(dialogue.take(details));
    static_cast<void>(dialogue.take(listening));
    return dialogue;
}

TEST(redis_sentinel_dialogue, it_opens_with_the_question_and_listens) {
    sentinel_dialogue dialogue{"shop", {}};
    EXPECT_EQ(dialogue.opening(), commands({{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"},
                                            {"SENTINEL", "MASTER", "shop"},
                                            {"SUBSCRIBE", "+switch-master"}}));
    EXPECT_FALSE(dialogue.settled());
}

TEST(redis_sentinel_dialogue, it_logs_in_first) {
    const auto start = [](credentials login) {
        return sentinel_dialogue{"shop", std::move(login)}.opening();
    };
    EXPECT_TRUE(start({"", "secret"}).starts_with(commands({{"AUTH", "secret"}})));
    EXPECT_TRUE(start({"alice", "secret"}).starts_with(commands({{"AUTH", "alice", "secret"}})));
}

TEST(redis_sentinel_dialogue, a_password_file_is_read_again_for_each_connection) {
    const testing_support::temporary_directory files;
    const auto file = (files.path() / "password").string();
    const auto write = [&](const char* text) { std::ofstream{file} << text << '\n'; };
    sentinel_dialogue dialogue{"shop", {"", "before", file}};
    write("first");
    EXPECT_TRUE(dialogue.opening().starts_with(commands({{"AUTH", "first"}})));
    write("second");
    EXPECT_TRUE(dialogue.opening().starts_with(commands({{"AUTH", "second"}})));
    write("");
    EXPECT_TRUE(dialogue.opening().starts_with(commands({{"AUTH", "second"}})));
}

TEST(redis_sentinel_dialogue, address_and_number_make_the_answer) {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    EXPECT_FALSE(dialogue.take(address_of("10.0.0.1", "6379")).view);
    EXPECT_FALSE(dialogue.take(details).view);
    const auto news = dialogue.take(listening);
    ASSERT_TRUE(news.view);
    EXPECT_EQ(news.view->master, at("10.0.0.1", 6379));
    EXPECT_EQ(news.view->epoch, 4U);
    EXPECT_FALSE(news.error);
    EXPECT_TRUE(dialogue.settled());
}

TEST(redis_sentinel_dialogue, a_checkup_also_asks_how_the_group_is) {
    auto dialogue = settled_dialogue();
    EXPECT_EQ(dialogue.checkup(), commands({{"UNSUBSCRIBE", "+switch-master"},
                                            {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"},
                                            {"SENTINEL", "MASTER", "shop"},
                                            {"SENTINEL", "CKQUORUM", "shop"},
                                            {"SUBSCRIBE", "+switch-master"}}));
    static_cast<void>(dialogue.take(deaf));
    static_cast<void>(dialogue.take(address_of("10.0.0.2", "6379")));
    EXPECT_FALSE(dialogue.take(list({text("num-other-sentinels"), text("2")})).checkup);
    const auto news = dialogue.take(error("NOQUORUM 1 usable Sentinels."));
    ASSERT_TRUE(news.checkup);
    EXPECT_FALSE(news.error);
    EXPECT_EQ(news.checkup->others, 2U);
    EXPECT_EQ(news.checkup->quorum.text, "NOQUORUM 1 usable Sentinels.");
    const auto view = dialogue.take(listening).view;
    ASSERT_TRUE(view);
    EXPECT_EQ(view->master.host, "10.0.0.2");
    EXPECT_TRUE(dialogue.settled());
}

TEST(redis_sentinel_dialogue, without_leave_to_ask_for_the_number_it_is_zero) {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    static_cast<void>(dialogue.take(address_of("10.0.0.1", "6379")));
    EXPECT_FALSE(dialogue.take(error("NOPERM this user has no permissions")).error);
    const auto news = dialogue.take(listening);
    ASSERT_TRUE(news.view);
    EXPECT_EQ(news.view->epoch, 0U);
}

TEST(redis_sentinel_dialogue, without_leave_to_listen_there_is_no_answer) {
    for (const auto* words :
         {"NOPERM this user has no permissions to run the 'subscribe' command",
          "NOPERM this user has no permissions to access one of the channels used as arguments"}) {
        sentinel_dialogue dialogue{"shop", {"watcher", "w"}};
        static_cast<void>(dialogue.opening());
        static_cast<void>(dialogue.take(text("OK")));
        EXPECT_FALSE(dialogue.take(address_of("10.0.0.1", "6379")).view);
        EXPECT_FALSE(dialogue.take(details).view);
        const auto news = dialogue.take(error(words));
        EXPECT_FALSE(news.view);
        EXPECT_EQ(news.error.code, errc::unauthorised);
        const bool of_channel = std::string_view{words}.find("channels") != std::string_view::npos;
        EXPECT_NE(news.error.detail.find(of_channel ? "; run: ACL SETUSER watcher &+switch-master"
                                                    : ", +subscribe"),
                  std::string::npos)
            << news.error.detail;
    }
}

TEST(redis_sentinel_dialogue, it_stops_listening_for_the_next_question) {
    auto dialogue = settled_dialogue();
    EXPECT_EQ(dialogue.question(), commands({{"UNSUBSCRIBE", "+switch-master"},
                                             {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"},
                                             {"SENTINEL", "MASTER", "shop"},
                                             {"SUBSCRIBE", "+switch-master"}}));
    static_cast<void>(dialogue.take(deaf));
    static_cast<void>(dialogue.take(address_of("10.0.0.2", "6380")));
    EXPECT_FALSE(dialogue.take(details).view);
    EXPECT_EQ(dialogue.take(listening).view->master, at("10.0.0.2", 6380));
    EXPECT_TRUE(dialogue.settled());
}

TEST(redis_sentinel_dialogue, a_new_master_is_told_with_a_higher_number) {
    auto dialogue = settled_dialogue();
    const auto news = dialogue.take(message("shop 10.0.0.1 6379 10.0.0.2 6380"));
    ASSERT_TRUE(news.view);
    EXPECT_TRUE(news.switched);
    EXPECT_EQ(news.view->master, at("10.0.0.2", 6380));
    EXPECT_EQ(news.view->epoch, 5U);
}

TEST(redis_sentinel_dialogue, a_message_may_come_between_question_and_answer) {
    auto dialogue = settled_dialogue();
    static_cast<void>(dialogue.question());
    EXPECT_TRUE(dialogue.take(message("shop 10.0.0.1 6379 10.0.0.2 6380")).switched);
    EXPECT_FALSE(dialogue.take(deaf).error);
    EXPECT_FALSE(dialogue.settled());
}

TEST(redis_sentinel_dialogue, what_concerns_another_service_is_ignored) {
    auto dialogue = settled_dialogue();
    EXPECT_FALSE(dialogue.take(message("other 10.0.0.1 6379 10.0.0.2 6380")).view);
    EXPECT_FALSE(dialogue.take(message("shop 10.0.0.1 6379")).view);
    EXPECT_FALSE(dialogue.take(message("shop 10.0.0.1 6379 10.0.0.2 x")).view);
}

TEST(redis_sentinel_dialogue, a_refused_login_ends_it_without_the_password_in_the_words) {
    sentinel_dialogue dialogue{"shop", {"alice", "secret"}};
    static_cast<void>(dialogue.opening());
    const auto news = dialogue.take(error("WRONGPASS invalid secret"));
    EXPECT_EQ(news.error.code, errc::unauthorised);
    EXPECT_EQ(news.error.detail.find("secret"), std::string::npos);
}

TEST(redis_sentinel_dialogue, a_service_that_is_not_known_is_a_wrong_address) {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    const auto news = dialogue.take(value{});
    EXPECT_EQ(news.error.code, errc::bad_configuration);
    EXPECT_NE(news.error.detail.find("\"shop\""), std::string::npos);
}

TEST(redis_sentinel_dialogue, a_server_that_is_no_sentinel_is_a_wrong_address) {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    EXPECT_EQ(dialogue.take(error("ERR unknown command 'SENTINEL'")).error.code,
              errc::bad_configuration);
}

TEST(redis_sentinel_dialogue, a_missing_password_is_reported) {
    sentinel_dialogue dialogue{"shop", {}};
    static_cast<void>(dialogue.opening());
    EXPECT_EQ(dialogue.take(error("NOAUTH Authentication required.")).error.code, errc::unauthorised);
}

TEST(redis_sentinel_dialogue, too_many_clients_is_no_answer_to_the_login_or_the_question) {
    for (const auto& login : {credentials{}, credentials{"alice", "secret"}}) {
        sentinel_dialogue dialogue{"shop", login};
        static_cast<void>(dialogue.opening());
        const auto news = dialogue.take(error("ERR max number of clients reached"));
        EXPECT_EQ(news.error.code, errc::store_unavailable);
    }
}

TEST(redis_sentinel_dialogue, answers_to_nothing_end_it) {
    auto dialogue = settled_dialogue();
    EXPECT_EQ(dialogue.take(text("OK")).error.code, errc::store_error);
}

TEST(redis_sentinel_dialogue, an_address_that_makes_no_sense_ends_it) {
    for (const auto& odd :
         {address_of("", "1"), address_of("10.0.0.1", "x"), list({text("10.0.0.1")})}) {
        sentinel_dialogue dialogue{"shop", {}};
        static_cast<void>(dialogue.opening());
        EXPECT_EQ(dialogue.take(odd).error.code, errc::store_error);
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
