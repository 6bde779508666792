#include <nodes/name_news.hpp>

#include <utility>

namespace holdfast::engines::nodes {

void name_news::watchers(const std::string& name, std::uint32_t count) {
    auto& entry = entries_[name];
    entry.watchers = count;
    update(name, entry);
}

void name_news::mute(const std::string& name, bool more) {
    auto& entry = entries_[name];
    entry.muted += more ? 1U : -1U;
    update(name, entry);
}

bool name_news::on_changed(watch_id id) {
    const auto watch = watches_.find(id);
    if (watch == watches_.end()) {
        return false;
    }
    entries_.at(watch->second).hears = true;
    outbox_.emit(tell_hint{watch->second});
    return true;
}

void name_news::on_watch_failed(watch_id id) {
    if (const auto watch = watches_.find(id); watch != watches_.end()) {
        auto& entry = entries_.at(watch->second);
        entry.watch = 0;
        entry.hears = false;
        watches_.erase(watch);
    }
}

bool name_news::hears(const std::string& name) const {
    const auto found = entries_.find(name);
    return found != entries_.end() && found->second.hears;
}

void name_news::end() {
    for (const auto& [id, name] : std::exchange(watches_, {})) {
        outbox_.emit(stop_watch{id});
    }
    entries_.clear();
}

void name_news::update(const std::string& name, interest& entry) {
    const bool wanted = entry.watchers > 0 && entry.muted == 0;
    entry.hears = entry.watchers > 0 && (entry.hears || entry.muted > 0);
    if (wanted && entry.watch == 0) {
        entry.watch = outbox_.next_id();
        watches_[entry.watch] = name;
        outbox_.emit(start_watch{entry.watch, name, {}});
    } else if (!wanted && entry.watch != 0) {
        watches_.erase(entry.watch);
        outbox_.emit(stop_watch{std::exchange(entry.watch, 0)});
    }
    if (entry.watchers == 0 && entry.muted == 0) {
        entries_.erase(name);
    }
}

}  // namespace holdfast::engines::nodes
