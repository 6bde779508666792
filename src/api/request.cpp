#include <api/request.hpp>

#include <core/names.hpp>
#include <core/terms.hpp>
#include <holdfast/detail/access.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace holdfast::detail {

namespace {

[[nodiscard]] core::terms terms_for(const session& from, std::string_view name,
                                    const lease_options& options) {
    core::terms result;
    if (const auto wrong = core::make_terms(options, from.promises(), result)) {
        wrong.raise(describe(from, name));
    }
    return result;
}

}  // namespace

std::string describe(const session& from, std::string_view name) {
    return "lock " + core::quote_name(name) + " on " + from.address();
}

std::string with_reason(const hold& lost, const std::string& advice) {
    const auto reason = lost.loss_detail();
    return reason.empty() ? advice : reason + "; " + advice;
}

void check(const session& from, std::string_view name, const lease_options& options) {
    if (const auto wrong = core::check_name(name)) {
        wrong.raise("on " + from.address());
    }
    static_cast<void>(terms_for(from, name, options));
}

patience patience::until(clock::time_point deadline) {
    return deadline <= clock::now() ? none() : patience{true, deadline};
}

core::claim claim_for(const session& from, const std::string& name, const lease_options& options,
                      const claim_kind& kind, const patience& how_long) {
    return {name,
            kind.mode,
            kind.permits,
            kind.limit,
            terms_for(from, name, options),
            how_long.deadline,
            how_long.wait,
            kind.kind};
}

std::shared_ptr<hold> take(const std::shared_ptr<session>& from, const std::string& name,
                           const lease_options& options, const claim_kind& kind,
                           const patience& how_long, const std::stop_token& stop) {
    const auto request = claim_for(*from, name, options, kind, how_long);
    auto result = from->acquire(request, stop);
    if (result.error && result.error.code != errc::busy && result.error.code != errc::cancelled) {
        result.error.raise(describe(*from, name));
    }
    return std::move(result.taken);
}

std::optional<lease> to_lease(std::shared_ptr<hold> taken) {
    return taken ? std::optional{access::lease_of(std::move(taken))} : std::nullopt;
}

void programming_error(const char* mistake) noexcept {
    std::fprintf(stderr, "holdfast: %s\n", mistake);
    std::abort();
}

}  // namespace holdfast::detail
