#include <mutex>

#include "../naive/local_inventory.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// Version 0: a lock that ends where the process ends.
namespace lab::scenarios {

namespace {

/// Lets an actor take its next step, and puts down what it says.
void step(story& told, const std::string& name, actor& player) {
    player.cue();
    const auto said = player.hear();
    told.tell(name, said.text, said.token);
}

void heard(story& told, const std::string& name, actor& player) {
    const auto said = player.hear();
    told.tell(name, said.text, said.token);
}

}  // namespace

void v0_naive_seller(script& lines) {
    redis_client store{lines.port()};
    naive::local_inventory shop{store};
    const bool sold = shop.sell_one([&] {
        lines.say("takes its own mutex, reads stock 1");
        lines.wait_for_cue();
    });
    store.command({"INCRBY", "sold", sold ? "1" : "0"});
    lines.say(sold ? "sells the last one, writes stock 0" : "reads stock 0: sold out");
}

ending v0_naive(story& told) {
    const redis_server server;
    server.cli({"SET", stock_name, "1"});
    told.begin();
    actor a{server, "v0-naive-seller", "A"};
    actor b{server, "v0-naive-seller", "B"};
    heard(told, "A", a);
    heard(told, "B", b);
    step(told, "A", a);
    step(told, "B", b);
    const auto sold = server.cli({"GET", "sold"});
    return broken_if(sold == "2", "1 in stock, " + sold + " sold: two processes, two mutexes");
}

void v0_holdfast_seller(script& lines) {
    redis_client store{lines.port()};
    holdfast::client client{address_of(lines.port())};
    holdfast::mutex turn{client, lock_name};
    lines.say("asks for the lock");
    const std::scoped_lock lock{turn};
    if (store.command({"GET", stock_name}).text == "0") {
        lines.say("has the lock, reads stock 0: sold out", turn.token().value);
        return;
    }
    lines.say("has the lock, reads stock 1", turn.token().value);
    lines.wait_for_cue();
    store.command({"SET", stock_name, "0"});
    store.command({"INCR", "sold"});
    lines.say("sells the last one, writes stock 0", turn.token().value);
}

ending v0_holdfast(story& told) {
    const redis_server server;
    server.cli({"SET", stock_name, "1"});
    holdfast::client onlooker{address_of(server)};
    told.begin();
    actor a{server, "v0-holdfast-seller", "A"};
    heard(told, "A", a);
    heard(told, "A", a);
    actor b{server, "v0-holdfast-seller", "B"};
    heard(told, "B", b);
    wait_for_waiter(onlooker);
    told.tell("B", "waits");
    step(told, "A", a);
    heard(told, "B", b);
    const auto sold = server.cli({"GET", "sold"});
    return safe_if(sold == "1", "1 in stock, " + sold + " sold; B waited, then found nothing left");
}

}  // namespace lab::scenarios
