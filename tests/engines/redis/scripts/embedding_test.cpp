#include <set>

#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class embedded_scripts : public script_test {};

TEST_F(embedded_scripts, the_server_gives_them_the_same_names) {
    for (const auto& one : scripts::all()) {
        EXPECT_EQ(text({"SCRIPT", "LOAD", std::string{one.text}}), one.sha) << one.name;
    }
}

TEST_F(embedded_scripts, each_is_what_its_function_returns) {
    EXPECT_EQ(scripts::all().size(), 19U);
    EXPECT_EQ(scripts::lock_acquire().name, "lock_acquire");
    EXPECT_EQ(scripts::lock_acquire_all().name, "lock_acquire_all");
    EXPECT_EQ(scripts::lock_release().name, "lock_release");
    EXPECT_EQ(scripts::lock_renew().name, "lock_renew");
    EXPECT_EQ(scripts::fair_acquire().name, "fair_acquire");
    EXPECT_EQ(scripts::fair_release().name, "fair_release");
    EXPECT_EQ(scripts::read_acquire().name, "read_acquire");
    EXPECT_EQ(scripts::read_renew().name, "read_renew");
    EXPECT_EQ(scripts::write_acquire().name, "write_acquire");
    EXPECT_EQ(scripts::read_write_release().name, "read_write_release");
    EXPECT_EQ(scripts::permit_acquire().name, "permit_acquire");
    EXPECT_EQ(scripts::permit_release().name, "permit_release");
    EXPECT_EQ(scripts::permit_renew().name, "permit_renew");
    EXPECT_EQ(scripts::moving_extend().name, "moving_extend");
    EXPECT_EQ(scripts::moving_release().name, "moving_release");
    EXPECT_EQ(scripts::moving_permits().name, "moving_permits");
    EXPECT_EQ(scripts::latch().name, "latch");
    EXPECT_EQ(scripts::revoke().name, "revoke");
    EXPECT_EQ(scripts::inspect().name, "inspect");
}

TEST_F(embedded_scripts, no_two_are_the_same) {
    std::set<std::string> names;
    for (const auto& one : scripts::all()) {
        EXPECT_TRUE(names.insert(one.sha).second) << one.name;
    }
}

/// A server makes all functions of a script anew each time it runs.
TEST_F(embedded_scripts, nothing_is_defined_that_is_not_used) {
    const std::string definition = "\nlocal function ";
    for (const auto& one : scripts::all()) {
        const std::string all{one.text};
        for (auto at = all.find(definition); at != std::string::npos;
             at = all.find(definition, at + 1)) {
            const auto start = at + definition.size();
            const auto name = all.substr(start, all.find('(', start) - start);
            const auto first = all.find(name);
            EXPECT_NE(all.find(name, first + 1), std::string::npos) << one.name << ": " << name;
        }
    }
}

TEST_F(embedded_scripts, no_line_for_the_embedding_is_left) {
    for (const auto& one : scripts::all()) {
        EXPECT_EQ(one.text.find("-- include:"), std::string_view::npos) << one.name;
        EXPECT_NE(one.text.find("-- KEYS "), std::string_view::npos) << one.name;
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
