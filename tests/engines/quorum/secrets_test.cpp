#include <gtest/gtest.h>

#include <string>
#include <system_error>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/quorum.hpp>

/// Whatever is wrong with an address, nothing that is said about it repeats a password in it.
namespace holdfast::testing {
namespace {

const std::string secret = "hunter2";

/// What an attempt to open it says; empty when it was opened.
[[nodiscard]] std::string said_about(const std::string& address) {
    try {
        const client opened{address};
        return opened.store();
    } catch (const std::system_error& error) {
        return std::string{error.what()} + error.code().message();
    }
}

[[nodiscard]] std::string said_about(const quorum& stores) {
    try {
        const client opened{stores};
        return opened.store();
    } catch (const std::system_error& error) {
        return error.what();
    }
}

[[nodiscard]] std::vector<std::string> addresses_with_a_secret() {
    const std::vector<std::string> schemes{
        "redis:",          "rediss:",         "redis+unix:", "redis+sentinel:", "rediss+sentinel:",
        "redis+cluster:",  "rediss+cluster:", "redisx:",     "postgres:",       "",
        "redis+nonsense:", "REDIS:"};
    const std::vector<std::string> slashes{"//", "/", "", "///"};
    const std::vector<std::string> logins{
        "ann:S@", ":S@",      "ann:S",   ":S",       "ann:pa/S@", "ann:S/x@",  "ann:pa?S@",
        ":S?x@",  ":pa?S=x@", ":pa#S@",  ":S#@",     ":pa%zzS@",  ":S%zz@",    "ann:pa S@",
        ":S x@",  ":a b:S@",  ":a S:b@", "ann:a:S@", "ann:S:b@",  "ann:pa@S@", ":p/a?S#@"};
    const std::vector<std::string> rests{"127.0.0.1:0",  "",    "127.0.0.1:1:2",
                                         "[::1",         "h/x", "h?colour",
                                         "h?colour=red", "a,b", "h?prefix=a&prefix=b"};
    std::vector<std::string> all;
    for (const auto& scheme : schemes) {
        for (const auto& slash : slashes) {
            for (auto login : logins) {
                login.replace(login.find('S'), 1, secret);
                // That is the path of a socket, whatever it looks like.
                const bool path =
                    scheme == "redis+unix:" && slash == "///" && login.find('@') == std::string::npos;
                for (const auto& rest : rests) {
                    if (!path) {
                        all.push_back(scheme + slash + login + rest);
                    }
                }
            }
        }
    }
    for (const std::string option :
         {"password", "password_file", "password_env", "sentinel_password_env"}) {
        all.push_back("redis://127.0.0.1:1?" + option + "=" + secret);
        all.push_back("redis+sentinel://127.0.0.1:1/main?" + option + "=" + secret);
    }
    all.push_back("redis://127.0.0.1:1?" + secret);
    return all;
}

TEST(secrets, no_error_about_an_address_repeats_a_password_in_it) {
    std::size_t refused = 0;
    for (const auto& address : addresses_with_a_secret()) {
        const auto summary = engines::summarise_address(address);
        EXPECT_EQ(summary.shown.find(secret), std::string::npos) << address << ": " << summary.shown;
        if (summary.identity != address) {
            // It is in order but for its password, and opening it would look for a server.
            const auto& said = summary.shown;
            EXPECT_EQ(said.find(secret), std::string::npos) << address << ": " << said;
            continue;
        }
        ++refused;
        const auto said = said_about(address);
        EXPECT_NE(said, "");
        EXPECT_EQ(said.find(secret), std::string::npos) << address << ": " << said;
    }
    EXPECT_GT(refused, 1000U);
}

TEST(secrets, no_error_about_a_quorum_repeats_a_password_of_a_member) {
    const auto all = addresses_with_a_secret();
    // A part of them, in which everything occurs, to save time.
    for (std::size_t number = 0; number < all.size(); number += 5) {
        const auto& address = all[number];
        if (engines::summarise_address(address).identity != address) {
            continue;
        }
        for (const auto& text :
             {"quorum:" + address + " memory:b memory:c", "quorum:memory:b " + address + " memory:c",
              "quorum:" + address, "quorum:?drift=1s&" + address + " memory:b"}) {
            const auto said = said_about(text);
            EXPECT_EQ(said.find(secret), std::string::npos) << text << ": " << said;
        }
        const auto said = said_about(quorum{.stores = {"memory:b", "memory:c", address}});
        EXPECT_EQ(said.find(secret), std::string::npos) << address << ": " << said;
        const auto twice = said_about(quorum{.stores = {address, "memory:c", address}});
        EXPECT_EQ(twice.find(secret), std::string::npos) << address << ": " << twice;
    }
}

TEST(secrets, a_member_that_cannot_be_reached_is_named_without_its_password) {
    const auto login = "redis://ann:" + secret + "@127.0.0.1:1";
    const auto said = said_about("quorum:" + login + " " + login + "?prefix=x memory:b");
    EXPECT_NE(said.find("127.0.0.1:1"), std::string::npos) << said;
    EXPECT_EQ(said.find(secret), std::string::npos) << said;
}

}  // namespace
}  // namespace holdfast::testing
