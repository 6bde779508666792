#include <array>

#include "scenario.hpp"
#include "scenarios/scenarios.hpp"

namespace lab {

namespace {

using namespace scenarios;

constexpr std::array catalogue{
    scenario{"v0-process-local-lock", "A lock inside the process oversells",
             "std::mutex in each process", v0_naive, "mutex", v0_holdfast, verdict::safe},
    scenario{"v1-recursive-retry", "Retrying by recursion overflows the stack",
             "SETNX; lock() calls lock() again", v1_naive, "mutex", v1_holdfast, verdict::safe},
    scenario{"v2-crash-leaves-the-lock", "A crash leaves the lock behind", "SETNX … DEL", v2_naive,
             "mutex, ttl 400 ms", v2_holdfast, verdict::safe},
    scenario{"torn-setnx-expire", "A crash between SETNX and EXPIRE", "SETNX, then PEXPIRE", torn_naive,
             "mutex, ttl 400 ms", torn_holdfast, verdict::safe},
    scenario{"v3-deletes-anothers-lock", "Deleting a lock that is another's by now", "SET NX PX … DEL",
             v3_naive, "mutex, ttl 200 ms, not renewed", v3_holdfast, verdict::safe},
    scenario{"v4-check-then-delete", "The lock changes hands between check and delete",
             "SET NX PX … GET, then DEL", v4_naive, "mutex, ttl 200 ms, not renewed", v4_holdfast,
             verdict::safe},
    scenario{"v5-not-reentrant", "A holder that enters again waits for itself",
             "SET NX PX … script: GET, DEL", v5_naive, "recursive_mutex", v5_holdfast, verdict::safe},
    scenario{"v6-expires-under-slow-work", "The lock expires while its holder works",
             "script: HINCRBY, PEXPIRE; nothing renews it", v6_naive, "mutex, ttl 300 ms, renewed",
             v6_holdfast, verdict::safe},
    scenario{"v7-renews-for-nobody", "A timer renews the lock of an owner that is gone",
             "a timer: PEXPIRE if the lock is there", v7_naive, "lease; max_hold", v7_holdfast,
             verdict::safe},
    scenario{"lost-wake-up", "The message comes before anybody listens", "ask; SUBSCRIBE; wait",
             wake_up_naive, "mutex", wake_up_holdfast, verdict::safe},
    scenario{"replica-promoted", "A replica is promoted that never had the lock",
             "SET NX PX on a master with a replica", replica_naive, "mutex, replicas = at_least(1)",
             replica_holdfast, verdict::safe},
    scenario{"wait-in-a-script", "WAIT inside a script does not wait", "script: SET, WAIT", wait_naive,
             "mutex, replicas = at_least(1)", wait_holdfast, verdict::safe},
    scenario{"eviction", "A full server evicts the lock", "SET NX PX, maxmemory-policy volatile-ttl",
             eviction_naive, "lease, token checked by the stock", eviction_holdfast, verdict::limit},
    scenario{"late-write", "A holder writes after its time (fencing, table 1)", "SET NX PX, no token",
             late_write_naive, "lease, token checked by the stock", late_write_holdfast, verdict::safe},
    scenario{"two-masters-and-tokens", "Tokens that rise, and both writes pass (fencing, table 2)",
             "SET NX PX, INCR; the stock asks for a larger token", two_masters_naive,
             "lease; the token is shown before reading", two_masters_holdfast, verdict::limit},
    scenario{"redlock-member-restarted", "A Redlock member forgets its vote and votes again",
             "SET NX PX on three servers", restart_naive, "quorum of three, restart_grace",
             restart_holdfast, verdict::safe},
    scenario{"redlock-long-pause", "A Redlock holder stands still past its time",
             "SET NX PX on three servers", pause_naive, "quorum of three, token checked by the stock",
             pause_holdfast, verdict::limit},
};

constexpr std::array roles{
    role{"v0-naive-seller", v0_naive_seller},
    role{"v0-holdfast-seller", v0_holdfast_seller},
    role{"v1-naive-waiter", v1_naive_waiter},
    role{"v1-holdfast-waiter", v1_holdfast_waiter},
    role{"v2-naive-holder", v2_naive_holder},
    role{"holdfast-holder", holdfast_holder},
    role{"torn-naive-holder", torn_naive_holder},
    role{"pause-naive-writer", pause_naive_writer},
    role{"pause-holdfast-writer", pause_holdfast_writer},
};

}  // namespace

std::span<const scenario> all_scenarios() {
    return catalogue;
}

std::span<const role> all_roles() {
    return roles;
}

}  // namespace lab
