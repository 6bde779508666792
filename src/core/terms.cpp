#include <core/duration_text.hpp>
#include <core/terms.hpp>

#include <algorithm>
#include <string>

namespace holdfast::core {

namespace {

using std::chrono::milliseconds;

[[nodiscard]] failure refuse(std::string why) {
    return {errc::invalid_argument, std::move(why)};
}

}  // namespace

failure make_terms(const lease_options& options, const engines::guarantees& promises, terms& result) {
    if (options.ttl <= milliseconds{0} || options.ttl < promises.minimum_ttl ||
        options.ttl > promises.maximum_ttl) {
        return refuse("a ttl of " + duration_text(options.ttl) + " is out of range; this store takes " +
                      duration_text(promises.minimum_ttl) + " to " +
                      duration_text(promises.maximum_ttl));
    }
    // Two clocks may run apart by 500 ppm, the most that the kernel corrects: 1.8 s in an hour.
    const auto clocks_apart = (options.ttl + milliseconds{1999}) / 2000;
    const auto margin = options.safety_margin.value_or(
        std::max(std::clamp(options.ttl / 20, milliseconds{5}, milliseconds{500}), clocks_apart));
    if (margin < milliseconds{0} || margin > options.ttl / 2) {
        return refuse("a safety margin of " + duration_text(margin) + " does not fit a ttl of " +
                      duration_text(options.ttl) + "; use at most half of it");
    }
    const auto drift = promises.drift.over(options.ttl);
    if (margin + drift > options.ttl / 2) {
        return refuse("a safety margin of " + duration_text(margin) + " and a drift of " +
                      duration_text(drift) + " do not fit a ttl of " + duration_text(options.ttl) +
                      "; use a longer one");
    }
    const auto jeopardy = options.jeopardy.value_or(options.ttl / 3);
    if (jeopardy < milliseconds{0} || jeopardy > options.ttl) {
        return refuse("jeopardy at " + duration_text(jeopardy) + " does not fit a ttl of " +
                      duration_text(options.ttl) + "; use 0 ms to the ttl");
    }
    if (options.renewal != renewal_mode::automatic && options.renewal != renewal_mode::none) {
        return refuse("a renewal that is neither automatic nor none makes no sense");
    }
    if (options.max_hold &&
        (*options.max_hold <= milliseconds{0} || *options.max_hold > promises.maximum_ttl)) {
        return refuse("a max_hold of " + duration_text(*options.max_hold) +
                      " is out of range; it may be 1 ms to " + duration_text(promises.maximum_ttl));
    }
    if (options.release_timeout < milliseconds{0} || options.release_timeout > promises.maximum_ttl) {
        return refuse("a release timeout of " + duration_text(options.release_timeout) +
                      " is out of range; it may be 0 ms to " + duration_text(promises.maximum_ttl));
    }
    if (options.replicas != replica_policy{} && !promises.replicas) {
        return {errc::guarantee_not_met, "this store has no replicas that could confirm a lock"};
    }
    result.ttl = options.ttl;
    result.renewal = options.renewal;
    result.shortest_ttl = std::max(promises.minimum_ttl, milliseconds{1});
    result.margin = margin + drift;
    result.jeopardy = jeopardy;
    result.max_hold = options.max_hold;
    result.release_timeout = options.release_timeout;
    result.replicas = options.replicas;
    return {};
}

}  // namespace holdfast::core
