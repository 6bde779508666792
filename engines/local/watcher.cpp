#include <common/quiet_thread.hpp>
#include <local/watcher.hpp>
#include <utility>

namespace holdfast::engines::local {

struct watcher::entry {
    std::uint64_t key{};
    std::size_t place{};
    std::uint32_t seen{};
    std::function<void()> hint;
};

/// Outlives the watcher if a subscription does.
class watcher::table {
public:
    using entries = std::multimap<std::string, std::shared_ptr<entry>, std::less<>>;

    explicit table(std::shared_ptr<wake_map> map) : map_{std::move(map)} {}

    entries::iterator add(std::string name, std::function<void()> hint) {
        auto added = std::make_shared<entry>();
        added->key = wake_map::key_of(name);
        added->hint = std::move(hint);
        const std::lock_guard lock{mutex_};
        added->place = map_->add_waiter(added->key);
        added->seen = map_->sequence(added->key);
        return entries_.emplace(std::move(name), std::move(added));
    }

    /// True when its name has no watch any more.
    [[nodiscard]] bool remove(entries::iterator entry) {
        const std::lock_guard lock{mutex_};
        map_->remove_waiter(entry->second->place);
        const std::string name = entry->first;
        entries_.erase(entry);
        return !entries_.contains(name);
    }

    [[nodiscard]] bool contains(std::string_view name) const {
        const std::lock_guard lock{mutex_};
        return entries_.contains(name);
    }

    [[nodiscard]] std::vector<std::shared_ptr<entry>> of(std::string_view name) const {
        const std::lock_guard lock{mutex_};
        std::vector<std::shared_ptr<entry>> found;
        const auto [first, last] = entries_.equal_range(name);
        for (auto each = first; each != last; ++each) {
            found.push_back(each->second);
        }
        return found;
    }

    [[nodiscard]] std::vector<std::shared_ptr<entry>> take_changed() {
        const std::lock_guard lock{mutex_};
        std::vector<std::shared_ptr<entry>> changed;
        for (auto& [name, each] : entries_) {
            if (const std::uint32_t current = map_->sequence(each->key); each->seen != current) {
                each->seen = current;
                changed.push_back(each);
            }
        }
        return changed;
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<wake_map> map_;
    entries entries_;
};

class watcher::handle final : public subscription {
public:
    handle(std::shared_ptr<table> owner, table::entries::iterator entry, std::string name,
           std::function<void(const std::string&)> ended)
        : table_{std::move(owner)}, entry_{entry}, name_{std::move(name)}, ended_{std::move(ended)} {}
    ~handle() override {
        if (table_->remove(entry_)) {
            ended_(name_);
        }
    }
    [[nodiscard]] bool active() const noexcept override { return true; }

private:
    std::shared_ptr<table> table_;
    table::entries::iterator entry_;
    std::string name_;
    std::function<void(const std::string&)> ended_;
};

watcher::watcher(std::shared_ptr<wake_map> map, std::function<void()> revoked)
    : map_{std::move(map)},
      table_{std::make_shared<table>(map_)},
      revoked_{std::move(revoked)},
      seen_revocations_{map_->revocations()},
      thread_{quiet_thread([this] { serve(); })} {}

watcher::~watcher() {
    stopping_ = true;
    map_->wake_sleepers();
    thread_.join();
}

std::unique_ptr<subscription> watcher::watch(std::string name, std::function<void()> hint,
                                             std::function<void(const std::string&)> ended) {
    const auto added = table_->add(name, std::move(hint));
    return std::make_unique<handle>(table_, added, std::move(name), std::move(ended));
}

bool watcher::is_watched(std::string_view name) const {
    return table_->contains(name);
}

void watcher::fire(std::string_view name) {
    for (const auto& each : table_->of(name)) {
        each->hint();
    }
}

void watcher::serve() {
    while (!stopping_) {
        // Read before looking: whatever is announced after this changes it, and ends the sleep.
        const std::uint32_t word = map_->word();
        for (const auto& each : table_->take_changed()) {
            each->hint();
        }
        if (const std::uint32_t revocations = map_->revocations(); revocations != seen_revocations_) {
            seen_revocations_ = revocations;
            revoked_();
        }
        if (!stopping_) {
            map_->sleep(word);
        }
    }
}

}  // namespace holdfast::engines::local
