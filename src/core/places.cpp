#include <core/places.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

bool line::contended() const {
    const auto is_contended = [](const contest* each) { return each->machine.contended(); };
    return std::any_of(contests.begin(), contests.end(), is_contended) ||
           std::any_of(turns.contests().begin(), turns.contests().end(), is_contended);
}

place& places::of(const std::string& name, lock_kind kind) {
    auto* site = find(name);
    if (site == nullptr) {
        if (!latest_name_ || *latest_name_ != name) {
            latest_name_ = std::make_shared<const std::string>(name);
        }
        site = &places_.try_emplace(*latest_name_).first->second;
        site->name = latest_name_;
        site->kind = kind;
    }
    touch(*site);
    return *site;
}

place* places::find(const std::string& name) {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
}

line& places::line_of(place& site) {
    if (!site.waiting) {
        site.waiting = spare_line_ ? std::move(spare_line_) : std::make_unique<line>();
    }
    return *site.waiting;
}

void places::put_away(std::unique_ptr<line> unused) noexcept {
    if (unused) {
        unused->queue.clear();
        unused->turns.reset();
        spare_line_ = std::move(unused);
    }
}

void places::touch(place& site) {
    if (!std::exchange(site.touched, true)) {
        touched_.push_back(&site);
    }
}

void places::free(place& site, std::uint32_t others_waiting) {
    site.contender = nullptr;
    site.holder = nullptr;
    site.awaits_release = false;
    site.others_waiting = others_waiting;
    touch(site);
}

place* places::take_touched() noexcept {
    if (next_touched_ == touched_.size()) {
        touched_.clear();
        next_touched_ = 0;
        return nullptr;
    }
    auto* const site = touched_[next_touched_++];
    site->touched = false;
    return site;
}

void places::tidy(place& site) {
    const bool busy = site.waiting && !site.waiting->empty();
    // Once begun, watching goes on as long as anybody waits: they will need it again.
    const bool wanted =
        busy && site.kind != lock_kind::fair_mutex && (site.watched || site.waiting->contended());
    if (std::exchange(site.watched, wanted) != wanted) {
        out_.add(update_watch{*site.name, site.kind});
    }
    if (busy || site.touched) {
        return;
    }
    if (site.idle()) {
        put_away(std::move(site.waiting));
        places_.erase(places_.find(*site.name));
    } else if (site.waiting && !site.waiting->queue.token_left()) {
        put_away(std::move(site.waiting));
    }
}

bool places::wants_watch(const std::string& name) const {
    const auto found = places_.find(name);
    return found != places_.end() && found->second.watched;
}

}  // namespace holdfast::core
