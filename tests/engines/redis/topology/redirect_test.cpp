#include <gtest/gtest.h>

#include <array>
#include <engines/redis/topology/replies.hpp>
#include <redis/topology/redirect.hpp>

namespace holdfast::engines::redis {
namespace {

const node_address here = at("10.0.0.9", 7000);

std::string command(std::vector<std::string_view> words) {
    std::string out;
    append_command(out, words);
    return out;
}

TEST(redis_redirect, moved_names_slot_and_server) {
    const auto found = read_redirect(error("MOVED 3999 10.0.0.5:6381"), here);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->type, redirect::kind::moved);
    EXPECT_EQ(found->slot, 3999);
    EXPECT_EQ(found->server, at("10.0.0.5", 6381));
}

TEST(redis_redirect, ask_names_slot_and_server) {
    const auto found = read_redirect(error("ASK 0 a.example:6381"), here);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->type, redirect::kind::ask);
    EXPECT_EQ(found->server, at("a.example", 6381));
}

TEST(redis_redirect, an_ipv6_address_keeps_its_colons) {
    const auto found = read_redirect(error("MOVED 1 fe80::1:6381"), here);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->server, at("fe80::1", 6381));
}

TEST(redis_redirect, without_a_host_it_is_the_one_that_was_asked) {
    const auto found = read_redirect(error("MOVED 1 :6381"), here);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->server, at("10.0.0.9", 6381));
}

TEST(redis_redirect, other_answers_lead_nowhere) {
    EXPECT_FALSE(read_redirect(text("MOVED 1 10.0.0.5:6381"), here));
    EXPECT_FALSE(read_redirect(error("ERR no"), here));
    EXPECT_FALSE(read_redirect(error("MOVED"), here));
    EXPECT_FALSE(read_redirect(error("MOVED 1"), here));
    EXPECT_FALSE(read_redirect(error("MOVED x 10.0.0.5:6381"), here));
    EXPECT_FALSE(read_redirect(error("MOVED 1 10.0.0.5:70000"), here));
    EXPECT_FALSE(read_redirect(error("MOVED 1 ?:6381"), here));
}

TEST(redis_redirect, asking_comes_before_each_command) {
    const auto plain = command({"EVALSHA", "x", "0", "*3\r\n$1\r\n"}) + command({"WAIT", "1", "10"});
    std::string out;
    EXPECT_EQ(append_with_asking(out, plain), 4U);
    EXPECT_EQ(out, command({"ASKING"}) + command({"EVALSHA", "x", "0", "*3\r\n$1\r\n"}) +
                       command({"ASKING"}) + command({"WAIT", "1", "10"}));
}

TEST(redis_redirect, what_was_only_to_go_ahead_stays_behind) {
    const auto plain = command({"PING"}) + command({"EVALSHA", "x", "0"});
    std::string out;
    EXPECT_EQ(append_with_asking(out, plain, 1), 2U);
    EXPECT_EQ(out, command({"ASKING"}) + command({"EVALSHA", "x", "0"}));
}

TEST(redis_redirect, what_is_no_command_is_refused) {
    std::string out;
    EXPECT_FALSE(append_with_asking(out, "PING\r\n"));
    EXPECT_FALSE(append_with_asking(out, "*1\r\n$4\r\nPI"));
    EXPECT_FALSE(append_with_asking(out, "*1\r\n$99999999999999999999\r\nPING\r\n"));
    EXPECT_FALSE(append_with_asking(out, "*2\r\n$4\r\nPING\r\n"));
}

TEST(redis_redirect, the_answers_to_asking_are_dropped) {
    std::vector<value> replies{text("OK"), number(1), text("OK"), number(2)};
    drop_asking(replies);
    ASSERT_EQ(replies.size(), 2U);
    EXPECT_EQ(replies[0].integer, 1);
    EXPECT_EQ(replies[1].integer, 2);
}

TEST(redis_redirect, a_refusal_of_asking_is_why_the_command_was_sent_elsewhere) {
    const auto refused = error("NOPERM this user has no permissions to run the 'asking' command");
    std::vector<value> replies{refused, error("MOVED 7 10.0.0.5:6381"), refused, number(2)};
    drop_asking(replies);
    ASSERT_EQ(replies.size(), 2U);
    EXPECT_EQ(replies[0].error_code(), "NOPERM");
    EXPECT_EQ(replies[1].integer, 2) << "it was executed: the slot had arrived by then";
}

TEST(redis_redirect, what_cannot_be_done_now_is_unavailable) {
    for (const auto* words : {"CLUSTERDOWN x", "LOADING x", "MASTERDOWN x", "READONLY x"}) {
        EXPECT_EQ(not_now(error(words)).code, errc::store_unavailable) << words;
    }
    EXPECT_FALSE(not_now(error("TRYAGAIN x"))) << "a request with one key may be answered";
    EXPECT_FALSE(not_now(error("OOM x")));
    EXPECT_FALSE(not_now(error("ERR x")));
    EXPECT_FALSE(not_now(text("READONLY x")));
}

TEST(redis_redirect, a_script_of_an_old_server_tells_of_a_replica_in_other_words) {
    const auto old = error(
        "ERR Error running script (call to f_1): @user_script:1: "
        "@user_script: 1: -READONLY You can't write against a read only replica.");
    EXPECT_EQ(not_now(old).code, errc::store_unavailable);
}

}  // namespace
}  // namespace holdfast::engines::redis
