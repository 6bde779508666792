#pragma once

#include <chrono>
#include <string>

#include "hook.hpp"

/// Versions 1 to 3: a key that is there while somebody is in.
namespace naive {

/// Version 1: a caller that does not get the lock calls the function again.
/// The flaw: every attempt costs a stack frame, and the stack is full before the caller gives up.
class recursive_lock {
public:
    recursive_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    /// The number of attempts it took. `pause` is 20 ms in the tutorial.
    std::size_t lock(std::chrono::milliseconds pause);

private:
    redis_client& store_;
    std::string name_;
};

/// Version 2: a loop instead.
/// The flaw: a holder that dies leaves the key behind, and nothing ever removes it.
class spin_lock {
public:
    spin_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    bool try_lock();
    void unlock();

private:
    redis_client& store_;
    std::string name_;
};

/// Version 2½: the key gets a life, in a second command.
/// The flaw: a holder that dies between the two commands leaves a key without a life.
class torn_lock {
public:
    torn_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    bool try_lock(std::chrono::milliseconds ttl, const hook& between);

private:
    redis_client& store_;
    std::string name_;
};

/// Version 3: key and life in one command.
/// The flaw: `unlock` deletes the key, even if somebody else has the lock by then.
class expiring_lock {
public:
    expiring_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    bool try_lock(std::chrono::milliseconds ttl);
    void unlock();

private:
    redis_client& store_;
    std::string name_;
};

}  // namespace naive
