#include <holdfast/semaphore.hpp>

#include <api/request.hpp>
#include <holdfast/detail/access.hpp>

#include <utility>

namespace holdfast {

using detail::patience;

namespace {

[[nodiscard]] detail::claim_kind permit(const detail::session& where, const std::string& name,
                                        std::uint32_t permits, std::uint32_t limit) {
    if (permits == 0 || permits > limit) {
        failure{errc::invalid_argument, std::to_string(permits) + " permits of " +
                                            std::to_string(limit) + " can never be had; ask for 1 to " +
                                            std::to_string(limit)}
            .raise(detail::describe(where, name));
    }
    return {claim_mode::permit, permits, limit, lock_kind::semaphore};
}

}  // namespace

semaphore::semaphore(client& owner, std::string name, std::uint32_t limit, lease_options options)
    : session_{detail::access::session_of(owner)},
      name_{std::move(name)},
      limit_{limit},
      options_{options} {
    detail::check(*session_, name_, options_);
    if (limit_ == 0) {
        failure{errc::invalid_argument, "a semaphore needs at least one permit"}.raise(
            detail::describe(*session_, name_));
    }
    if (!session_->promises().permits) {
        const auto& why = session_->promises().why_no_permits;
        failure{errc::guarantee_not_met, why.empty() ? "this store has no semaphores" : why}.raise(
            detail::describe(*session_, name_));
    }
}

semaphore::~semaphore() = default;

lease semaphore::acquire(std::uint32_t permits) {
    return detail::access::lease_of(detail::take(
        session_, name_, options_, permit(*session_, name_, permits, limit_), patience::unlimited()));
}

std::optional<lease> semaphore::acquire_unless_stopped(std::uint32_t permits, std::stop_token stop) {
    return detail::to_lease(detail::take(session_, name_, options_,
                                         permit(*session_, name_, permits, limit_),
                                         patience::unlimited(), stop));
}

std::optional<lease> semaphore::try_acquire(std::uint32_t permits) {
    return detail::to_lease(detail::take(session_, name_, options_,
                                         permit(*session_, name_, permits, limit_), patience::none()));
}

std::optional<lease> semaphore::acquire_until(std::uint32_t permits, clock::time_point deadline,
                                              std::stop_token stop) {
    return detail::to_lease(detail::take(session_, name_, options_,
                                         permit(*session_, name_, permits, limit_),
                                         patience::until(deadline), stop));
}

}  // namespace holdfast
