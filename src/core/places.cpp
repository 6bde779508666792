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
    auto* where = find(name);
    if (where == nullptr) {
        if (!latest_name_ || *latest_name_ != name) {
            latest_name_ = std::make_shared<const std::string>(name);
        }
        where = &places_.try_emplace(*latest_name_).first->second;
        where->name = latest_name_;
        where->kind = kind;
    }
    touch(*where);
    return *where;
}

place* places::find(const std::string& name) {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
}

line& places::line_of(place& where) {
    if (!where.waiting) {
        where.waiting = spare_line_ ? std::move(spare_line_) : std::make_unique<line>();
    }
    return *where.waiting;
}

void places::put_away(std::unique_ptr<line> unused) noexcept {
    if (unused) {
        unused->queue.clear();
        unused->turns.reset();
        spare_line_ = std::move(unused);
    }
}

void places::touch(place& where) {
    if (!std::exchange(where.touched, true)) {
        touched_.push_back(&where);
    }
}

void places::free(place& where, std::uint32_t others_waiting) {
    where.contender = nullptr;
    where.holder = nullptr;
    where.awaits_release = false;
    where.others_waiting = others_waiting;
    touch(where);
}

place* places::take_touched() noexcept {
    if (next_touched_ == touched_.size()) {
        touched_.clear();
        next_touched_ = 0;
        return nullptr;
    }
    auto* const where = touched_[next_touched_++];
    where->touched = false;
    return where;
}

void places::tidy(place& where) {
    const bool busy = where.waiting && !where.waiting->empty();
    // Once begun, watching goes on as long as anybody waits: they will need it again.
    const bool wanted =
        busy && where.kind != lock_kind::fair_mutex && (where.watched || where.waiting->contended());
    if (std::exchange(where.watched, wanted) != wanted) {
        out_.add(update_watch{*where.name, where.kind});
    }
    if (busy || where.touched) {
        return;
    }
    if (where.idle()) {
        put_away(std::move(where.waiting));
        places_.erase(places_.find(*where.name));
    } else if (where.waiting && !where.waiting->queue.token_left()) {
        put_away(std::move(where.waiting));
    }
}

bool places::wants_watch(const std::string& name) const {
    const auto found = places_.find(name);
    return found != places_.end() && found->second.watched;
}

}  // namespace holdfast::core
