#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>
#include <support/redis_servers.hpp>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using testing_support::redis_server;
namespace json = boost::json;

/// docs/json.md: for every object its fields, and whether they are always there.
class documentation {
public:
    documentation() {
        std::istringstream lines{
            read_file(std::filesystem::path{HOLDFAST_SOURCE_DIR} / "docs/json.md")};
        std::string title;
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("#")) {
                title = line.substr(line.find(' ') + 1);
            } else if (line.starts_with("| `")) {
                const auto end = line.find('`', 3);
                fields_[title][line.substr(3, end - 3)] =
                    line.substr(end + 1).starts_with(" | always |");
            }
        }
    }

    /// Expects that the object has what it must have, and nothing that is not documented.
    void expect(const json::object& object, const std::vector<std::string>& titles) {
        const auto text = json::serialize(object);
        std::set<std::string> allowed;
        for (const auto& title : titles) {
            ASSERT_TRUE(fields_.contains(title)) << title;
            for (const auto& [name, always] : fields_[title]) {
                EXPECT_TRUE(!always || object.contains(name)) << name << " is missing in " << text;
                if (object.contains(name)) {
                    seen_[title].insert(name);
                }
                allowed.insert(name);
            }
        }
        for (const auto& field : object) {
            EXPECT_TRUE(allowed.contains(field.key())) << field.key() << " is new in " << text;
            expect_inner(field.key(), field.value());
        }
    }

    /// Expects that every documented field was there at least once.
    void expect_all_seen() {
        for (const auto& [title, fields] : fields_) {
            for (const auto& [name, always] : fields) {
                // Only a cluster shows a list without some of its parts.
                if (title == "list" && (name == "error" || name == "message")) {
                    continue;
                }
                EXPECT_TRUE(seen_[title].contains(name)) << title << "." << name << " was never there";
            }
        }
    }

private:
    void expect_inner(const std::string& key, const json::value& value) {
        static const std::map<std::string, std::string> objects{
            {"store", "store"},     {"locks", "lock"},       {"holders", "holder"},
            {"held_by", "holder"},  {"holder", "holder"},    {"once_per", "holder"},
            {"command", "command"}, {"findings", "finding"}, {"last_revocation", "revocation"},
        };
        const auto inner = objects.find(key);
        if (inner == objects.end()) {
            EXPECT_TRUE(!value.is_object() && !value.is_array()) << key;
        } else if (const auto* object = value.if_object()) {
            expect(*object, {inner->second});
        } else if (const auto* array = value.if_array()) {
            for (const auto& each : *array) {
                expect(each.as_object(), {inner->second});
            }
        }
    }

    std::map<std::string, std::map<std::string, bool>> fields_;
    std::map<std::string, std::set<std::string>> seen_;
};

class json_output : public cli_test {
protected:
    /// What `holdfast run` with `--json` says last.
    [[nodiscard]] json::object run(const words& options, const std::string& script) const {
        auto arguments = run_script("job", options, script);
        arguments.insert(arguments.begin() + 2, "--json");
        return parse(finish(arguments)->last_error_line());
    }
    [[nodiscard]] std::string on_server() const {
        return "redis://127.0.0.1:" + std::to_string(server_.port());
    }
    [[nodiscard]] json::object ask(const words& arguments) const {
        auto all = arguments;
        all.emplace_back("--json");
        return parse(finish(all)->output());
    }

    testing_support::redis_server server_;
};

TEST_F(json_output, has_exactly_the_documented_fields) {
    documentation documented;
    // run
    documented.expect(run({"--once-per", "1h"}, "true"), {"run"});
    documented.expect(run({"--once-per", "1h"}, "true"), {"run"});
    documented.expect(ask({"inspect", "job"}), {"inspect", "lock"});
    documented.expect(run({}, "kill -9 $$"), {"run"});
    documented.expect(run({"--on-lost", "ignore"}, program_path() + " release job --force"), {"run"});
    documented.expect(ask({"inspect", "job"}), {"inspect", "lock"});
    documented.expect(run({"--store", "nosuch:x"}, "true"), {"run"});
    documented.expect(
        parse(finish({"run", "job", "--json", "--", "/nonexistent/command"})->last_error_line()),
        {"run"});
    {
        const testing_support::redis_server dying;
        documented.expect(
            run({"--once-per", "1h", "--store", "redis://127.0.0.1:" + std::to_string(dying.port())},
                "kill -9 " + std::to_string(dying.pid())),
            {"run"});
    }
    {
        const auto holder = hold("job");
        documented.expect(run({"--no-wait"}, "true"), {"run"});
        documented.expect(ask({"release", "job"}), {"release"});
        documented.expect(ask({"release", "job", "--force"}), {"release"});
        documented.expect(ask({"release", "job", "--force"}), {"release"});
    }
    // the others
    const auto permit = hold("pool", {"--permits", "3"});
    const auto token = holder_of("pool").at("token").to_number<std::uint64_t>();
    documented.expect(ask({"list"}), {"list"});
    documented.expect(ask({"check", "pool", "--token", std::to_string(token)}), {"check"});
    documented.expect(ask({"check", "pool", "--token", std::to_string(token + 1)}), {"check"});
    documented.expect(ask({"doctor"}), {"doctor"});
    documented.expect(ask({"doctor", "--store", "redis://127.0.0.1:1"}), {"failure"});
    documented.expect(ask({"doctor", "--store", on_server()}), {"doctor"});
    server_.cli({"SET", "door", "2"});
    documented.expect(ask({"inspect", "door", "--store", on_server()}), {"inspect", "lock"});
    documented.expect(ask({"version"}), {"version"});
    documented.expect(ask({"help", "run"}), {"help"});
    documented.expect_all_seen();
}

TEST_F(json_output, of_every_outcome_is_as_documented_with_a_line_for_people_beside_it) {
    documentation documented;
    const redis_server safe{{.arguments = {"--appendonly", "yes"},
                             .acl = "user default on nopass ~* &* +@all\n"
                                    "user nobody on >secret ~* &* +@all -time\n"}};
    const auto on_safe = "redis://127.0.0.1:" + std::to_string(safe.port());
    const auto refused = "redis://nobody:secret@127.0.0.1:" + std::to_string(safe.port());
    const std::string gone{"redis://127.0.0.1:1"};
    safe.cli({"SET", "precious", "x"});
    safe.cli({"SET", "number", "3"});
    safe.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    safe.cli({"HSET", "taken", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    const std::string owner{"9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47"};
    struct outcome {
        int status;
        words titles;
        words arguments;
        std::string store;
    };
    const words failure{"failure"};
    const std::vector<outcome> outcomes{
        {0, {"list"}, {"list"}, on_safe},
        {0, {"list"}, {"list", "nothing"}, on_safe},
        {64, failure, {"list", "--bogus"}, on_safe},
        {69, failure, {"list"}, gone},
        {77, failure, {"list"}, refused},
        {78, failure, {"list"}, "nosuch:x"},
        {0, {"inspect", "lock"}, {"inspect", "job"}, on_safe},
        {0, {"inspect", "lock"}, {"inspect", "number"}, on_safe},
        {0, {"inspect", "lock"}, {"inspect", "nothing"}, on_safe},
        {64, failure, {"inspect"}, on_safe},
        {69, failure, {"inspect", "job"}, gone},
        {77, failure, {"inspect", "job"}, refused},
        {78, failure, {"inspect", "precious"}, on_safe},
        {0, {"release"}, {"release", "taken", "--force"}, on_safe},
        {64, failure, {"release"}, on_safe},
        {69, failure, {"release", "job"}, gone},
        {75, {"release"}, {"release", "job"}, on_safe},
        {75, {"release"}, {"release", "nothing"}, on_safe},
        {75, {"release"}, {"release", "number"}, on_safe},
        {75, {"release"}, {"release", "job", "--token", "5"}, on_safe},
        {77, failure, {"release", "job"}, refused},
        {78, failure, {"release", "precious"}, on_safe},
        {0, {"check"}, {"check", "job", "--owner", owner}, on_safe},
        {64, failure, {"check", "job"}, on_safe},
        {69, failure, {"check", "job", "--token", "1"}, gone},
        {76, {"check"}, {"check", "job", "--token", "1"}, on_safe},
        {77, failure, {"check", "job", "--token", "1"}, refused},
        {78, failure, {"check", "precious", "--token", "1"}, on_safe},
        {0, {"doctor"}, {"doctor"}, on_safe},
        {64, failure, {"doctor", "job"}, on_safe},
        {69, failure, {"doctor"}, gone},
        {77, failure, {"doctor"}, refused},
        {78, {"doctor"}, {"doctor"}, on_server()},
        {0, {"version"}, {"version"}, gone},
        {0, {"version"}, {"--version"}, gone},
        {0, {"help"}, {"help"}, gone},
        {0, {"help"}, {"--help"}, gone},
        {0, {"help"}, {"help", "list"}, gone},
        {0, {"help"}, {"list", "--help"}, gone},
        {64, failure, {"help", "nosuch"}, gone},
        {64, failure, {"nosuch"}, gone},
    };
    for (const auto& each : outcomes) {
        auto line = each.arguments;
        line.emplace_back("--json");
        SCOPED_TRACE(::testing::PrintToString(line) + " at " + each.store);
        const auto ran = finish(line, {.environment = {{"HOLDFAST_STORE", each.store}}});
        EXPECT_EQ(ran->wait(), each.status);
        const auto object = parse(ran->output());
        documented.expect(object, each.titles);
        EXPECT_EQ(object.at("status").as_int64(), each.status);
        if (each.status == 0) {
            EXPECT_EQ(ran->errors(), "");
        } else {
            EXPECT_THAT(ran->errors(), HasSubstr(std::string{object.at("message").as_string()}));
        }
    }
}

TEST_F(json_output, of_every_run_is_as_documented) {
    documentation documented;
    server_.cli({"SET", "precious", "x"});
    struct outcome {
        int status;
        std::string name;
        words line;
        std::string store;
    };
    const std::vector<outcome> outcomes{
        {0, "completed", {"job", "--", "true"}, on_server()},
        {3, "completed", {"job", "--", "sh", "-c", "exit 3"}, on_server()},
        {127, "not_started", {"job", "--", "/nonexistent/command"}, on_server()},
        {64, "failed", {"--", "true"}, on_server()},
        {64, "failed", {"job", "--ttl", "1s", "--grace", "20s", "--", "true"}, on_server()},
        {69, "failed", {"job", "--no-wait", "--", "true"}, "redis://127.0.0.1:1"},
        {77,
         "failed",
         {"job", "--", "true"},
         "redis://nobody:wrong@127.0.0.1:" + std::to_string(server_.port())},
        {78, "failed", {"job", "--", "true"}, "nosuch:x"},
        {78, "failed", {"precious", "--no-wait", "--", "true"}, on_server()},
    };
    for (const auto& each : outcomes) {
        words line{"run", "--json"};
        line.insert(line.end(), each.line.begin(), each.line.end());
        SCOPED_TRACE(::testing::PrintToString(line) + " at " + each.store);
        const auto ran = finish(line, {.environment = {{"HOLDFAST_STORE", each.store}}});
        EXPECT_EQ(ran->wait(), each.status) << ran->errors();
        EXPECT_EQ(ran->output(), "");
        const auto object = parse(ran->last_error_line());
        documented.expect(object, {"run"});
        EXPECT_EQ(object.at("status").as_int64(), each.status);
        EXPECT_EQ(object.at("outcome").as_string(), each.name);
        const bool sensible = each.status != 64;
        for (const auto* field : {"name", "store", "waited_ms", "held_ms"}) {
            EXPECT_EQ(object.contains(field), sensible) << field;
        }
    }
}

TEST_F(json_output, is_there_also_when_a_command_fails) {
    const std::vector<std::pair<int, words>> cases{
        {64, {"list", "--bogus"}},
        {64, {"inspect"}},
        {69, {"list", "--store", "redis://127.0.0.1:1"}},
        {69, {"inspect", "job", "--store", "redis://127.0.0.1:1"}},
        {69, {"release", "job", "--store", "redis://127.0.0.1:1"}},
        {69, {"check", "job", "--token", "1", "--store", "redis://127.0.0.1:1"}},
        {69, {"doctor", "--store", "redis://127.0.0.1:1"}},
        {77, {"list", "--store", "redis://nobody:wrong@127.0.0.1:" + std::to_string(server_.port())}},
        {78, {"list", "--store", "nosuch:x"}},
        {78, {"list", "--require", "fleet"}},
    };
    for (const auto& [status, arguments] : cases) {
        auto all = arguments;
        all.emplace_back("--json");
        const auto failed = finish(all);
        EXPECT_EQ(failed->wait(), status);
        const auto object = parse(failed->output());
        EXPECT_EQ(object.at("status").as_int64(), status);
        EXPECT_THAT(failed->errors(), HasSubstr(std::string{object.at("message").as_string()}));
    }
}

TEST_F(json_output, tells_how_long_a_wait_was_that_failed) {
    server_.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    server_.cli({"PEXPIRE", "job", "60000"});
    const auto begin = epoch_now();
    const auto waiter = start({"run", "job", "--json", "--store", on_server(), "--", "true"});
    wait_until("a waiter", [&] {
        const auto lock = ask({"inspect", "job", "--store", on_server()});
        return lock.at("waiters").to_number<int>() == 1;
    });
    const auto waiting = epoch_now();
    wait_until("some waiting", [&] { return epoch_now() >= waiting + 200; });
    server_.cli({"SET", "job", "not a lock"});
    EXPECT_EQ(waiter->wait(), 78);
    const auto object = parse(waiter->last_error_line());
    EXPECT_EQ(object.at("error").as_string(), "configuration");
    EXPECT_GE(object.at("waited_ms").as_int64(), 200);
    EXPECT_LE(object.at("waited_ms").as_int64(), epoch_now() - begin);
}

TEST_F(json_output, names_the_store_also_when_it_was_not_opened) {
    EXPECT_EQ(run({"--require", "fleet"}, "true").at("store").as_string(), store());
}

TEST_F(json_output, has_no_spaces_in_words_for_programs) {
    const auto lost = run({"--on-lost", "ignore"}, program_path() + " release job --force; sleep 0.1");
    EXPECT_EQ(lost.at("released").as_string(), "already_lost");
}

TEST_F(json_output, of_a_run_that_makes_no_sense_is_on_standard_error) {
    const auto failed = finish({"run", "job", "--json", "--bogus", "--", "true"});
    EXPECT_EQ(failed->wait(), 64);
    EXPECT_EQ(failed->output(), "");
    const auto object = parse(failed->errors());
    EXPECT_EQ(object.at("outcome").as_string(), "failed");
    EXPECT_EQ(object.at("error").as_string(), "usage");
}

TEST_F(json_output, after_the_separator_is_no_business_of_ours) {
    const auto failed = finish({"run", "job", "--bogus", "--", "true", "--json"});
    EXPECT_THAT(failed->errors(), ::testing::StartsWith("holdfast: "));
}

}  // namespace
}  // namespace holdfast::cli::testing
