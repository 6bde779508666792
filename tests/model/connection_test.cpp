#include <redis/net/connection.hpp>
#include <threading/primitives.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "redis_server.hpp"
#include "timer.hpp"
#include "waiting_test.hpp"

/// Who reads for all who share a connection: as long as somebody waits for an answer, somebody reads.
namespace holdfast::engines::redis {

namespace {

using model::expect_refuted;
using model::expect_sound;

/// A connection that is up, to a server that answers.
class stage {
public:
    stage() {
        model::begin_time();
        server_.emplace();
        connection_.emplace(node_address{"server", 6379, {}}, connection_settings{},
                            std::vector<std::vector<std::string>>{}, connection::events{});
        const auto failed = connection_->connect(clock::now() + std::chrono::seconds{2});
        model::require(!failed, "it connects");
    }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() {
        connection_.reset();
        server_.reset();
    }

    void ask(caller from, std::function<void(connection::result)> done) {
        connection_->send(
            [](std::string& out, const server_facts&) {
                out += "PING\r\n";
                return connection::expected{.wanted = 1};
            },
            {clock::now() + std::chrono::seconds{2}, from}, std::move(done));
    }
    /// Asks, and waits for the answer.
    void ask() {
        bool answered = false;
        ask(caller::may_block, [&](const connection::result& result) {
            answered = !result.error && result.replies.size() == 1;
        });
        model::require(answered, "the answer is there when the call returns");
    }
    [[nodiscard]] model::redis_server& server() { return *server_; }

private:
    std::optional<model::redis_server> server_;
    std::optional<connection> connection_;
};

void callers(std::size_t count) {
    stage on;
    std::vector<threading::thread> others;
    for (std::size_t each = 1; each < count; ++each) {
        others.emplace_back([&] { on.ask(); });
    }
    on.ask();
    for (auto& each : others) {
        each.join();
    }
}

void two_callers() {
    callers(2);
}

void three_callers() {
    callers(3);
}

/// One does not wait: the background reads for it, unless a caller does.
void one_caller_and_one_that_does_not_wait() {
    stage on;
    threading::atomic<bool> answered{false};
    threading::thread other{[&] {
        on.ask(caller::must_not_block, [&](const connection::result& result) {
            model::require(!result.error, "it is answered");
            answered.store(true);
        });
    }};
    on.ask();
    other.join();
    answered.wait(false);
}

/// Whoever reads is told when the connection breaks, and so are those who sleep.
void the_server_hangs_up_on_two_callers() {
    stage on;
    on.server().hang_up_after(1);
    int ended = 0;
    const auto ask = [&] { on.ask(caller::may_block, [&](const connection::result&) { ++ended; }); };
    threading::thread other{ask};
    ask();
    other.join();
    model::require(ended == 2, "both calls end");
}

TEST(model_connection, whoever_asks_together_with_others_is_answered) {
    expect_sound(two_callers, {.preemptions = 1});
    expect_sound(three_callers, {.preemptions = 0});
}

TEST(model_connection, one_that_does_not_wait_is_answered_beside_one_that_does) {
    expect_sound(one_caller_and_one_that_does_not_wait, {.preemptions = 1});
}

TEST(model_connection, everybody_hears_of_a_broken_connection) {
    expect_sound(the_server_hangs_up_on_two_callers, {.preemptions = 1});
}

TEST(model_connection, a_reader_that_passes_its_part_on_to_nobody_is_found) {
    expect_refuted("nobody reads on", two_callers, {.preemptions = 1});
}

TEST(model_connection, a_background_that_is_not_told_to_read_is_found) {
    expect_refuted("the background is not told to read", one_caller_and_one_that_does_not_wait,
                   {.preemptions = 1});
}

}  // namespace

}  // namespace holdfast::engines::redis
