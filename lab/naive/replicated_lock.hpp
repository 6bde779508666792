#pragma once

#include <chrono>
#include <string>

#include "hook.hpp"

namespace naive {

/// Takes the lock and waits until a replica has it, in one script.
/// The flaw: a script cannot wait. Servers up to 7.0 refuse WAIT in it, when SET is already done; newer
/// ones return at once with the number of replicas that happen to be in step.
class replicated_lock {
public:
    replicated_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    /// As the tutorial writes it: what WAIT answers is not looked at.
    holdfast::testing_support::redis_reply try_lock(std::chrono::milliseconds ttl,
                                                    std::chrono::milliseconds wait);

private:
    redis_client& store_;
    std::string name_;
};

}  // namespace naive
