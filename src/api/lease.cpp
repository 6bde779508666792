#include <holdfast/lease.hpp>

#include <api/request.hpp>
#include <core/duration_text.hpp>

#include <string>
#include <utility>

namespace holdfast {

std::string_view v0::to_string(release_outcome outcome) noexcept {
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
        left_ = other.left_;
    }
    return *this;
}

lease::~lease() {
    release();
}

/// Null once it was given back: what is kept then is for `loss_reason` and `loss_detail` alone.
const detail::hold* lease::current() const noexcept {
    return hold_ && !left_ && !hold_->given_back() ? hold_.get() : nullptr;
}

lease::operator bool() const noexcept {
    const auto* const held = current();
    return held != nullptr && held->loss() == errc{};
}

const std::string& lease::name() const noexcept {
    static const std::string none;
    const auto* const held = current();
    return held != nullptr ? held->name() : none;
}

fencing_token lease::token() const noexcept {
    const auto* const held = current();
    return held != nullptr ? held->token() : fencing_token{};
}

owner_id lease::owner() const noexcept {
    const auto* const held = current();
    return held != nullptr ? held->owner() : owner_id{};
}

clock::time_point lease::valid_until() const noexcept {
    const auto* const held = current();
    return held != nullptr ? held->valid_until() : clock::time_point{};
}

std::chrono::nanoseconds lease::remaining() const noexcept {
    const auto* const held = current();
    return held != nullptr ? held->remaining() : std::chrono::nanoseconds::zero();
}

bool lease::at_risk() const noexcept {
    return *this && hold_->remaining() < hold_->jeopardy();
}

std::stop_token lease::lost() const noexcept {
    const auto* const held = current();
    return held != nullptr ? held->lost() : std::stop_token{};
}

std::error_code lease::loss_reason() const noexcept {
    const auto why = hold_ ? hold_->loss() : errc{};
    return why == errc{} ? std::error_code{} : make_error_code(why);
}

std::string lease::loss_detail() const {
    return hold_ ? hold_->loss_detail() : std::string{};
}

void lease::check() const {
    if (current() == nullptr) {
        failure{errc::lost, "this lease is empty"}.raise("lease");
    }
    if (const auto why = hold_->loss(); why != errc{}) {
        failure{why, detail::with_reason(*hold_, "do not touch what it protects any more")}.raise(
            detail::describe(*hold_->from(), hold_->name()));
    }
}

/// No error: converted. `errc::busy`: other readers are there.
failure lease::convert(claim_mode to) {
    check();
    const auto lock = detail::describe(*hold_->from(), hold_->name());
    if (hold_->kind() != lock_kind::shared_mutex && hold_->kind() != lock_kind::mixed_mutex) {
        failure{errc::invalid_argument, "only a lease of a shared_mutex can be converted"}.raise(lock);
    }
    auto wrong = hold_->mode() == to ? failure{} : hold_->from()->convert(*hold_, to);
    if (wrong && wrong.code != errc::busy) {
        wrong.raise(lock);
    }
    return wrong;
}

lease lease::downgrade() {
    if (const auto wrong = convert(claim_mode::shared)) {
        wrong.raise(detail::describe(*hold_->from(), hold_->name()));
    }
    return std::move(*this);
}

std::optional<lease> lease::try_upgrade() {
    return convert(claim_mode::exclusive) ? std::nullopt : std::optional{std::move(*this)};
}

/// Keeps a hold that was lost before, so that its holder can still ask why.
release_outcome lease::give_back(std::chrono::milliseconds linger) noexcept {
    const auto& session = hold_->from();
    if (hold_->reentrant_thread() != 0 && !session->recursion().end_lease(*hold_)) {
        // Other levels of a `recursive_mutex` have the hold.
        left_ = hold_->loss() != errc{};
        if (!left_) {
            hold_.reset();
        }
        return left_ ? release_outcome::already_lost : release_outcome::released;
    }
    const auto outcome = session->release(*hold_, linger);
    if (outcome != release_outcome::already_lost) {
        hold_.reset();
    } else if (hold_->loss() == errc{}) {
        hold_->set_loss(errc::lost, "the store no longer had it when it was released");
    }
    return outcome;
}

release_outcome lease::release() noexcept {
    return current() != nullptr ? give_back({}) : release_outcome::already_lost;
}

release_outcome lease::release_after(std::chrono::milliseconds after) {
    if (current() == nullptr) {
        return release_outcome::already_lost;
    }
    const auto longest = hold_->from()->promises().maximum_ttl;
    if (after < std::chrono::milliseconds{0} || after > longest) {
        failure{errc::invalid_argument, "it cannot be kept taken for " + core::duration_text(after) +
                                            "; from 0 to " + core::duration_text(longest)}
            .raise(detail::describe(*hold_->from(), hold_->name()));
    }
    return give_back(after);
}

}  // namespace holdfast
