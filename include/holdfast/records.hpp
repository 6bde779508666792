#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

/// An engine for a store that keeps one record for each name and replaces it only if nobody else has
/// meanwhile: an SQL row, a Memcached item, a file. `make_records_engine` makes the engine; the rules
/// of locks, permits and latches are in it. The store only keeps bytes.
///
/// Needed by the writers of such engines, and by nobody else.
namespace holdfast::engines {
inline namespace v0 {

/// What a store has under a name.
struct stored_record {
    /// Zero: nothing. Two different records of a name never have the same version.
    std::uint64_t version{};
    std::string bytes{};
};

struct record_reply {
    enum class outcome : std::uint8_t { done, conflict, failed } result{outcome::failed};
    /// `read`: what is there. `replace`: the version of the new record; after a conflict, what is
    /// there.
    stored_record current{};
    /// The store's clock, read while it answered. Microseconds since any moment in the past that stays
    /// the same; since 1970 where the store may lose records, because new tokens start from it.
    std::chrono::microseconds now{};
    /// failed: `outcome_unknown` if the record may have been replaced, or may still be. Everything else
    /// means that it never will be.
    failure error{};
};

struct record_change {
    std::string name;
    /// Takes effect only while the record has this version; zero: only while there is none.
    std::uint64_t version{};
    std::string bytes{};
    /// By the store's clock. Afterwards the store may remove the record, and not sooner.
    std::chrono::microseconds needed_until{};
    /// Waiters should be told (`record_news`).
    bool frees{};
};

/// An ability of a store: goes through the names that have records.
class HOLDFAST_EXPORT record_listing {
public:
    struct page {
        struct entry {
            std::string name;
            stored_record stored;
        };
        /// In the order of the names' bytes.
        std::vector<entry> entries;
        std::chrono::microseconds now{};
        failure error{};
    };
    /// The first `limit` names after `after` that begin with `prefix`.
    [[nodiscard]] virtual page scan(const std::string& prefix, const std::string& after,
                                    std::size_t limit, clock::time_point deadline) = 0;

protected:
    ~record_listing() = default;
};

/// An ability of a store: tells when a record was replaced by a change that `frees`. Without it waiters
/// ask again every 100 ms.
class HOLDFAST_EXPORT record_news {
public:
    /// As `watching::watch`.
    [[nodiscard]] virtual std::unique_ptr<subscription> listen(std::string name,
                                                               std::function<void()> hint) = 0;

protected:
    ~record_news() = default;
};

/// A store, as the family of engines sees it. The name of a record is the name of a lock. One record
/// more has a name that begins with the byte 1: it tells clients of revocations, where there is `news`.
/// `read` and `replace` wait for the store, and return by the deadline.
///
/// Thread safety: all functions may be called from any thread at any time; those about one name, by one
/// engine, one at a time.
class HOLDFAST_EXPORT record_store {
public:
    virtual ~record_store() = default;

    /// Shared locks, permits and latches are promised by the family; fair locks are not.
    [[nodiscard]] virtual const guarantees& promises() const noexcept = 0;
    /// As `engine::address` and `engine::store_identity`.
    [[nodiscard]] virtual const std::string& address() const noexcept = 0;
    [[nodiscard]] virtual std::string store_identity() const { return address(); }

    [[nodiscard]] virtual record_reply read(const std::string& name, clock::time_point deadline) = 0;
    [[nodiscard]] virtual record_reply replace(const record_change& change,
                                               clock::time_point deadline) = 0;

    /// Null: no operators' view.
    [[nodiscard]] virtual record_listing* listing() noexcept { return nullptr; }
    /// Null: waiters poll.
    [[nodiscard]] virtual record_news* news() noexcept { return nullptr; }
};

[[nodiscard]] HOLDFAST_EXPORT std::unique_ptr<engine> make_records_engine(
    std::unique_ptr<record_store> store, const client_identity& identity);

}  // namespace v0
}  // namespace holdfast::engines
