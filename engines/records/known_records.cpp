#include <records/known_records.hpp>
#include <utility>

namespace holdfast::engines::records {

namespace {

/// No request is under way for so long.
constexpr std::chrono::minutes longest_doubt{10};
constexpr std::size_t most_doubts = 65536;
/// By how much the store's clock may be slower than ours.
constexpr int drift_divisor = 1000;

}  // namespace

std::optional<known_records::entry> known_records::take(const std::string& name) {
    const std::lock_guard lock{mutex_};
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    std::optional<entry> seen{std::move(found->second)};
    entries_.erase(found);
    return seen;
}

void known_records::put(const std::string& name, entry seen) {
    if (seen.record.holds.size() > most_holds) {
        return;
    }
    const std::lock_guard lock{mutex_};
    if (entries_.size() >= most_names) {
        entries_.erase(entries_.begin());
    }
    entries_.insert_or_assign(name, std::move(seen));
}

void known_records::see_clock(clock::time_point store_now, clock::time_point sent,
                              clock::time_point received) {
    const std::lock_guard lock{mutex_};
    if (!clock_ || sent >= clock_->sent) {
        clock_ = {store_now, sent, received};
    }
}

std::optional<known_records::clock_bounds> known_records::store_clock(clock::time_point now) const {
    const std::lock_guard lock{mutex_};
    if (!clock_ || now < clock_->received || now - clock_->received > longest_estimate) {
        return std::nullopt;
    }
    // The store read its clock before we had the answer, and after we had asked.
    const auto since = now - clock_->received;
    const auto at_most = now - clock_->sent;
    return clock_bounds{clock_->store_now + since - since / drift_divisor,
                        clock_->store_now + at_most + at_most / drift_divisor};
}

void known_records::doubt(const std::string& name, std::uint64_t base, clock::time_point now) {
    const std::lock_guard lock{mutex_};
    if (doubts_.size() >= most_doubts) {
        std::erase_if(doubts_,
                      [&](const auto& each) { return now - each.second.since > longest_doubt; });
    }
    doubts_.insert_or_assign(name, doubtful_write{base, now});
}

void known_records::settle(const std::string& name) {
    const std::lock_guard lock{mutex_};
    doubts_.erase(name);
}

std::optional<std::uint64_t> known_records::doubted(const std::string& name) const {
    const std::lock_guard lock{mutex_};
    const auto found = doubts_.find(name);
    return found == doubts_.end() ? std::nullopt : std::optional{found->second.base};
}

void known_records::mistrust(const std::string& name, const owner_id& owner, clock::time_point end,
                             clock::time_point now) {
    const std::lock_guard lock{mutex_};
    if (doubtful_holds_.size() >= most_doubts) {
        std::erase_if(doubtful_holds_,
                      [&](const auto& each) { return now - each.second.since > longest_doubt; });
    }
    doubtful_holds_.insert_or_assign({name, owner}, doubtful_hold{end, now});
}

void known_records::trust(const std::string& name, const owner_id& owner) {
    const std::lock_guard lock{mutex_};
    if (!doubtful_holds_.empty()) {
        doubtful_holds_.erase({name, owner});
    }
}

std::optional<clock::time_point> known_records::certain_end(const std::string& name,
                                                            const owner_id& owner) const {
    const std::lock_guard lock{mutex_};
    if (doubtful_holds_.empty()) {
        return std::nullopt;
    }
    const auto found = doubtful_holds_.find({name, owner});
    return found == doubtful_holds_.end() ? std::nullopt : std::optional{found->second.end};
}

}  // namespace holdfast::engines::records
