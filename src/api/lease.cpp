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

detail::hold::~hold() {
    if (!given_back_ && !session_->forked()) {
        session_->abandon(*this);
        tell_loss();
    }
    delete stop_.load();
}

owner_id detail::hold::owner() const noexcept {
    const auto& client = session_->identity().client;
    return {client.high, client.low, sequence_};
}

errc detail::hold::loss() const noexcept {
    if (const auto told = loss_.load(); told != errc{}) {
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
    auto* source = stop_.load();
    if (source == nullptr) {
        auto made = std::make_unique<std::stop_source>();
        if (stop_.compare_exchange_strong(source, made.get())) {
            source = made.release();
        }
    }
    // Looked at after the source is there: a loss that is told now either finds it, or is seen here.
    if (source->stop_requested() || loss() == errc{}) {
        return source->get_token();
    }
    // Over by the clock, but the notifier has not come round to it: do not make the caller wait.
    static const std::stop_token stopped = [] {
        std::stop_source own;
        own.request_stop();
        return own.get_token();
    }();
    return stopped;
}

void detail::hold::tell_loss() noexcept {
    if (auto* source = stop_.load()) {
        source->request_stop();
    }
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
