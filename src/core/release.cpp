#include <core/release.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

/// The store could be asked, and did nothing. That may change while the lease lasts: a full disk is
/// freed, a permission is granted.
[[nodiscard]] bool is_refusal_for_now(errc code) noexcept {
    return code == errc::store_error || code == errc::unauthorised;
}

/// Whether asking again can help. Everything else is refused for good.
[[nodiscard]] bool can_be_asked_again(errc code) noexcept {
    return code == errc::store_unavailable || code == errc::outcome_unknown || is_refusal_for_now(code);
}

}  // namespace

release::release(engines::release_request request, clock::time_point expires_by)
    : request_{std::move(request)}, expires_by_{expires_by} {}

const engines::release_request& release::ask(clock::time_point) {
    asking_ = true;
    wake_at_ = clock::time_point::max();
    return request_;
}

bool release::on_reply(const engines::release_reply& reply, clock::time_point now, double jitter) {
    using outcome = engines::release_reply::outcome;
    asking_ = false;
    if (reply.result != outcome::failed) {
        released_ = reply.result == outcome::released;
        gone_ = reply.result == outcome::gone;
        others_waiting_ = reply.others_waiting;
        trouble_ = {};
        return true;
    }
    trouble_ = reply.error;
    if (!can_be_asked_again(reply.error.code)) {
        return true;
    }
    unanswered_ += reply.error.code == errc::outcome_unknown ? 1 : 0;
    const auto pause =
        std::chrono::milliseconds{5} * (1LL << std::min<std::uint32_t>(failures_in_a_row_++, 6));
    wake_at_ = now + std::chrono::duration_cast<clock::duration>(pause * (0.5 + jitter / 2));
    return over(now);
}

bool release::refused() const noexcept {
    return is_refusal_for_now(trouble_.code);
}

release_outcome release::outcome(bool held) const noexcept {
    if (released_) {
        return held ? release_outcome::released : release_outcome::already_lost;
    }
    if (gone_) {
        return held && unanswered_ > 0 ? release_outcome::released : release_outcome::already_lost;
    }
    return held ? release_outcome::unknown : release_outcome::already_lost;
}

}  // namespace holdfast::core
