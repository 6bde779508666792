#include <holdfast/segmented_stock.hpp>

#include <holdfast/client.hpp>
#include <runtime/session.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <system_error>
#include <utility>

namespace holdfast {

namespace {

constexpr std::size_t most_segments = 1'048'576;
constexpr auto most_units = std::numeric_limits<std::uint64_t>::max();

[[nodiscard]] std::vector<std::string> names_of(const std::string& name, std::size_t segments) {
    if (segments == 0) {
        failure{errc::invalid_argument, "it needs at least one segment"}.raise("segmented_stock");
    }
    if (segments > most_segments) {
        failure{errc::invalid_argument, std::to_string(segments) + " segments are too many; at most " +
                                            std::to_string(most_segments) + " are allowed"}
            .raise("segmented_stock");
    }
    std::vector<std::string> names;
    names.reserve(segments);
    for (std::size_t index = 0; index < segments; ++index) {
        names.push_back(name + ":" + std::to_string(index));
    }
    return names;
}

/// `left + right`, or the largest number there is.
[[nodiscard]] std::uint64_t sum_of(std::uint64_t left, std::uint64_t right) noexcept {
    return right > most_units - left ? most_units : left + right;
}

[[nodiscard]] segment_store checked(segment_store store) {
    if (!store.read || !store.write) {
        failure{errc::invalid_argument, "it needs a function that reads and one that writes"}.raise(
            "segmented_stock");
    }
    return store;
}

[[nodiscard]] segment segment_of(std::size_t index, const lease& held) {
    return {index, held.token(), held.lost()};
}

}  // namespace

/// One request's way through the segments: each is looked at once, under its lock.
class segmented_stock::search {
public:
    enum class ending : std::uint8_t { done, seen_all, gave_up };

    search(segmented_stock& stock, deadline until, std::stop_token stop)
        : stock_{stock},
          asks_once_{until && *until <= clock::now()},
          until_{asks_once_ ? std::nullopt : until},
          stop_{std::move(stop)},
          unseen_{stock.order()} {}

    /// Calls `look(index, lease)` until it says true. Segments that nobody has locked come first. While
    /// all that are left are locked, each of them is waited for in turn: one whose holder hangs does
    /// not keep us from the others. A store that cannot be reached is waited for like any other lock's:
    /// until the deadline or, without one, for the client's `outage_patience`.
    template <class Look>
    [[nodiscard]] ending visit(const Look& look) {
        while (!unseen_.empty()) {
            const auto before = unseen_.size();
            for (const auto index : std::vector{unseen_}) {
                if (is_over()) {
                    return ending::gave_up;
                }
                if (seen(index, ask(index), look)) {
                    return ending::done;
                }
                if (unreachable_since_) {
                    break;  // the others would be asked in vain, too
                }
            }
            if (unseen_.size() < before && !unreachable_since_) {
                continue;
            }
            if (asks_once_ || is_over()) {
                return ending::gave_up;
            }
            const auto index = unseen_.front();
            std::rotate(unseen_.begin(), std::next(unseen_.begin()), unseen_.end());
            if (seen(index, wait_for(index), look)) {
                return ending::done;
            }
        }
        return ending::seen_all;
    }

private:
    /// So long is one segment waited for before the others are looked at again.
    static constexpr std::chrono::milliseconds turn{100};

    template <class Look>
    [[nodiscard]] bool seen(std::size_t index, const std::optional<lease>& held, const Look& look) {
        if (!held) {
            return false;
        }
        std::erase(unseen_, index);
        return look(index, *held);
    }
    [[nodiscard]] bool is_over() const noexcept {
        return stop_.stop_requested() || (until_ && clock::now() >= *until_);
    }
    [[nodiscard]] std::optional<lease> ask(std::size_t index) {
        return patiently([&] { return stock_.locks_[index]->ask_once(until_, stop_); });
    }
    [[nodiscard]] std::optional<lease> wait_for(std::size_t index) {
        auto& lock = *stock_.locks_[index];
        if (unseen_.size() == 1 && !until_) {
            return lock.acquire_unless_stopped(stop_);
        }
        const clock::time_point turn_ends = clock::now() + turn;
        const auto until =
            unseen_.size() == 1 ? *until_ : std::min(turn_ends, until_.value_or(turn_ends));
        return patiently([&] { return lock.acquire_until(until, stop_); });
    }
    /// What `take` gets; nothing while the store does not answer and there is time left. A store that
    /// is slower than our turns are long is asked again, with the time it needs.
    template <class Take>
    [[nodiscard]] std::optional<lease> patiently(const Take& take) {
        const auto began = clock::now();
        try {
            auto held = take();
            answered_ = true;
            unreachable_since_.reset();
            return held;
        } catch (const std::system_error& wrong) {
            const bool in_doubt = wrong.code() == errc::outcome_unknown;
            if (asks_once_ || (!in_doubt && wrong.code() != errc::store_unavailable)) {
                throw;
            }
            // Once the store has answered, an answer that is too late is no failure: the time is up.
            if (is_over() && ((in_doubt && answered_) || stop_.stop_requested())) {
                return std::nullopt;
            }
            unreachable_since_ = unreachable_since_.value_or(began);
            const auto patience = stock_.locks_.front()->session_->outage_patience();
            if (until_ ? is_over() : clock::now() - *unreachable_since_ >= patience) {
                throw;
            }
            return std::nullopt;
        }
    }

    segmented_stock& stock_;
    bool asks_once_;
    deadline until_;
    std::stop_token stop_;
    std::vector<std::size_t> unseen_;
    /// The store has said something.
    bool answered_{};
    /// Since when it cannot be reached.
    std::optional<clock::time_point> unreachable_since_;
};

segmented_stock::segmented_stock(client& owner, const std::string& name, std::size_t segments,
                                 segment_store store, const stock_options& options)
    : store_{checked(std::move(store))},
      more_than_one_has_{options.more_than_one_has},
      start_{static_cast<std::size_t>(owner_id::random_client().low >> 1U)},
      all_{owner, names_of(name, segments), options.lease},
      empty_(segments) {
    for (const auto& one : names_of(name, segments)) {
        locks_.push_back(std::make_unique<mutex>(owner, one, options.lease));
    }
}

segmented_stock::~segmented_stock() = default;

/// Each thread begins at a place of its own, and comes back to it: threads that wait are spread evenly.
std::vector<std::size_t> segmented_stock::order() const {
    std::vector<std::size_t> result(locks_.size());
    const auto first = start_ + static_cast<std::size_t>(detail::this_thread_number());
    for (std::size_t step = 0; step < result.size(); ++step) {
        result[step] = (first + step) % result.size();
    }
    std::stable_partition(result.begin(), result.end(), [this](std::size_t index) {
        return !empty_[index].load(std::memory_order_relaxed);
    });
    return result;
}

taking segmented_stock::take_until(std::uint64_t units, deadline until, std::stop_token stop) {
    if (units == 0) {
        failure{errc::invalid_argument, "take at least one unit"}.raise("segmented_stock");
    }
    std::uint64_t seen = 0;
    taking result{taking::outcome::taken, {}, 0};
    const auto take_under = [&](std::size_t index, const lease& held) {
        const auto where = segment_of(index, held);
        const auto there = store_.read(where);
        held.check();  // what was read after a loss says nothing
        empty_[index].store(there == 0, std::memory_order_relaxed);
        if (there < units) {
            seen = sum_of(seen, there);
            return false;
        }
        store_.write(where, there - units);
        result.parts = {{index, units}};
        return true;
    };
    switch (search{*this, until, stop}.visit(take_under)) {
        case search::ending::done:
            return result;
        case search::ending::gave_up:
            return {};
        case search::ending::seen_all:
            break;
    }
    if (seen < units || more_than_one_has_ == gathering::refused) {
        return {taking::outcome::not_enough, {}, seen};
    }
    return gather(units, until, std::move(stop));
}

segment segmented_stock::segment_under(std::size_t index, const multi_lease& held) const {
    return {index, held.token(locks_[index]->name()), held.lost()};
}

/// No segment had enough, but all together may.
taking segmented_stock::gather(std::uint64_t units, deadline until, std::stop_token stop) {
    auto held = until ? all_.try_acquire_until(*until, std::move(stop))
                      : all_.acquire_unless_stopped(std::move(stop));
    if (!held) {
        return {};
    }
    std::vector<std::uint64_t> there;
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < locks_.size(); ++index) {
        there.push_back(store_.read(segment_under(index, *held)));
        total = sum_of(total, there.back());
    }
    held->check();
    if (total < units) {
        return {taking::outcome::not_enough, {}, total};
    }
    return {taking::outcome::taken, take_from_all(*held, there, units), 0};
}

/// Undoes the writes of `parts`, and of one that threw and may have taken effect all the same, as long
/// as the locks are held. Returns how many units are certain to be missing after that.
std::uint64_t segmented_stock::write_back(const multi_lease& held,
                                          const std::vector<std::uint64_t>& there,
                                          const std::vector<taking::part>& parts,
                                          const std::optional<taking::part>& doubtful) noexcept {
    std::uint64_t missing = 0;
    const auto undo = [&](const taking::part& part) {
        if (!held) {
            return false;
        }
        try {
            store_.write(segment_under(part.segment, held), there[part.segment]);
        } catch (...) {
            // It may have taken effect. Units that are missing are better than units that are sold
            // twice, and the first failure is what the caller learns.
        }
        return true;
    };
    if (doubtful) {
        undo(*doubtful);
    }
    for (const auto& part : parts) {
        missing += undo(part) ? 0 : part.units;
    }
    return missing;
}

/// The locks were lost in between: what was taken goes back like anything else that is given back.
void segmented_stock::put_after_loss(std::uint64_t missing) {
    try {
        put(missing);
    } catch (const std::exception& why) {
        failure{errc::lost,
                std::to_string(missing) +
                    " units were taken and could not be put back, put them back later: " + why.what()}
            .raise("segmented_stock");
    }
}

std::vector<taking::part> segmented_stock::take_from_all(multi_lease& held,
                                                         const std::vector<std::uint64_t>& there,
                                                         std::uint64_t units) {
    std::vector<taking::part> parts;
    parts.reserve(there.size());  // nothing may fail between a write and its entry here
    std::optional<taking::part> doubtful;
    try {
        for (std::size_t index = 0; index < there.size() && units > 0; ++index) {
            const auto some = std::min(there[index], units);
            if (some == 0) {
                continue;
            }
            held.check();
            doubtful = {index, some};
            store_.write(segment_under(index, held), there[index] - some);
            parts.push_back(*doubtful);
            doubtful.reset();
            units -= some;
        }
    } catch (...) {
        if (const auto missing = write_back(held, there, parts, doubtful); missing > 0) {
            held.release();  // those that are not lost may be needed for putting back
            put_after_loss(missing);
        }
        throw;
    }
    return parts;
}

void segmented_stock::put(std::uint64_t units) {
    const auto add_under = [&](std::size_t index, const lease& held) {
        const auto where = segment_of(index, held);
        const auto there = store_.read(where);
        if (units > most_units - there) {
            return false;
        }
        held.check();
        store_.write(where, there + units);
        empty_[index].store(false, std::memory_order_relaxed);
        return true;
    };
    if (search{*this, std::nullopt, {}}.visit(add_under) != search::ending::done) {
        failure{errc::invalid_argument,
                "no segment has room for " + std::to_string(units) + " more units"}
            .raise("segmented_stock");
    }
}

std::uint64_t segmented_stock::count() {
    const auto held = all_.acquire();
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < locks_.size(); ++index) {
        total = sum_of(total, store_.read(segment_under(index, held)));
    }
    held.check();
    return total;
}

}  // namespace holdfast
