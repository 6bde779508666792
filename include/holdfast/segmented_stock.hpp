#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/export.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/token.hpp>

namespace holdfast {
inline namespace v0 {

class client;

/// A part of a `segmented_stock` whose lock is held.
struct segment {
    std::size_t index{};
    /// Of the hold. Hand it to the store, which can then refuse a writer that is late.
    fencing_token token;
    /// Triggered when the hold is lost.
    std::stop_token lost;
};

/// Where the units are counted: a row, a key, a file for each segment. Called with the segment's lock
/// held. May throw: then the call that needed it throws, and nothing was taken. When one of several
/// writes of a gathered request throws, those before it are written back.
struct segment_store {
    std::function<std::uint64_t(const segment& of)> read;
    /// From now on the segment has `units`. Must have taken effect when it returns: the lock is given
    /// up then.
    std::function<void(const segment& of, std::uint64_t units)> write;
};

/// What becomes of a request for more than any one segment has.
enum class gathering : std::uint8_t {
    /// The units come from several segments, whose locks are held together.
    from_several,
    /// It is refused, although there may be enough in all.
    refused,
};

struct stock_options {
    lease_options lease{};
    gathering more_than_one_has{gathering::from_several};
};

/// How `segmented_stock::take` ended.
struct taking {
    enum class outcome : std::uint8_t {
        taken,
        /// Every segment was looked at under its lock, and there was too little.
        not_enough,
        /// Those segments that may have had enough were locked until the deadline, or until the stop.
        gave_up,
    };
    struct part {
        std::size_t segment{};
        std::uint64_t units{};
    };

    outcome what{outcome::gave_up};
    /// taken: from where.
    std::vector<part> parts;
    /// not_enough: how much was seen in all. Zero: sold out.
    std::uint64_t seen{};

    explicit operator bool() const noexcept { return what == outcome::taken; }
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(taking::outcome what) noexcept;

/// A number of equal things, counted in several segments with a lock each, so that as many buyers as
/// there are segments are served at a time. 500 pieces become 5 × 100.
///
/// `take` looks for a segment that nobody has locked, and takes from it if it has enough. It waits only
/// when all segments that may have enough are locked, and then for each of them in turn: one whose
/// holder hangs keeps nobody from the others. It says `not_enough` only when it has seen every segment
/// under its lock: nothing is sold twice, and nothing is left behind unseen.
///
/// A lock that is lost while units are gathered from several segments ends with an error. What had been
/// taken by then is put back first, however long that takes; if it cannot be put back, the error says
/// how much is missing. A write that throws and whose segment is lost before it could be undone may
/// leave its units missing: the error is the write's own.
///
/// Locks are called `<name>:<index>`.
///
/// Errors: `std::system_error` as from `mutex`, and whatever the store's functions throw.
/// Thread safety: all functions may be called from any thread, and so are the store's.
///
/// Misuse:
///     users of one name have different numbers of segments   some do not see all units
class HOLDFAST_EXPORT segmented_stock {
public:
    /// No I/O. Throws `std::system_error` when the name or the options make no sense, there are no
    /// segments or more than 1048576, or the store lacks a function.
    segmented_stock(client& owner, const std::string& name, std::size_t segments, segment_store store,
                    const stock_options& options = {});
    segmented_stock(const segmented_stock&) = delete;
    segmented_stock& operator=(const segmented_stock&) = delete;
    ~segmented_stock();

    [[nodiscard]] taking take(std::uint64_t units, std::stop_token stop = {}) {
        return take_until(units, std::nullopt, std::move(stop));
    }
    /// With no time to wait: from segments that nobody has locked at this moment.
    template <class Rep, class Period>
    [[nodiscard]] taking take_for(std::uint64_t units, const std::chrono::duration<Rep, Period>& wait,
                                  std::stop_token stop = {}) {
        return take_until(units, detail::deadline_after(wait), std::move(stop));
    }
    /// Gives units back, to a segment that is free if there is one. Throws `errc::invalid_argument`
    /// when no segment can count that many more.
    void put(std::uint64_t units);
    /// Counts all segments while all of them are locked; at most 2⁶⁴ − 1.
    [[nodiscard]] std::uint64_t count();

    [[nodiscard]] std::size_t segments() const noexcept { return locks_.size(); }

private:
    class search;
    using deadline = std::optional<clock::time_point>;

    [[nodiscard]] taking take_until(std::uint64_t units, deadline until, std::stop_token stop);
    [[nodiscard]] taking gather(std::uint64_t units, deadline until, std::stop_token stop);
    [[nodiscard]] std::vector<taking::part> take_from_all(multi_lease& held,
                                                          const std::vector<std::uint64_t>& there,
                                                          std::uint64_t units);
    [[nodiscard]] std::uint64_t write_back(const multi_lease& held,
                                           const std::vector<std::uint64_t>& there,
                                           const std::vector<taking::part>& parts,
                                           const std::optional<taking::part>& doubtful) noexcept;
    void put_after_loss(std::uint64_t missing);
    [[nodiscard]] segment segment_under(std::size_t index, const multi_lease& held) const;
    [[nodiscard]] std::vector<std::size_t> order() const;

    segment_store store_;
    gathering more_than_one_has_;
    /// Where the first thread begins, so that processes begin in different places.
    std::size_t start_;
    std::vector<std::unique_ptr<mutex>> locks_;
    multi_lock all_;
    /// Segments that were empty when this object saw them last: looked at after the others.
    std::vector<std::atomic<bool>> empty_;
};

}  // namespace v0
}  // namespace holdfast
