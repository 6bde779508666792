#include <redis/net/connection.hpp>

#include <future>

#include <gtest/gtest.h>

#include "server.hpp"

#include <dlfcn.h>
#include <netdb.h>

namespace {

constexpr std::string_view hanging_name = "hanging.test";
constexpr std::string_view unknown_name = "unknown.test";

}  // namespace

/// Stands before the system's, so that no test asks a name server: one name hangs, one is not known.
extern "C" int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                           struct addrinfo** found) {
    while (node == hanging_name && (hints->ai_flags & AI_NUMERICHOST) == 0) {
        ::pause();
    }
    if (node == unknown_name) {
        return EAI_NONAME;
    }
    using original = int (*)(const char*, const char*, const struct addrinfo*, struct addrinfo**);
    static const auto next = reinterpret_cast<original>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    return next(node, service, hints, found);
}

namespace holdfast::engines::redis::test {

namespace {

failure outcome_of(const node_address& where, const connection_settings& how) {
    connection tested{where, how, {}, {}};
    return tested.connect(clock::now() + patience);
}

connection_settings with_login(std::string user, std::string password) {
    return {.login = {.user = std::move(user), .password = std::move(password)}, .tls = {}};
}

TEST(login, the_right_password_is_taken_and_a_database_chosen) {
    const server redis{{"--requirepass", "s3cret"}};
    auto how = with_login("", "s3cret");
    how.database = 3;
    connection tested{redis.where(), how, {}, {}};
    EXPECT_EQ(tested.connect(clock::now() + patience).code, errc{});
    const auto info = ask(tested, {"CLIENT", "INFO"}).replies.at(0).text;
    EXPECT_NE(info.find(" db=3 "), std::string::npos) << info;
    EXPECT_NE(info.find(" name=holdfast "), std::string::npos) << info;
}

TEST(login, a_user_of_the_servers_list_is_taken) {
    const server redis;
    admin other{redis.port()};
    other.command({"ACL", "SETUSER", "locker", "on", ">lockpw", "~*", "+@all"});
    EXPECT_EQ(outcome_of(redis.where(), with_login("locker", "lockpw")).code, errc{});
}

TEST(login, a_wrong_password_is_refused_without_being_repeated) {
    const server redis{{"--requirepass", "s3cret"}};
    const failure refused = outcome_of(redis.where(), with_login("", "hunter2"));
    EXPECT_EQ(refused.code, errc::unauthorised);
    EXPECT_NE(refused.detail.find("127.0.0.1:"), std::string::npos);
    EXPECT_EQ(refused.detail.find("hunter2"), std::string::npos) << refused.detail;
}

/// Of a command that it does not know Redis repeats what follows: all of a short password, the
/// beginning of a long one, line breaks as blanks.
TEST(login, nothing_of_a_password_is_repeated_by_way_of_a_server_without_auth) {
    const server redis{{"--rename-command", "AUTH", ""}};
    std::string longest;
    for (int word = 100; word < 150; ++word) {
        longest += "x" + std::to_string(word);
    }
    for (const std::string& password : {std::string{"hunter2"}, longest, std::string{"x1\nx2\nx3"}}) {
        for (const auto* user : {"", "xuser"}) {
            const failure refused = outcome_of(redis.where(), with_login(user, password));
            EXPECT_EQ(refused.code, errc::unauthorised) << refused.detail;
            EXPECT_NE(refused.detail.find("does not know the command AUTH"), std::string::npos);
            EXPECT_EQ(refused.detail.find("hunter"), std::string::npos) << refused.detail;
            EXPECT_EQ(refused.detail.find('x'), std::string::npos) << refused.detail;
        }
    }
}

TEST(login, a_password_that_the_server_does_not_want_is_said) {
    const server redis;
    const failure refused = outcome_of(redis.where(), with_login("", "hunter2"));
    EXPECT_EQ(refused.code, errc::unauthorised);
    EXPECT_NE(refused.detail.find("without any password configured"), std::string::npos)
        << refused.detail;
}

TEST(login, a_missing_password_is_asked_for) {
    const server redis{{"--requirepass", "s3cret"}};
    const failure refused = outcome_of(redis.where(), {});
    EXPECT_EQ(refused.code, errc::unauthorised);
    EXPECT_NE(refused.detail.find("HOLDFAST_REDIS_PASSWORD"), std::string::npos) << refused.detail;
}

TEST(login, a_user_who_may_not_do_what_is_needed_is_told) {
    const server redis;
    admin other{redis.port()};
    other.command({"ACL", "SETUSER", "reader", "on", ">pw", "~*", "+get"});
    const failure refused = outcome_of(redis.where(), with_login("reader", "pw"));
    EXPECT_EQ(refused.code, errc::unauthorised);
    EXPECT_NE(refused.detail.find("time"), std::string::npos) << refused.detail;
}

TEST(login, a_database_that_is_not_there_is_a_bad_configuration) {
    const server redis;
    const failure refused = outcome_of(redis.where(), {.login = {}, .tls = {}, .database = 99});
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_NE(refused.detail.find("database 99"), std::string::npos) << refused.detail;
}

TEST(login, a_server_with_too_many_clients_is_unavailable) {
    const server redis;
    admin other{redis.port()};
    ASSERT_TRUE(eventually([&] {
        // The limit counts this client too.
        const reply answer = other.command({"CONFIG", "SET", "maxclients", "1"});
        return answer && answer->type == REDIS_REPLY_STATUS;
    }));
    const failure refused = outcome_of(redis.where(), {});
    EXPECT_EQ(refused.code, errc::store_unavailable);
    EXPECT_NE(refused.detail.find("max number of clients"), std::string::npos) << refused.detail;
}

TEST(login, a_server_with_too_many_clients_has_not_judged_the_password_or_the_database) {
    const server redis;
    admin other{redis.port()};
    ASSERT_TRUE(eventually([&] {
        const reply answer = other.command({"CONFIG", "SET", "maxclients", "1"});
        return answer && answer->type == REDIS_REPLY_STATUS;
    }));
    auto with_database = connection_settings{};
    with_database.database = 3;
    for (const auto& how : {with_login("", "pw"), with_login("locker", "pw"), with_database}) {
        const failure refused = outcome_of(redis.where(), how);
        EXPECT_EQ(refused.code, errc::store_unavailable) << refused.detail;
        EXPECT_NE(refused.detail.find("max number of clients"), std::string::npos) << refused.detail;
    }
}

TEST(login, nobody_at_the_address_is_said_with_the_address) {
    const std::uint16_t port = free_port();
    const failure refused = outcome_of({.host = "127.0.0.1", .port = port, .path = {}}, {});
    EXPECT_EQ(refused.code, errc::store_unavailable);
    EXPECT_NE(refused.detail.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
    EXPECT_NE(refused.detail.find("is the server up?"), std::string::npos) << refused.detail;
}

TEST(login, no_socket_at_the_path_is_said_with_the_path) {
    const failure refused = outcome_of({.host = {}, .port = 0, .path = "/nowhere/redis.sock"}, {});
    EXPECT_EQ(refused.code, errc::store_unavailable);
    EXPECT_NE(refused.detail.find("/nowhere/redis.sock"), std::string::npos) << refused.detail;
}

TEST(login, a_name_is_looked_up) {
    const server redis;
    EXPECT_EQ(outcome_of({.host = "localhost", .port = redis.port(), .path = {}}, {}).code, errc{});
}

TEST(login, a_name_that_nobody_knows_is_said) {
    const failure refused = outcome_of({.host = std::string{unknown_name}, .port = 1, .path = {}}, {});
    EXPECT_EQ(refused.code, errc::store_unavailable);
    EXPECT_NE(refused.detail.find(unknown_name), std::string::npos) << refused.detail;
}

TEST(login, a_look_up_that_hangs_holds_up_neither_callers_nor_the_end) {
    const auto started = clock::now();
    {
        connection tested{{.host = std::string{hanging_name}, .port = 1, .path = {}},
                          {.login = {}, .tls = {}, .database = 0, .connect_timeout = 60s},
                          {},
                          {}};
        EXPECT_EQ(ask(tested, {"PING"}, 50ms).error.code, errc::store_unavailable);
        EXPECT_EQ(tested.connect(clock::now() + 50ms).code, errc::store_unavailable);
    }
    EXPECT_LT(clock::now() - started, patience / 2);
}

TEST(login, a_server_that_says_nothing_is_not_said_to_be_out_of_reach) {
    const server redis;
    redis.stop();
    connection tested{
        redis.where(), {.login = {}, .tls = {}, .database = 0, .connect_timeout = 60s}, {}, {}};
    const failure refused = tested.connect(clock::now() + 100ms);
    const failure unasked = ask(tested, {"PING"}, 100ms).error;
    redis.resume();
    for (const failure& each : {refused, unasked}) {
        EXPECT_EQ(each.code, errc::store_unavailable);
        EXPECT_NE(each.detail.find("no answer in time"), std::string::npos) << each.detail;
    }
}

TEST(login, a_server_that_says_nothing_is_given_up_in_time) {
    const server redis;
    redis.stop();
    const failure refused =
        outcome_of(redis.where(), {.login = {}, .tls = {}, .database = 0, .connect_timeout = 200ms});
    redis.resume();
    EXPECT_EQ(refused.code, errc::store_unavailable);
    EXPECT_NE(refused.detail.find("no answer in time"), std::string::npos) << refused.detail;
}

}  // namespace

}  // namespace holdfast::engines::redis::test
