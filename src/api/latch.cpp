#include <holdfast/latch.hpp>

#include <api/request.hpp>
#include <core/duration_text.hpp>
#include <core/names.hpp>
#include <holdfast/detail/access.hpp>

#include <optional>
#include <utility>

namespace holdfast {

namespace {

using operation = engines::latch_request::operation;

[[nodiscard]] std::string describe(const detail::session& where, const std::string& name) {
    return "latch " + core::quote_name(name) + " on " + where.address();
}

/// A negative number was made a large one on its way here.
void check_count(const detail::session& where, const std::string& name, std::uint32_t count) {
    if (count > latch::most) {
        failure{errc::invalid_argument, "it cannot count " + std::to_string(count) +
                                            " (a negative number?); at most " +
                                            std::to_string(latch::most) + " are allowed"}
            .raise(describe(where, name));
    }
}

engines::latch_reply ask(detail::session& where, engines::latch_request request) {
    const auto name = request.name;
    auto reply = where.queries().latch(std::move(request));
    if (reply.error) {
        reply.error.raise(describe(where, name));
    }
    return reply;
}

}  // namespace

latch::latch(client& owner, std::string name)
    : session_{detail::access::session_of(owner)}, name_{std::move(name)} {
    if (name_.empty()) {
        failure{errc::invalid_name, "a latch needs a name; this one is empty"}.raise(
            "on " + session_->address());
    }
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
    if (count == 0) {
        failure{errc::invalid_argument, "it must count from at least 1"}.raise(
            describe(*session_, name_));
    }
    check_count(*session_, name_, count);
    const auto shortest = session_->promises().minimum_ttl;
    const auto longest = session_->promises().maximum_ttl;
    if (lifetime <= std::chrono::milliseconds{0} || lifetime < shortest || lifetime > longest) {
        failure{errc::invalid_argument, "a lifetime of " + core::duration_text(lifetime) +
                                            " is out of range; this store takes " +
                                            core::duration_text(shortest) + " to " +
                                            core::duration_text(longest)}
            .raise(describe(*session_, name_));
    }
    return ask(*session_, {operation::set, name_, count, lifetime, {}}).applied;
}

void latch::count_down(std::uint32_t by) {
    check_count(*session_, name_, by);
    ask(*session_, {operation::count_down, name_, by, {}, {}});
}

std::uint32_t latch::count() const {
    return ask(*session_, {operation::read, name_, 0, {}, {}}).count;
}

void latch::wait() const {
    static_cast<void>(wait_unless_stopped({}));
}

bool latch::wait_unless_stopped(std::stop_token stop) const {
    return wait_until(clock::now() + detail::longest_wait, std::move(stop));
}

void latch::arrive_and_wait(std::uint32_t by) {
    check_count(*session_, name_, by);
    const auto arrived = ask(*session_, {operation::count_down, name_, by, {}, {}});
    if (arrived.count > 0) {
        const auto wrong = session_->queries().wait_for_latch(
            name_, clock::now() + detail::longest_wait, {},
            arrived.known ? std::optional{arrived.life} : std::nullopt);
        if (wrong) {
            wrong.raise(describe(*session_, name_));
        }
    }
}

bool latch::wait_until(clock::time_point deadline, std::stop_token stop) const {
    const auto wrong = session_->queries().wait_for_latch(name_, deadline, stop, std::nullopt);
    if (wrong && wrong.code != errc::busy && wrong.code != errc::cancelled) {
        wrong.raise(describe(*session_, name_));
    }
    return !wrong;
}

}  // namespace holdfast
