#include <holdfast/latch.hpp>

#include <api/request.hpp>
#include <core/names.hpp>
#include <holdfast/client.hpp>

#include <utility>

namespace holdfast {

namespace {

using operation = engines::latch_request::operation;

[[nodiscard]] std::string describe(const detail::session& where, const std::string& name) {
    return "latch " + core::quote_name(name) + " on " + where.address();
}

engines::latch_reply ask(detail::session& where, engines::latch_request request) {
    const auto name = request.name;
    auto reply = where.latch(std::move(request));
    if (reply.error) {
        reply.error.raise(describe(where, name));
    }
    return reply;
}

}  // namespace

latch::latch(client& owner, std::string name) : session_{owner.shared()}, name_{std::move(name)} {
    if (const auto wrong = core::check_name(name_)) {
        wrong.raise("on " + session_->address());
    }
    if (!session_->promises().latches) {
        const auto& why = session_->promises().why_no_latches;
        failure{errc::guarantee_not_met, why.empty() ? "this store has no latches" : why}.raise(
            describe(*session_, name_));
    }
}

latch::~latch() = default;

bool latch::try_set(std::uint32_t count, std::chrono::milliseconds lifetime) {
    if (lifetime < session_->promises().minimum_ttl || lifetime > session_->promises().maximum_ttl) {
        failure{errc::invalid_argument,
                "a lifetime of " + std::to_string(lifetime.count()) + " ms is out of range"}
            .raise(describe(*session_, name_));
    }
    return ask(*session_, {operation::set, name_, count, lifetime, {}}).applied;
}

void latch::count_down(std::uint32_t by) {
    ask(*session_, {operation::count_down, name_, by, {}, {}});
}

std::uint32_t latch::count() const {
    return ask(*session_, {operation::read, name_, 0, {}, {}}).count;
}

void latch::wait() const {
    static_cast<void>(wait(std::stop_token{}));
}

bool latch::wait(std::stop_token stop) const {
    return wait_until(clock::now() + detail::longest_wait, std::move(stop));
}

bool latch::wait_until(clock::time_point deadline, std::stop_token stop) const {
    const auto wrong = session_->wait_for_latch(name_, deadline, stop);
    if (wrong && wrong.code != errc::busy && wrong.code != errc::cancelled) {
        wrong.raise(describe(*session_, name_));
    }
    return !wrong;
}

}  // namespace holdfast
