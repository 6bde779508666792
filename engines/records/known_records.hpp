#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <holdfast/clock.hpp>
#include <records/codec.hpp>

namespace holdfast::engines::records {

/// What an engine has last seen of its store: records, the clock, and which of its own writes it never
/// had an answer for. Saves a request: a record that is known can be replaced without reading it first.
///
/// Thread safety: all functions may be called from any thread, for each name from one at a time.
class known_records {
public:
    struct entry {
        std::uint64_t version{};
        saved_record record;
    };

    static constexpr std::size_t most_names = 4096;
    static constexpr std::size_t most_holds = 256;
    /// An estimate is good for as long as the two clocks cannot have drifted far apart.
    static constexpr std::chrono::seconds longest_estimate{15};

    [[nodiscard]] std::optional<entry> take(const std::string& name);
    void put(const std::string& name, entry seen);

    /// The store's clock showed `store_now` between `sent` and `received` by ours.
    void see_clock(clock::time_point store_now, clock::time_point sent, clock::time_point received);
    struct clock_bounds {
        clock::time_point earliest;
        clock::time_point latest;
    };
    /// What it shows, between two bounds: how long the last answer took lies between them. Nothing if
    /// the clock was not seen lately.
    [[nodiscard]] std::optional<clock_bounds> store_clock(clock::time_point now) const;

    /// A write that replaces the version `base` of a record may still take effect, for as long as the
    /// record has this version.
    void doubt(const std::string& name, std::uint64_t base, clock::time_point now);
    void settle(const std::string& name);
    [[nodiscard]] std::optional<std::uint64_t> doubted(const std::string& name) const;

    /// Whatever the record says: the owner's hold is certain only until `end`. A write that extends it
    /// took effect too late, or may still do so.
    void mistrust(const std::string& name, const owner_id& owner, clock::time_point end,
                  clock::time_point now);
    /// The record is right about the owner's hold.
    void trust(const std::string& name, const owner_id& owner);
    [[nodiscard]] std::optional<clock::time_point> certain_end(const std::string& name,
                                                               const owner_id& owner) const;

private:
    struct doubtful_write {
        std::uint64_t base{};
        clock::time_point since;
    };
    struct doubtful_hold {
        clock::time_point end;
        clock::time_point since;
    };
    struct clock_reading {
        clock::time_point store_now;
        clock::time_point sent;
        clock::time_point received;
    };

    mutable std::mutex mutex_;
    std::unordered_map<std::string, entry> entries_;
    std::unordered_map<std::string, doubtful_write> doubts_;
    std::map<std::pair<std::string, owner_id>, doubtful_hold> doubtful_holds_;
    std::optional<clock_reading> clock_;
};

}  // namespace holdfast::engines::records
