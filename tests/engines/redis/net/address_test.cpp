#include <redis/address.hpp>

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include <holdfast/error.hpp>

#include "server.hpp"

namespace holdfast::engines::redis::test {

namespace {

/// What the environment says must not decide the other tests.
class address_parsing : public ::testing::Test {
protected:
    address_parsing() {
        ::unsetenv("HOLDFAST_REDIS_PASSWORD");
        ::unsetenv("HOLDFAST_REDIS_USER");
    }
    ~address_parsing() override {
        ::unsetenv("HOLDFAST_REDIS_PASSWORD");
        ::unsetenv("HOLDFAST_REDIS_USER");
    }

    /// The words of the refusal; empty when there was none.
    [[nodiscard]] static std::string refusal(std::string_view scheme, std::string_view rest) {
        try {
            static_cast<void>(parse_address(scheme, rest));
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), make_error_code(errc::bad_configuration));
            return error.what();
        }
        return {};
    }
};

TEST_F(address_parsing, a_host_alone_means_the_usual_port_and_database_zero) {
    const address parsed = parse_address("redis", "//db.example");
    EXPECT_EQ(parsed.topology, topology_kind::standalone);
    ASSERT_EQ(parsed.nodes.size(), 1U);
    EXPECT_EQ(parsed.nodes[0].text(), "db.example:6379");
    EXPECT_EQ(parsed.connection.database, 0U);
    EXPECT_FALSE(parsed.connection.tls);
    EXPECT_EQ(parsed.text, "redis://db.example:6379");
}

TEST_F(address_parsing, user_password_port_database_and_options_are_read) {
    const address parsed =
        parse_address("redis",
                      "//ann:s%40%2Fcret@10.0.0.5:7000/3?connect_timeout=500&prefix=a%26b&"
                      "fenced=redisson");
    EXPECT_EQ(parsed.connection.login.user, "ann");
    EXPECT_EQ(parsed.connection.login.password, "s@/cret");
    EXPECT_EQ(parsed.nodes.at(0).port, 7000);
    EXPECT_EQ(parsed.connection.database, 3U);
    EXPECT_EQ(parsed.connection.connect_timeout, 500ms);
    EXPECT_EQ(parsed.prefix, "a&b");
    EXPECT_TRUE(parsed.redisson_tokens);
    EXPECT_EQ(parsed.text, "redis://10.0.0.5:7000/3?prefix=a%26b");
}

TEST_F(address_parsing, an_ipv6_address_stands_in_brackets) {
    const address parsed = parse_address("redis", "//[::1]:7001");
    EXPECT_EQ(parsed.nodes.at(0).host, "::1");
    EXPECT_EQ(parsed.nodes.at(0).port, 7001);
    EXPECT_EQ(parsed.text, "redis://[::1]:7001");
}

TEST_F(address_parsing, tls_options_are_read) {
    const address parsed =
        parse_address("rediss", "//h?ca=/c.pem&cert=/k.crt&key=/k.key&server_name=n");
    ASSERT_TRUE(parsed.connection.tls);
    EXPECT_EQ(parsed.connection.tls->ca_file, "/c.pem");
    EXPECT_EQ(parsed.connection.tls->certificate_file, "/k.crt");
    EXPECT_EQ(parsed.connection.tls->key_file, "/k.key");
    EXPECT_EQ(parsed.connection.tls->server_name, "n");
    EXPECT_TRUE(parsed.connection.tls->verify);
    EXPECT_FALSE(parse_address("rediss", "//h?verify=no").connection.tls->verify);
}

TEST_F(address_parsing, a_unix_socket_has_a_path_and_its_database_as_an_option) {
    const address parsed = parse_address("redis+unix", "///run/redis.sock?database=2");
    EXPECT_EQ(parsed.nodes.at(0).path, "/run/redis.sock");
    EXPECT_EQ(parsed.connection.database, 2U);
    EXPECT_EQ(parsed.text, "redis+unix:///run/redis.sock?database=2");
}

TEST_F(address_parsing, sentinels_have_a_service_and_their_own_port_and_login) {
    ::setenv("HOLDFAST_TEST_SENTINEL", "guard", 1);
    const address parsed = parse_address(
        "rediss+sentinel",
        "//a,b:5,c/orders/1?sentinel_user=w&sentinel_password_env=HOLDFAST_TEST_SENTINEL");
    EXPECT_EQ(parsed.topology, topology_kind::sentinel);
    ASSERT_EQ(parsed.nodes.size(), 3U);
    EXPECT_EQ(parsed.nodes[0].text(), "a:26379");
    EXPECT_EQ(parsed.nodes[1].text(), "b:5");
    EXPECT_EQ(parsed.service, "orders");
    EXPECT_EQ(parsed.connection.database, 1U);
    EXPECT_EQ(parsed.sentinel_login.user, "w");
    EXPECT_EQ(parsed.sentinel_login.password, "guard");
    EXPECT_EQ(parsed.connection.login.password, "");
    EXPECT_EQ(parsed.text, "rediss+sentinel://a:26379,b:5,c:26379/orders/1");
}

TEST_F(address_parsing, a_cluster_has_seeds_and_no_database) {
    const address parsed = parse_address("redis+cluster", "//a,b?sharded=off");
    EXPECT_EQ(parsed.topology, topology_kind::cluster);
    EXPECT_EQ(parsed.nodes.size(), 2U);
    EXPECT_EQ(parsed.sharded, address::sharding::off);
    EXPECT_NE(refusal("redis+cluster", "//a/1").find("only database 0"), std::string::npos);
}

TEST_F(address_parsing, the_environment_has_the_password_when_the_address_has_none) {
    ::setenv("HOLDFAST_REDIS_PASSWORD", "from-environment", 1);
    ::setenv("HOLDFAST_REDIS_USER", "eve", 1);
    EXPECT_EQ(parse_address("redis", "//h").connection.login.password, "from-environment");
    EXPECT_EQ(parse_address("redis", "//h").connection.login.user, "eve");
    EXPECT_EQ(parse_address("redis", "//ann@h").connection.login.user, "ann");
    EXPECT_EQ(parse_address("redis", "//:own@h").connection.login.password, "own");
    EXPECT_EQ(parse_address("redis", "//:own@h").connection.login.user, "");
}

TEST_F(address_parsing, an_empty_variable_is_no_credential) {
    ::setenv("HOLDFAST_REDIS_PASSWORD", "", 1);
    EXPECT_NE(refusal("redis", "//h").find("HOLDFAST_REDIS_PASSWORD is set, but empty"),
              std::string::npos);
    EXPECT_EQ(parse_address("redis", "//:own@h").connection.login.password, "own");
    ::setenv("HOLDFAST_REDIS_PASSWORD", "secret", 1);
    ::setenv("HOLDFAST_REDIS_USER", "", 1);
    EXPECT_NE(refusal("redis", "//h").find("HOLDFAST_REDIS_USER is set, but empty"), std::string::npos);
    EXPECT_EQ(parse_address("redis", "//ann@h").connection.login.user, "ann");
}

TEST_F(address_parsing, a_password_file_gives_its_first_line) {
    const temporary_directory directory;
    std::ofstream{file_in(directory, "secret")} << "top secret\nsecond line\n";
    const address parsed =
        parse_address("redis", "//h?user=ann&password_file=" + file_in(directory, "secret"));
    EXPECT_EQ(parsed.connection.login.password, "top secret");
    EXPECT_EQ(parsed.connection.login.user, "ann");
}

/// The path and the reason are told; what may be the password itself is not.
TEST_F(address_parsing, a_password_file_that_cannot_be_used_is_named_with_the_reason) {
    const temporary_directory directory;
    std::ofstream{file_in(directory, "empty")};
    std::ofstream{file_in(directory, "blank")} << "\nsecond line\n";
    std::ofstream{file_in(directory, "endless")} << std::string(100'000, 'x');
    const auto root = file_in(directory, "");
    const std::vector<std::pair<std::string, std::string>> cases{
        {"/nowhere", "No such file or directory"},
        {root, "Is a directory"},
        {root + "empty", "no password in its first line"},
        {root + "blank", "no password in its first line"},
        {root + "endless", "no end of line"}};
    for (const auto& [path, reason] : cases) {
        for (const std::string option : {"password_file", "sentinel_password_file"}) {
            const auto words = refusal("redis+sentinel", "//h/service?" + option + "=" + path);
            EXPECT_NE(words.find(option + "=" + path + ": "), std::string::npos) << words;
            EXPECT_NE(words.find(reason), std::string::npos) << words;
        }
    }
    const auto relative = refusal("redis", "//h?password_file=hunter2");
    EXPECT_EQ(relative.find("hunter2"), std::string::npos) << relative;
    EXPECT_NE(relative.find(std::filesystem::current_path().string()), std::string::npos) << relative;
    EXPECT_NE(relative.find("No such file"), std::string::npos) << relative;
}

TEST_F(address_parsing, files_are_found_from_another_working_directory_too) {
    const auto parsed = parse_address("rediss", "//h?ca=a.crt&cert=b.crt&key=/c.key");
    const auto here = std::filesystem::current_path();
    EXPECT_EQ(parsed.connection.tls->ca_file, here / "a.crt");
    EXPECT_EQ(parsed.connection.tls->certificate_file, here / "b.crt");
    EXPECT_EQ(parsed.connection.tls->key_file, "/c.key");
}

TEST_F(address_parsing, two_passwords_or_two_users_are_refused) {
    EXPECT_NE(refusal("redis", "//:a@h?password_env=HOME").find("more than one way"),
              std::string::npos);
    EXPECT_NE(refusal("redis", "//ann@h?user=eve").find("twice"), std::string::npos);
}

TEST_F(address_parsing, what_is_wrong_is_said_with_what_to_write_instead) {
    EXPECT_NE(refusal("redis", "h:1").find("redis://host:port"), std::string::npos);
    EXPECT_NE(refusal("redis", "//").find("host is missing"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h:0").find("1 to 65535"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h:66000").find("1 to 65535"), std::string::npos);
    EXPECT_NE(refusal("redis", "//::1").find("[address]:port"), std::string::npos);
    EXPECT_NE(refusal("redis", "//[::1").find("\"]\" is missing"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h/x").find("database"), std::string::npos);
    EXPECT_NE(refusal("redis", "//a,b").find("redis+cluster"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h?colour=red").find("\"colour\" is not known"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h?prefix=a&prefix=b").find("given twice"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h?ca=/x").find("rediss"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h?sharded=on").find("redis+cluster:// only"), std::string::npos);
    EXPECT_NE(refusal("rediss", "//h?key=/x").find("cert"), std::string::npos);
    EXPECT_NE(refusal("rediss", "//h?verify=maybe").find("yes or no"), std::string::npos);
    EXPECT_NE(refusal("redis", "//h?connect_timeout=0").find("1 to 600000"), std::string::npos);
    EXPECT_NE(refusal("redis+sentinel", "//h").find("service"), std::string::npos);
    EXPECT_NE(refusal("redis+unix", "//").find("path is missing"), std::string::npos);
    EXPECT_NE(refusal("redisx", "//h").find("not known"), std::string::npos);
}

TEST_F(address_parsing, the_identity_says_where_the_locks_are_and_nothing_else) {
    const auto identity = [](std::string_view scheme, std::string_view rest) {
        return parse_address(scheme, rest).identity;
    };
    const auto plain = identity("redis", "//h");
    EXPECT_EQ(identity("redis", "//ann:secret@H:6379/0?connect_timeout=5&fenced=redisson"), plain);
    for (const auto* const other : {"//h:1", "//g", "//h/1", "//h?prefix=a", "//h?prefix=b",
                                    "//h/1?prefix=a", "//h?prefix=1/a"}) {
        EXPECT_NE(identity("redis", other), plain) << other;
    }
    EXPECT_NE(identity("redis", "//h?prefix=a"), identity("redis", "//h?prefix=b"));
    EXPECT_NE(identity("redis", "//h/1?prefix=a"), identity("redis", "//h?prefix=1/a"));
    EXPECT_EQ(identity("redis+cluster", "//a,b?sharded=on"), identity("redis+cluster", "//b,a"));
    EXPECT_NE(identity("redis+sentinel", "//a/s/1"), identity("redis+sentinel", "//a/s%2F1"));
    EXPECT_NE(identity("redis+unix", "///a/B"), identity("redis+unix", "///a/b"));
}

TEST_F(address_parsing, stores_that_differ_in_their_prefix_are_shown_with_it) {
    const auto shown = [](std::string_view scheme, std::string_view rest) {
        return parse_address(scheme, rest).text;
    };
    EXPECT_EQ(shown("redis", "//h/?prefix="), "redis://h:6379");
    EXPECT_EQ(shown("redis", "//u:secret@h?prefix=team1:"), "redis://h:6379?prefix=team1:");
    EXPECT_EQ(shown("redis+unix", "///s?prefix=a&database=2"), "redis+unix:///s?database=2&prefix=a");
    EXPECT_EQ(shown("redis+unix", "///s?prefix=a"), "redis+unix:///s?prefix=a");
    EXPECT_EQ(shown("rediss+sentinel", "//a,b/s/1?prefix=a"),
              "rediss+sentinel://a:26379,b:26379/s/1?prefix=a");
    EXPECT_EQ(shown("redis+cluster", "//a,b?prefix=a&sharded=on"),
              "redis+cluster://a:6379,b:6379?prefix=a");
    // What is shown is an address of the same store.
    const auto odd = parse_address("redis", "//h?prefix=a%20b%3f%26c%25%40%23%22{d}/é:");
    EXPECT_EQ(odd.text, "redis://h:6379?prefix=a%20b%3F%26c%25%40%23%22{d}/é:");
    EXPECT_EQ(parse_address("redis", std::string_view{odd.text}.substr(6)).identity, odd.identity);
}

TEST_F(address_parsing, a_prefix_has_the_rules_of_names) {
    const auto with_prefix = [](const std::string& text) { return "//h?prefix=" + text; };
    const auto longest = with_prefix(std::string(256, 'x'));
    EXPECT_EQ(parse_address("redis", longest).prefix.size(), 256U);
    EXPECT_NE(refusal("redis", longest + "x").find("\"prefix\" has 257 bytes; at most 256 are allowed"),
              std::string::npos);
    for (const auto* const text : {"a%00b", "%0a", "a%7f", "%1b[2J", "%c2%85"}) {
        EXPECT_NE(refusal("redis", with_prefix(text)).find("\"prefix\" holds a control character"),
                  std::string::npos)
            << text;
    }
    for (const auto* const text : {"%ff", "a%c3", "%ed%a0%80"}) {
        EXPECT_NE(refusal("redis", with_prefix(text)).find("\"prefix\" is not UTF-8"),
                  std::string::npos)
            << text;
    }
}

TEST_F(address_parsing, what_can_be_said_without_opening_reads_no_password) {
    const auto rest = "//h?password_file=/nowhere";
    EXPECT_EQ(parse_address("redis", rest, passwords::ignored).text, "redis://h:6379");
    EXPECT_NE(refusal("redis", rest), "");
}

TEST_F(address_parsing, no_refusal_repeats_a_password) {
    for (const auto* const rest :
         {"//ann:hunter2@h:0", "//ann:hunter2@", "//ann:hunter2/x@h", "//ann:x/hunter2@h",
          "//:hunter2?y@h", "//:y?hunter2@h", "//:y?hunter2=z@h", "//:hunter2#@h", "//:hunter2%zz@h",
          "//:hunter2@h/bad", "//:hunter2@h?colour=red", "//:hunter2@a,b", "ann:hunter2@h",
          "//ann:x:hunter2/@h"}) {
        const std::string words = refusal("redis", rest);
        EXPECT_NE(words, "") << rest;
        EXPECT_EQ(words.find("hunter2"), std::string::npos) << words;
    }
}

}  // namespace

}  // namespace holdfast::engines::redis::test
