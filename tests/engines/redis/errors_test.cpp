#include <gtest/gtest.h>

#include <engines/redis/topology/replies.hpp>
#include <redis/errors.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Errors in the words that servers of several versions have for them.
namespace holdfast::engines::redis {
namespace {

struct expectation {
    std::string_view words;
    std::string_view code;
    errc meaning;
};

/// As Redis 6.2.14 says it; newer servers say the words alone.
constexpr std::array inside_scripts{
    expectation{"-OOM command not allowed when used memory > 'maxmemory'.", "OOM",
                errc::store_unavailable},
    expectation{"-MISCONF Redis is configured to save RDB snapshots, but …", "MISCONF",
                errc::store_unavailable},
    expectation{"-NOREPLICAS Not enough good replicas to write.", "NOREPLICAS",
                errc::store_unavailable},
    expectation{"-READONLY You can't write against a read only replica.", "READONLY",
                errc::store_unavailable},
    expectation{"-CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT",
                errc::bad_configuration},
    expectation{"WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE",
                errc::wrong_kind},
    expectation{"The user executing the script can't run this command or subcommand", "NOPERM",
                errc::unauthorised},
    expectation{"The user executing the script can't access at least one of the keys mentioned in "
                "the command arguments",
                "NOPERM", errc::unauthorised},
    expectation{"The user executing the script can't publish to the channel mentioned in the command",
                "NOPERM", errc::unauthorised},
    expectation{"Unknown Redis command called from Lua script", "ERR", errc::store_error},
};

void expect(const std::string& words, const expectation& what) {
    const value answer = error(words);
    EXPECT_EQ(answer.error_code(), what.code) << words;
    EXPECT_EQ(meaning_of(answer).code, what.meaning) << words;
    EXPECT_NE(meaning_of(answer).detail.find(words), std::string::npos) << "its words are told";
}

TEST(redis_errors, of_a_script_before_7_0_are_what_they_are_outside) {
    for (const auto& each : inside_scripts) {
        const std::string words{each.words};
        const std::string wrapper{"ERR Error running script (call to f_0a9f75e991483d02): "};
        expect(wrapper + "@user_script:1: @user_script: 1: " + words, each);
        expect(wrapper + "@user_script:12: " + words, each);
        expect(wrapper + "@user_script: 112: " + words, each);
    }
}

TEST(redis_errors, that_a_script_before_7_0_passes_on_are_what_they_are_outside) {
    for (const auto& each : inside_scripts) {
        expect("@user_script: 1: " + std::string{each.words}, each);
    }
}

TEST(redis_errors, of_a_script_since_7_0_are_what_they_are_outside) {
    const std::string place{" script: 0a9f75e991483d02, on @user_script:1."};
    for (const auto& each : inside_scripts) {
        std::string words{each.words};
        if (words.starts_with('-')) {
            words.erase(0, 1);
        } else if (!words.starts_with("WRONGTYPE")) {
            words.insert(0, "ERR ");
        }
        expect(words, each);
        expect(words + place, each);
    }
    expect("ERR ACL failure in script: User u has no permissions to run the 'pexpire' command" + place,
           {{}, "NOPERM", errc::unauthorised});
    expect("ERR ACL failure in script: No permissions to access a key" + place,
           {{}, "NOPERM", errc::unauthorised});
}

TEST(redis_errors, that_a_script_raises_are_in_its_own_words) {
    const std::string words{
        "the key t holds something else than the number of the last token; remove it: DEL t"};
    const std::string raised = "WRONGKIND " + words;
    for (const auto& text : {"ERR Error running script (call to f_0a9f): @user_script:12: " + raised,
                             "ERR " + raised + " script: 0a9f, on @user_script:12."}) {
        EXPECT_EQ(meaning_of(error(text)).code, errc::wrong_kind) << text;
        EXPECT_EQ(meaning_of(error(text)).detail, words) << text;
    }
}

TEST(redis_errors, that_only_look_wrapped_are_left_alone) {
    for (const auto* words :
         {"ERR Error running script", "ERR Error running script (call to f_1", "@user_script:",
          "@user_script: x", "@user_script: 1: ", "ERR user_script:2: attempt to index local 'x'",
          "ERR Error running script (call to f_1): @user_script:2: user_script:2: attempt to index", "",
          "ERR"}) {
        EXPECT_EQ(meaning_of(error(words)).code, errc::store_error) << words;
    }
    EXPECT_EQ(error("MOVED 3999 10.0.0.5:6381").error_code(), "MOVED");
    EXPECT_EQ(error("NOSCRIPT No matching script.").error_code(), "NOSCRIPT");
    EXPECT_EQ(text("OOM x").error_code(), "");
}

TEST(redis_errors, a_server_with_too_many_clients_is_unavailable) {
    for (const auto* words : {"ERR max number of clients reached",
                              "ERR max number of clients + cluster connections reached"}) {
        EXPECT_TRUE(says_full(error(words)));
        EXPECT_EQ(meaning_of(error(words)).code, errc::store_unavailable);
        EXPECT_FALSE(says_full(text(words)));
    }
    EXPECT_FALSE(says_full(error("ERR invalid password")));
}

TEST(redis_errors, the_line_of_a_script_that_is_not_allowed_is_named) {
    constexpr std::string_view script{"local a = 1\n    redis.call('PEXPIRE', KEYS[1], 5)\nreturn 1"};
    const auto named = [&](const std::string& words) {
        value answer = error(words);
        name_forbidden_command(answer, script, "publish");
        return answer.text;
    };
    const std::string line{" in `redis.call('PEXPIRE', KEYS[1], 5)`"};
    const std::string since_7{
        "ERR The user executing the script can't run this command or subcommand script: 0a9f, on "
        "@user_script:2."};
    EXPECT_EQ(named(since_7), since_7 + line);
    const std::string before_7{
        "ERR Error running script (call to f_0a9f): @user_script:2: @user_script: 2: The user "
        "executing the script can't run this command or subcommand"};
    EXPECT_EQ(named(before_7), before_7 + line);
    EXPECT_EQ(named("OOM command not allowed script: 0a9f, on @user_script:2."),
              "OOM command not allowed script: 0a9f, on @user_script:2.");
    EXPECT_EQ(named("NOPERM x"), "NOPERM x");
    EXPECT_EQ(named("NOPERM x @user_script:99."), "NOPERM x @user_script:99. in ``");
}

TEST(redis_errors, the_permission_that_is_missing_is_named) {
    constexpr std::string_view script{
        "redis.call(publish, channel, '0')\n"
        "    redis.call(publish, channel_of(line, waiter), message)\n"
        "redis.call('HSET', lock, field, redis.call('HGET', lock, field))"};
    const auto advice = [&](const std::string& words, std::string_view publish = "publish") {
        value answer = error(words);
        name_forbidden_command(answer, script, publish);
        const auto detail = meaning_of(answer).detail;
        return detail.substr(0, detail.find(';'));
    };
    const std::string vague{"ERR The user executing the script can't run this command or subcommand"};
    const auto at_line = [&](const std::string& number) {
        return vague + " script: 0a9f, on @user_script:" + number + ".";
    };
    const std::string lacks{"this user lacks a permission, "};
    EXPECT_EQ(advice(at_line("1")), lacks + "+publish");
    EXPECT_EQ(advice(at_line("2")), lacks + "+publish");
    EXPECT_EQ(advice(at_line("1"), "spublish"), lacks + "+spublish");
    EXPECT_EQ(advice(at_line("2"), "spublish"), lacks + "+spublish");
    EXPECT_EQ(advice(at_line("3")), lacks + "+hset or +hget");
    EXPECT_EQ(advice(vague + " in `HMGET`"), lacks + "+hmget");
    EXPECT_EQ(advice("ERR ACL failure in script: User u has no permissions to run the 'hget' command "
                     "script: 0a9f, on @user_script:3."),
              lacks + "+hget");
    EXPECT_EQ(advice("NOPERM this user has no permissions to run the 'asking' command"),
              lacks + "+asking");
}

TEST(redis_errors, keys_are_named_where_they_are_missing_and_not_where_a_command_is) {
    constexpr std::string_view script{"local key = KEYS[1]\nredis.call('HKEYS', key)"};
    word_list keys;
    keys.add("stock");
    const auto named = [&](const std::string& words) {
        value answer = error(words);
        name_forbidden_command(answer, script, "publish");
        name_keys(answer, keys);
        return answer.text;
    };
    const std::string place{" script: 0a9f, on @user_script:2."};
    const std::string line{" in `redis.call('HKEYS', key)`"};
    const std::string stock{"; the user needs access to these keys and channels: stock"};
    for (const std::string words :
         {"ERR The user executing the script can't run this command or subcommand",
          "ERR ACL failure in script: User u has no permissions to run the 'hkeys' command"}) {
        EXPECT_EQ(named(words + place), words + place + line);
    }
    for (const std::string words :
         {"ERR The user executing the script can't access at least one of the keys mentioned in the "
          "command arguments",
          "ERR The user executing the script can't publish to the channel mentioned in the command",
          "ERR ACL failure in script: No permissions to access a key"}) {
        EXPECT_EQ(named(words + place), words + place + line + stock);
    }
    EXPECT_EQ(named("NOPERM No permissions to access a key"),
              "NOPERM No permissions to access a key" + stock);
}

}  // namespace
}  // namespace holdfast::engines::redis
