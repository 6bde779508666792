#include <holdfast/lease.hpp>

#include <api/request.hpp>

#include <utility>

namespace holdfast {

std::string_view to_string(release_outcome outcome) noexcept {
    switch (outcome) {
        case release_outcome::released:
            return "released";
        case release_outcome::already_lost:
            return "already lost";
        case release_outcome::unknown:
            return "unknown";
    }
    return "unknown";
}

errc detail::hold::loss() const noexcept {
    if (const auto told = loss_.load(std::memory_order_acquire); told != errc{}) {
        return told;
    }
    if (session_->forked()) {
        return errc::forked;  // it belongs to the parent
    }
    const auto now = clock::now();
    if (now < valid_until()) {
        return {};
    }
    return now >= longest_ ? errc::max_hold_exceeded : errc::lost;
}

std::stop_token detail::hold::lost() const noexcept {
    if (stop_.stop_requested() || loss() == errc{}) {
        return stop_.get_token();
    }
    // Over by the clock, but the notifier has not come round to it: do not make the caller wait.
    static const std::stop_token stopped = [] {
        std::stop_source source;
        source.request_stop();
        return source.get_token();
    }();
    return stopped;
}

lease::lease() noexcept = default;
lease::lease(std::shared_ptr<detail::hold> hold) noexcept : hold_{std::move(hold)} {}
lease::lease(lease&& other) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        release();
        hold_ = std::move(other.hold_);
    }
    return *this;
}

lease::~lease() {
    release();
}

lease::operator bool() const noexcept {
    return hold_ && hold_->loss() == errc{};
}

const std::string& lease::name() const noexcept {
    static const std::string none;
    return hold_ ? hold_->name() : none;
}

fencing_token lease::token() const noexcept {
    return hold_ ? hold_->token() : fencing_token{};
}

owner_id lease::owner() const noexcept {
    return hold_ ? hold_->owner() : owner_id{};
}

clock::time_point lease::valid_until() const noexcept {
    return hold_ ? hold_->valid_until() : clock::time_point{};
}

std::chrono::nanoseconds lease::remaining() const noexcept {
    return hold_ ? hold_->remaining() : std::chrono::nanoseconds::zero();
}

bool lease::at_risk() const noexcept {
    return *this && hold_->remaining() < hold_->jeopardy();
}

std::stop_token lease::lost() const noexcept {
    return hold_ ? hold_->lost() : std::stop_token{};
}

std::error_code lease::loss_reason() const noexcept {
    const auto why = hold_ ? hold_->loss() : errc{};
    return why == errc{} ? std::error_code{} : make_error_code(why);
}

void lease::check() const {
    if (!hold_) {
        failure{errc::lost, "this lease is empty"}.raise("lease");
    }
    if (const auto why = hold_->loss(); why != errc{}) {
        failure{why, "do not touch what it protects any more"}.raise(
            detail::describe(*hold_->from(), hold_->name()));
    }
}

release_outcome lease::release() noexcept {
    return release_after(std::chrono::milliseconds::zero());
}

release_outcome lease::release_after(std::chrono::milliseconds after) noexcept {
    const auto held = std::exchange(hold_, nullptr);
    return held ? held->from()->release(*held, after) : release_outcome::already_lost;
}

}  // namespace holdfast
