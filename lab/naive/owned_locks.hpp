#pragma once

#include <chrono>
#include <string>

#include "hook.hpp"

/// Versions 4 to 6: the key says whose it is.
namespace naive {

/// Version 4: checks the owner of the key before it deletes the key.
/// The flaw: the check and the deletion are two commands, and the lock can change hands in between.
class checking_lock {
public:
    checking_lock(redis_client& store, std::string name, std::string owner)
        : store_{store}, name_{std::move(name)}, owner_{std::move(owner)} {}
    bool try_lock(std::chrono::milliseconds ttl);
    void unlock(const hook& between = [] {});

private:
    redis_client& store_;
    std::string name_;
    std::string owner_;
};

/// Version 5: both in one script.
/// The flaw: the holder cannot enter again, and waits for itself.
class script_lock {
public:
    script_lock(redis_client& store, std::string name, std::string owner)
        : store_{store}, name_{std::move(name)}, owner_{std::move(owner)} {}
    bool try_lock(std::chrono::milliseconds ttl);
    void unlock();

private:
    redis_client& store_;
    std::string name_;
    std::string owner_;
};

/// Version 6: a hash that counts how often its owner is in.
/// The flaw: the work may take longer than the key lives, and nobody prolongs it or tells the holder.
class reentrant_lock {
public:
    reentrant_lock(redis_client& store, std::string name, std::string owner)
        : store_{store}, name_{std::move(name)}, owner_{std::move(owner)} {}
    bool try_lock(std::chrono::milliseconds ttl);
    void unlock();

private:
    redis_client& store_;
    std::string name_;
    std::string owner_;
};

}  // namespace naive
