#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/engine.hpp>
#include <holdfast/testing/blocking_engine.hpp>

namespace holdfast::testing {

/// A ttl that does not run out while a test runs.
inline constexpr std::chrono::seconds long_ttl{60};

/// A contender's request. The defaults ask for the exclusive lock, for as long as the test may need it.
struct claim_terms {
    claim_mode mode{claim_mode::exclusive};
    std::chrono::milliseconds ttl{long_ttl};
    std::uint32_t permits{1};
    std::uint32_t limit{0};
    std::uint32_t token_count{1};
    fencing_token token_floor{};
    /// Empty: the contender's own owner.
    std::optional<owner_id> as{};
    bool converts{};
};

struct renewal_terms {
    claim_mode mode{claim_mode::exclusive};
    std::chrono::milliseconds ttl{long_ttl};
    std::optional<owner_id> as{};
};

struct release_terms {
    claim_mode mode{claim_mode::exclusive};
    std::chrono::milliseconds linger{};
    std::optional<owner_id> as{};
};

/// A participant of a test: a client with an engine of its own, as another process would have it.
class contender {
public:
    /// `locks` is the kind of lock that exclusive claims belong to. Shared claims belong to a shared
    /// mutex, permits to a semaphore.
    contender(const std::string& address, const std::string& label, lock_kind locks = lock_kind::mutex);

    [[nodiscard]] blocking_engine& store() noexcept { return store_; }
    [[nodiscard]] const engines::client_identity& identity() const noexcept { return identity_; }
    /// The owner of all calls that name no other owner.
    [[nodiscard]] owner_id owner() const noexcept { return owner_; }
    /// Makes a new owner of the same client. Later calls use this owner.
    owner_id become_fresh_owner() noexcept;
    /// A new owner of the same client, for terms that name it.
    [[nodiscard]] owner_id another_owner() noexcept;

    engines::acquire_reply acquire(const std::string& name, const claim_terms& terms = {});
    engines::renew_reply renew(const std::string& name, const renewal_terms& terms = {});
    engines::release_reply release(const std::string& name, const release_terms& terms = {});
    engines::revoke_reply revoke(const std::string& name, const owner_id& owner, fencing_token token,
                                 const std::string& reason = "contract test");
    lock_info inspect(const std::string& name);
    /// The first page of what is under `prefix`.
    engines::list_reply list(const std::string& prefix);

    engines::latch_reply read_latch(const std::string& name);
    engines::latch_reply set_latch(const std::string& name, std::uint32_t count,
                                   std::chrono::milliseconds lifetime = long_ttl);
    engines::latch_reply count_down(const std::string& name, std::uint32_t by = 1);

    /// Acquires the lock, and fails the test if the lock is not granted. Returns the first token.
    fencing_token hold(const std::string& name, const claim_terms& terms = {});
    /// Asks until the lock is granted, and returns the time of the grant. Empty if the lock is never
    /// granted: the test fails then.
    std::optional<clock::time_point> acquire_eventually(const std::string& name,
                                                        const claim_terms& terms = {});
    /// Watches, and waits until hints would arrive.
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(const std::string& name,
                                                               std::function<void()> hint);
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(const std::string& name, lock_kind kind,
                                                               std::function<void()> hint);

private:
    [[nodiscard]] lock_kind kind_for(claim_mode mode) const noexcept;

    engines::client_identity identity_;
    blocking_engine store_;
    owner_id owner_;
    lock_kind locks_;
    std::int64_t last_sequence_;
};

}  // namespace holdfast::testing
