#include <holdfast/segmented_stock.hpp>

#include <holdfast/client.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast {

namespace {

[[nodiscard]] std::vector<std::string> names_of(const std::string& name, std::size_t segments) {
    if (segments == 0) {
        failure{errc::invalid_argument, "it needs at least one segment"}.raise("segmented_stock");
    }
    std::vector<std::string> names;
    names.reserve(segments);
    for (std::size_t index = 0; index < segments; ++index) {
        names.push_back(name + ":" + std::to_string(index));
    }
    return names;
}

[[nodiscard]] std::optional<lease> acquire_by(mutex& lock, std::optional<clock::time_point> until,
                                              std::stop_token stop) {
    return until ? lock.try_acquire_for(*until - clock::now(), std::move(stop))
                 : lock.acquire(std::move(stop));
}

[[nodiscard]] segment segment_of(std::size_t index, const lease& held) {
    return {index, held.token(), held.lost()};
}

}  // namespace

/// One request's way through the segments.
class segmented_stock::search {
public:
    search(segmented_stock& stock, std::uint64_t units)
        : stock_{stock}, units_{units}, unseen_{stock.order()} {}

    /// Takes from one segment, if it can be done without waiting for the others to be seen.
    [[nodiscard]] std::optional<taking> from_one(deadline until, const std::stop_token& stop) {
        while (!unseen_.empty()) {
            bool looked = false;
            // A copy: what was looked at leaves the list.
            for (const auto index : std::vector{unseen_}) {
                auto held = stock_.locks_[index]->try_acquire();
                if (!held) {
                    continue;
                }
                looked = true;
                if (take_under(index, *held)) {
                    return taking{taking::outcome::taken, {{index, units_}}, 0};
                }
            }
            if (looked || unseen_.empty()) {
                continue;
            }
            const auto index = unseen_.front();
            auto held = acquire_by(*stock_.locks_[index], until, stop);
            if (!held) {
                return taking{};
            }
            if (take_under(index, *held)) {
                return taking{taking::outcome::taken, {{index, units_}}, 0};
            }
        }
        return std::nullopt;
    }
    /// How much all segments had, each when it was looked at.
    [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }

private:
    [[nodiscard]] bool take_under(std::size_t index, const lease& held) {
        const auto where = segment_of(index, held);
        const auto there = stock_.store_.read(where);
        stock_.empty_[index].store(there == 0, std::memory_order_relaxed);
        if (there < units_) {
            std::erase(unseen_, index);
            seen_ += there;
            return false;
        }
        held.check();
        stock_.store_.write(where, there - units_);
        return true;
    }

    segmented_stock& stock_;
    std::uint64_t units_;
    std::vector<std::size_t> unseen_;
    std::uint64_t seen_{};
};

segmented_stock::segmented_stock(client& owner, const std::string& name, std::size_t segments,
                                 segment_store store, const stock_options& options)
    : store_{std::move(store)},
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
    search looking{*this, units};
    if (auto result = looking.from_one(until, stop)) {
        return std::move(*result);
    }
    if (looking.seen() < units || more_than_one_has_ == gathering::refused) {
        return {taking::outcome::not_enough, {}, looking.seen()};
    }
    return gather(units, until, std::move(stop));
}

segment segmented_stock::segment_under(std::size_t index, const multi_lease& held) const {
    return {index, held.token(locks_[index]->name()), held.lost()};
}

/// No segment had enough, but all together may.
taking segmented_stock::gather(std::uint64_t units, deadline until, std::stop_token stop) {
    const auto held = until ? all_.try_acquire_for(*until - clock::now(), std::move(stop))
                            : all_.acquire(std::move(stop));
    if (!held) {
        return {};
    }
    std::vector<std::uint64_t> there;
    for (std::size_t index = 0; index < locks_.size(); ++index) {
        there.push_back(store_.read(segment_under(index, *held)));
    }
    const auto total = std::accumulate(there.begin(), there.end(), std::uint64_t{0});
    if (total < units) {
        return {taking::outcome::not_enough, {}, total};
    }
    return {taking::outcome::taken, take_from_all(*held, there, units), 0};
}

/// As well as it can be done: what cannot be written back is missing, but never sold twice.
void segmented_stock::put_back(const multi_lease& held, const std::vector<std::uint64_t>& there,
                               const std::vector<taking::part>& parts) noexcept {
    for (const auto& part : parts) {
        try {
            held.check();
            store_.write(segment_under(part.segment, held), there[part.segment]);
        } catch (...) {
            continue;  // the first failure is what the caller learns
        }
    }
}

std::vector<taking::part> segmented_stock::take_from_all(const multi_lease& held,
                                                         const std::vector<std::uint64_t>& there,
                                                         std::uint64_t units) {
    std::vector<taking::part> parts;
    try {
        for (std::size_t index = 0; index < there.size() && units > 0; ++index) {
            const auto some = std::min(there[index], units);
            if (some == 0) {
                continue;
            }
            held.check();
            // Before the write: one that throws may have taken effect all the same.
            parts.push_back({index, some});
            store_.write(segment_under(index, held), there[index] - some);
            units -= some;
        }
    } catch (...) {
        put_back(held, there, parts);
        throw;
    }
    return parts;
}

void segmented_stock::put(std::uint64_t units) {
    const auto add_under = [&](std::size_t index, const lease& held) {
        const auto where = segment_of(index, held);
        const auto there = store_.read(where);
        held.check();
        store_.write(where, there + units);
        empty_[index].store(false, std::memory_order_relaxed);
    };
    const auto places = order();
    for (const auto index : places) {
        if (const auto held = locks_[index]->try_acquire()) {
            add_under(index, *held);
            return;
        }
    }
    add_under(places.front(), locks_[places.front()]->acquire());
}

std::uint64_t segmented_stock::count() {
    const auto held = all_.acquire();
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < locks_.size(); ++index) {
        total += store_.read(segment_under(index, held));
    }
    held.check();
    return total;
}

}  // namespace holdfast
