#include <runtime/joint_hold.hpp>
#include <runtime/session_call.hpp>

/// What a session does for a `multi_lock`.
namespace holdfast::detail {

void session::release_together(const std::vector<std::shared_ptr<hold>>& which, std::size_t from,
                               std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept {
    if (forked()) {
        for (auto index = from; index < to; ++index) {
            answers->put(index, release_outcome::already_lost);
        }
        return;
    }
    // No call waits for them, so all are sent at once, from this thread, and none is waited for.
    drive([&](core::lock_table& table, clock::time_point now) {
        for (auto index = from; index < to; ++index) {
            tallies_.emplace(which[index]->number(), tally_place{answers, index});
            table.release_hold(which[index]->number(), {}, now);
        }
    });
}

}  // namespace holdfast::detail
