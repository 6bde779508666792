#include <gmock/gmock.h>

#include <support/redis_servers.hpp>

#include "fixture.hpp"

/// `run NAME` and `run NAME --shared` exclude each other on Redis, which keeps the two in layouts of
/// their own.
namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class kinds : public cli_test {
protected:
    [[nodiscard]] program_options on_server(std::map<std::string, std::string> more = {}) const {
        more.emplace("HOLDFAST_STORE", "redis://127.0.0.1:" + std::to_string(server_.port()));
        return {.environment = std::move(more)};
    }
    [[nodiscard]] std::unique_ptr<program> holder(const words& options) const {
        auto started =
            start(run_script("job", options, "echo holding; read line; exit 0"), on_server());
        started->wait_for_output("holding");
        return started;
    }
    [[nodiscard]] std::unique_ptr<program> waiter(const words& options) const {
        return start(run_script("job", options, "echo mine"), on_server());
    }
    /// Until so many programs wait for the lock, as `inspect` tells.
    void wait_for_waiters_here(std::int64_t count) const {
        wait_until("waiters", [&] {
            const auto asked = finish({"inspect", "job", "--json"}, on_server());
            const auto lock = parse(asked->output());
            const auto* waiters = lock.if_contains("waiters");
            return waiters != nullptr && waiters->to_number<std::int64_t>() == count;
        });
    }
    [[nodiscard]] std::string script(const std::string& text) const {
        return "D=" + file("").string() + "; " + text;
    }

    testing_support::redis_server server_;
};

TEST_F(kinds, a_writer_waits_for_readers_and_readers_for_the_writer) {
    const auto first_reader = holder({"--shared"});
    const auto second_reader = holder({"--shared"});
    EXPECT_EQ(finish(run_script("job", {"--no-wait"}, "true"), on_server())->wait(), 75);
    const auto writer = waiter({});
    wait_for_waiters_here(1);
    first_reader->close_input();
    EXPECT_EQ(first_reader->wait(), 0);
    EXPECT_EQ(writer->output(), "");
    second_reader->close_input();
    EXPECT_EQ(writer->wait(), 0);
    EXPECT_EQ(writer->output(), "mine\n");

    const auto plain = holder({});
    EXPECT_EQ(finish(run_script("job", {"--shared", "--no-wait"}, "true"), on_server())->wait(), 75);
    EXPECT_EQ(finish(run_script("job", {"--shared", "--wait", "100ms"}, "true"), on_server())->wait(),
              75);
    const auto reader = waiter({"--shared"});
    const auto other_writer = waiter({});
    wait_for_waiters_here(2);
    EXPECT_EQ(reader->output() + other_writer->output(), "");
    plain->close_input();
    EXPECT_EQ(reader->wait(), 0);
    EXPECT_EQ(other_writer->wait(), 0);
}

TEST_F(kinds, that_run_waits_for_are_no_trouble_to_report) {
    const auto reader = holder({"--shared"});
    const auto writer = waiter({"--verbose"});
    wait_for_waiters_here(1);
    reader->close_input();
    EXPECT_EQ(writer->wait(), 0);
    EXPECT_THAT(writer->errors(), HasSubstr("\"job\" acquired\n"));
    EXPECT_THAT(writer->errors(), Not(HasSubstr("not_acquired")));
}

/// Writers that wait for each other hand the lock over when they release it, and seldom leave it free.
TEST_F(kinds, a_reader_gets_its_turn_among_writers_that_never_pause) {
    std::vector<std::unique_ptr<program>> writers;
    const auto loop = script("while [ ! -e $D/read ]; do " + program_path() +
                             " run job -- sh -c \"echo x >> $D/written; sleep 0.02\"; done");
    for (int count = 0; count < 3; ++count) {
        writers.push_back(std::make_unique<program>(words{"sh", "-c", loop}, on_server()));
    }
    wait_until("writers", [&] { return read_file(file("written")).size() > 8; });
    const auto reader = start(run_script("job", {"--shared"}, script("echo > $D/read")), on_server());
    EXPECT_EQ(reader->wait(), 0);
    for (const auto& each : writers) {
        EXPECT_EQ(each->wait(), 0);
    }
}

TEST_F(kinds, of_both_sorts_never_overlap) {
    const auto write = script(
        "[ -z \"$(ls $D/in)\" ] || echo clash >> $D/clash; echo > $D/in/w$$; sleep 0.01; "
        "[ \"$(ls $D/in)\" = w$$ ] || echo clash >> $D/clash; rm $D/in/w$$");
    const auto read = script(
        "echo > $D/in/r$$; sleep 0.01; ls $D/in | grep -q w && echo clash >> $D/clash; rm $D/in/r$$");
    std::filesystem::create_directory(file("in"));
    std::vector<std::unique_ptr<program>> all;
    for (int count = 0; count < 4; ++count) {
        for (int turn = 0; turn < 5; ++turn) {
            const bool shared = (count + turn) % 2 == 0;
            all.push_back(
                start(run_script("job", shared ? words{"--shared"} : words{}, shared ? read : write),
                      on_server()));
        }
    }
    for (const auto& each : all) {
        EXPECT_EQ(each->wait(), 0) << each->errors();
    }
    EXPECT_FALSE(std::filesystem::exists(file("clash")));
}

TEST_F(kinds, a_reader_waits_for_a_lock_of_redisson) {
    server_.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    server_.cli({"PEXPIRE", "job", "60000"});
    const auto reader = waiter({"--shared"});
    wait_for_waiters_here(1);
    EXPECT_EQ(reader->output(), "");
    server_.cli({"DEL", "job"});
    server_.cli({"PUBLISH", "redisson_lock__channel:{job}", "0"});
    EXPECT_EQ(reader->wait(), 0);
}

TEST_F(kinds, what_is_no_lock_is_refused_at_once) {
    server_.cli({"SET", "job", "3"});
    server_.cli({"HSET", "other", "colour", "blue", "size", "9"});
    EXPECT_EQ(finish(run_script("job", {}, "true"), on_server())->wait(), 78);
    EXPECT_EQ(finish(run_script("job", {"--shared"}, "true"), on_server())->wait(), 78);
    EXPECT_EQ(finish(run_script("other", {"--shared"}, "true"), on_server())->wait(), 78);
}

TEST_F(kinds, what_is_no_lock_is_not_to_be_used_in_the_same_way) {
    server_.cli({"XADD", "stream", "*", "a", "b"});
    server_.cli({"RPUSH", "list", "a"});
    server_.cli({"HSET", "hash", "colour", "blue"});
    for (const std::string name : {"stream", "list", "hash"}) {
        for (const auto& options : {words{}, words{"--shared"}}) {
            const auto refused = finish(run_script(name, options, "true"), on_server());
            EXPECT_EQ(refused->wait(), 78);
            EXPECT_THAT(refused->errors(), HasSubstr("; take another name, or remove it"));
            EXPECT_THAT(refused->errors(), Not(HasSubstr("inspect")));
        }
    }
    const auto as_permits = finish(run_script("list", {"--permits", "2"}, "true"), on_server());
    EXPECT_THAT(as_permits->errors(), HasSubstr("; take another name, or remove it"));
    server_.cli({"HSET", "half", "mode", "read", "colour", "blue"});
    const auto as_lock = finish(run_script("half", {}, "true"), on_server());
    EXPECT_THAT(as_lock->errors(),
                HasSubstr("its hash has other fields; take another name, or remove"));
    // These may be locks of another kind, or not.
    server_.cli({"SET", "text", "x"});
    const std::string else_advice{
        "if holdfast inspect shows one, use it in the same way; else take another name, or remove it"};
    EXPECT_THAT(finish(run_script("text", {}, "true"), on_server())->errors(), HasSubstr(else_advice));
    EXPECT_THAT(finish(run_script("hash", {"--permits", "2"}, "true"), on_server())->errors(),
                HasSubstr(else_advice));
    // This is one.
    const auto semaphore = holder({"--permits", "3"});
    EXPECT_THAT(finish(run_script("job", {"--permits", "2"}, "true"), on_server())->errors(),
                HasSubstr("; use it in the same way, which holdfast inspect shows"));
}

}  // namespace
}  // namespace holdfast::cli::testing
