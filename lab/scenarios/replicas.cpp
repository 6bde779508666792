#include "../naive/owned_locks.hpp"
#include "../naive/replicated_lock.hpp"
#include "../stage.hpp"
#include "scenarios.hpp"

/// A lock that the next master has never heard of.
namespace lab::scenarios {

namespace {

constexpr std::chrono::milliseconds ttl{30000};

void cut(story& told, pair_of_servers& servers) {
    servers.cut_link();
    told.tell("network", "the link between master and replica breaks");
}

void promote(story& told, pair_of_servers& servers) {
    servers.promote();
    told.tell("redis", "the master dies; the replica is promoted");
}

/// A asks the cut-off master for a lock that a replica must have; then B the promoted one.
ending confirmed_or_refused(story& told, const std::string& meaning) {
    pair_of_servers servers;
    constexpr std::chrono::milliseconds patience{500};
    const holdfast::lease_options confirmed{.ttl = ttl,
                                            .replicas = holdfast::replica_policy::at_least(1)};
    holdfast::client of_a{address_of(servers.master()), {.request_timeout = patience}};
    holdfast::mutex a{of_a, lock_name, confirmed};
    told.begin();
    const bool first = a.try_acquire().has_value();
    told.tell("A", first ? "takes the lock: one replica has confirmed it; releases it" : "is refused");
    cut(told, servers);
    std::string answer = "takes the lock";
    try {
        const auto held = a.try_acquire();
    } catch (const std::system_error& error) {
        // Unavailable, or unknown if the answer comes at the very end: A does not have it either way.
        answer = "asks again: refused, " + error.code().message();
    }
    const bool refused = answer != "takes the lock";
    told.tell("A", answer);
    const bool taken_back =
        became_true([&] { return !is_there(servers.master(), lock_name); }, std::chrono::seconds{2});
    told.tell("redis", taken_back ? "what was granted is taken back" : "the lock is left behind");
    promote(told, servers);
    holdfast::client of_b{address_of(servers.replica())};
    const auto held_by_b = holdfast::mutex{of_b, lock_name, {.ttl = ttl}}.try_acquire();
    told.tell("B", held_by_b ? "takes the lock on the new master" : "is refused",
              held_by_b ? held_by_b->token().value : 0);
    return safe_if(first && refused && taken_back && held_by_b, meaning);
}

}  // namespace

ending replica_naive(story& told) {
    pair_of_servers servers;
    auto old_master = servers.master().connect();
    naive::script_lock a{old_master, lock_name, "A"};
    told.begin();
    cut(told, servers);
    const bool a_is_in = a.try_lock(ttl);
    told.tell("A", a_is_in ? "takes the lock on the master" : "is refused");
    promote(told, servers);
    auto new_master = servers.replica().connect();
    naive::script_lock b{new_master, lock_name, "B"};
    const bool b_is_in = b.try_lock(ttl);
    told.tell("B", b_is_in ? "takes the same lock on the new master" : "is refused");
    return broken_if(a_is_in && b_is_in, "A and B are in at the same time, for up to " + in_ms(ttl) +
                                             ", and neither knows");
}

ending replica_holdfast(story& told) {
    return confirmed_or_refused(
        told,
        "a lock that no replica has is nobody's; B was the only holder. (Without "
        "`replicas` this would be two-masters-and-tokens)");
}

ending wait_naive(story& told) {
    pair_of_servers servers;
    auto master = servers.master().connect();
    naive::replicated_lock a{master, lock_name};
    told.begin();
    cut(told, servers);
    const auto asked = std::chrono::steady_clock::now();
    const auto reply = a.try_lock(ttl, 1000ms);
    const auto took = std::chrono::steady_clock::now() - asked;
    told.tell("A", "script: SET NX, WAIT 1 replica for up to 1000 ms");
    told.tell("redis", "answers after " + in_ms(took) + ": " +
                           reply.as_text().substr(0, reply.as_text().find(" script:")));
    const bool taken = is_there(servers.master(), lock_name);
    told.tell("redis", taken ? "the lock is set, for " + in_ms(ttl) : "the lock is not set");
    promote(told, servers);
    const bool copied = is_there(servers.replica(), lock_name);
    told.tell("redis", copied ? "the new master has the lock" : "the new master has no lock");
    const std::string meaning =
        reply.is_error() ? "WAIT was refused when SET was done: an error for A, a lock for nobody"
                         : "WAIT did not wait: A believes in a lock that only the dead master had";
    return broken_if(taken && !copied && took < 1000ms, meaning);
}

ending wait_holdfast(story& told) {
    return confirmed_or_refused(told,
                                "WAIT is sent behind the script, not in it, and its answer counts: "
                                "confirmed, or given back");
}

}  // namespace lab::scenarios
