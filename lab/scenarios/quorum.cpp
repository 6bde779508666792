#include <array>

#include "../naive/redlock.hpp"
#include "../resource.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Three servers that vote: one that forgets, and a holder that stands still.
namespace lab::scenarios {

namespace {

using holdfast::testing_support::data_files;

class three_servers {
public:
    [[nodiscard]] redis_server& number(std::size_t from_one) { return servers_.at(from_one - 1); }
    [[nodiscard]] std::vector<std::uint16_t> ports() const {
        return {servers_[0].port(), servers_[1].port(), servers_[2].port()};
    }
    [[nodiscard]] std::string address(const std::string& options = {}) const {
        auto text = "quorum:" + options;
        for (const auto port : ports()) {
            text += (text.back() == ':' ? "" : " ") + address_of(port);
        }
        return text;
    }
    /// INFO counts whole seconds.
    void wait_for_uptime(int seconds) {
        for (auto& each : servers_) {
            wait_until("the server's age",
                       [&] { return std::stoi(each.info("uptime_in_seconds")) >= seconds; });
        }
    }
    /// Which of those that run have the lock, from 1.
    [[nodiscard]] std::string with_lock() {
        std::string list;
        for (std::size_t index = 1; index <= servers_.size(); ++index) {
            if (number(index).running() && is_there(number(index), lock_name)) {
                list += (list.empty() ? "" : ", ") + std::to_string(index);
            }
        }
        return list;
    }
    [[nodiscard]] std::string ages() {
        return with_lock() + " has A's lock; 2 and 3 are " + number(2).info("uptime_in_seconds") +
               " s and " + number(3).info("uptime_in_seconds") + " s old and do not vote";
    }
    /// The third is away while A asks; then it is back, and the second has forgotten everything.
    void bring_back_third(story& told) {
        number(3).start_again(data_files::removed);
        told.tell("server 3", "is back");
    }
    void restart_second_empty(story& told) {
        number(2).kill_hard();
        number(2).start_again(data_files::removed);
        told.tell("server 2", "crashes, and is back without its data");
    }

private:
    std::array<redis_server, 3> servers_;
};

}  // namespace

ending restart_naive(story& told) {
    three_servers servers;
    naive::redlock a{servers.ports(), lock_name, "A"};
    naive::redlock b{servers.ports(), lock_name, "B"};
    told.begin();
    servers.number(3).kill_hard();
    told.tell("server 3", "is down for a moment");
    const bool a_is_in = a.try_lock(30s).has_value();
    told.tell("A",
              a_is_in ? "has the votes of " + a.votes() + ": takes the lock for 30 s" : "is refused");
    servers.bring_back_third(told);
    servers.restart_second_empty(told);
    const bool b_is_in = b.try_lock(30s).has_value();
    told.tell("B",
              b_is_in ? "has the votes of " + b.votes() + ": takes the lock for 30 s" : "is refused");
    return broken_if(a_is_in && b_is_in,
                     "server 2 voted twice: A and B have a majority each, and are both in");
}

ending restart_holdfast(story& told) {
    three_servers servers;
    // So that the servers may vote at all: they must be older than the grace.
    servers.wait_for_uptime(2);  // of which the first second is not believed
    const auto address = servers.address("?restart_grace=1s ");
    const holdfast::lease_options terms{.ttl = 900ms, .release_timeout = 100ms};
    holdfast::client of_a{address, {.request_timeout = 300ms}};
    holdfast::mutex a{of_a, lock_name, terms};
    told.begin();
    servers.number(3).kill_hard();
    told.tell("server 3", "is down for a moment");
    auto held_by_a = a.acquire();
    told.tell("A",
              "has the votes of " + servers.with_lock() + ": takes the lock for " + in_ms(terms.ttl),
              held_by_a.token());
    servers.bring_back_third(told);
    servers.restart_second_empty(told);
    holdfast::client of_b{address, {.request_timeout = 300ms}};
    bool b_is_in = false;
    std::string answer = "takes the lock";
    try {
        b_is_in = holdfast::mutex{of_b, lock_name, terms}.try_acquire().has_value();
        answer = b_is_in ? answer : "is refused: " + servers.ages();
    } catch (const std::system_error& error) {
        answer = error.what();
    }
    told.tell("B", answer);
    const auto since = told.now();
    return safe_if(!b_is_in && since < terms.ttl,
                   "a server younger than a ttl does not vote, so what it forgot does not matter");
}

void pause_naive_writer(script& lines) {
    redis_client store{lines.port()};
    naive::redlock lock{{static_cast<std::uint16_t>(std::stoi(lines.more(0))),
                         static_cast<std::uint16_t>(std::stoi(lines.more(1))),
                         static_cast<std::uint16_t>(std::stoi(lines.more(2)))},
                        lock_name,
                        lines.name()};
    const bool valid = lock.try_lock(400ms).has_value();
    lines.say(valid ? "has the votes of " + lock.votes() + ": valid for 400 ms" : "is refused");
    const auto stock = std::stoi(store.command({"GET", stock_name}).text);
    lines.say("reads stock " + std::to_string(stock) + ", checks: still valid; is about to write");
    lines.wait_for_cue();
    store.command({"SET", stock_name, std::to_string(stock - 1)});
    lines.say("goes on: sells one, writes stock " + std::to_string(stock - 1));
}

ending pause_naive(story& told) {
    three_servers servers;
    const redis_server database;
    database.cli({"SET", stock_name, "10"});
    std::vector<std::string> members;
    for (const auto port : servers.ports()) {
        members.push_back(std::to_string(port));
    }
    told.begin();
    actor a{database, "pause-naive-writer", "A", members};
    told.tell("A", a.hear().text);
    told.tell("A", a.hear().text);
    a.stop();
    told.tell("A", "stands still (SIGSTOP; or a collection of garbage, or a page fault)");
    naive::redlock b{servers.ports(), lock_name, "B"};
    wait_until("B's turn", [&] { return b.try_lock(30s).has_value(); });
    const int seen = plain_stock(database);
    told.tell("B", "has the votes of " + b.votes() + ", reads stock " + std::to_string(seen));
    database.cli({"SET", stock_name, std::to_string(seen - 3)});
    told.tell("B", "sells three, writes stock " + std::to_string(seen - 3));
    a.cue();
    a.go_on();
    told.tell("A", a.hear().text);
    const auto left = database.cli({"GET", stock_name});
    return broken_if(left == "9",
                     "four sold, the stock says " + left + " of 10; no number of servers helps");
}

void pause_holdfast_writer(script& lines) {
    fenced_stock stock{lines.port()};
    holdfast::client client{lines.more(0)};
    holdfast::mutex lock{client, lock_name, {.ttl = 400ms}};
    auto held = lock.acquire();
    const auto token = held.token();
    lines.say("has a majority: valid for 400 ms, to be renewed", token.value);
    const auto seen = stock.enter(token).value_or(0);
    held.check();
    lines.say("reads stock " + std::to_string(seen) + ", checks: still valid; is about to write",
              token.value);
    lines.wait_for_cue();
    const bool written = stock.write(token, seen - 1);
    lines.say(written ? "goes on: writes stock 9"
                      : "goes on: writes stock 9: refused, the token is too small",
              token.value);
    lines.say(held ? "still believes" : "looks at its lease: " + held.loss_reason().message());
}

ending pause_holdfast(story& told) {
    three_servers servers;
    const redis_server database;
    fenced_stock stock{database.port()};
    stock.fill(10);
    holdfast::client of_b{servers.address()};
    holdfast::mutex b{of_b, lock_name};
    told.begin();
    const auto hear = [&](actor& player) {
        const auto said = player.hear();
        told.tell("A", said.text, said.token);
        return said.text;
    };
    actor a{database, "pause-holdfast-writer", "A", {servers.address()}};
    hear(a);
    hear(a);
    a.stop();
    const auto stopped = told.now();
    told.tell("A", "stands still (SIGSTOP)");
    const auto held = b.acquire();
    const auto seen = stock.enter(held.token()).value_or(0);
    told.tell("B", "has a majority, shows its token, reads stock " + std::to_string(seen),
              held.token());
    const bool written = stock.write(held.token(), seen - 3);
    told.tell("B", written ? "sells three, writes stock 7" : "is refused", held.token());
    a.cue();
    a.go_on();
    const auto late = told.now() - stopped;
    hear(a);
    const auto belief = hear(a);
    return limit_if(stock.amount() == 7 && written && belief != "still believes",
                    "A stood still for " + in_ms(late) +
                        " after its last look, and no lock keeps it from writing then; the token "
                        "refused the late write");
}

}  // namespace lab::scenarios
