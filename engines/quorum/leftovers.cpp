#include <quorum/leftovers.hpp>

#include <common/quiet_thread.hpp>

#include <system_error>
#include <utility>

namespace holdfast::engines::quorums {

void leftover_list::end() {
    {
        const std::lock_guard lock{holds_.guard};
        repeats_ = false;
    }
    repeater_ = {};
    std::vector<leftover> last;
    {
        const std::lock_guard lock{holds_.guard};
        last.swap(leftovers_);
    }
    for (const auto& each : last) {
        release(each.claim);
    }
}

void leftover_list::release(const member_claim& claim) {
    const release_request request{
        .name = claim.key.first, .mode = claim.mode, .owner = claim.owner, .kind = claim.kind};
    const call limits{members_.now() + quiet_timeout, caller::must_not_block};
    members_.ask(claim.member, &engine::release, request, limits,
                 [this, claim](const release_reply& reply) {
                     const std::lock_guard lock{holds_.guard};
                     auto* const hold = holds_.find(claim.key);
                     if (hold != nullptr && reply.result == release_reply::outcome::failed) {
                         keep(claim, hold->forget_at, *hold);
                     }
                 });
}

void leftover_list::release_all(const std::vector<member_claim>& claims) {
    for (const auto& claim : claims) {
        release(claim);
    }
}

void leftover_list::release_announced(const member_claim& claim) {
    release(claim);
    const std::lock_guard lock{holds_.guard};
    holds_.on_release_sent(claim.key);
}

std::vector<member_claim> leftover_list::take(const hold_key* asking) {
    constexpr std::size_t most_at_once = 32;
    std::vector<member_claim> due;
    std::erase_if(leftovers_, [&, now = members_.now()](leftover& one) {
        if (one.until <= now) {
            return true;
        }
        const bool wanted =
            asking == nullptr || one.claim.key == *asking || !members_.suspect(one.claim.member);
        if (!wanted || due.size() == most_at_once) {
            return false;
        }
        due.push_back(std::move(one.claim));
        return true;
    });
    return due;
}

void leftover_list::keep(member_claim claim, clock::time_point until, hold& hold) {
    if (hold.owner_at_members() == claim.owner) {
        if (hold.current != hold::state::idle || hold.vote) {
            return;  // The owner has asked again: it is no leftover any more.
        }
        ++hold.attempt;
    }
    if (!full()) {
        leftovers_.push_back({std::move(claim), until});
        start_repeating();
        added_.notify_all();
    }
}

/// Under the guard.
void leftover_list::start_repeating() noexcept {
    if (!repeats_ || repeater_.joinable()) {
        return;
    }
    try {
        repeater_ = quiet_thread([this](const std::stop_token& stop) { tell_again(stop); });
    } catch (const std::system_error&) {
        // No thread to be had: the next leftover starts it, or the next request tells the member.
    }
}

void leftover_list::tell_again(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds between_repeats{250};
    std::unique_lock lock{holds_.guard};
    while (added_.wait(lock, stop, [this] { return !leftovers_.empty(); })) {
        added_.wait_for(lock, stop, between_repeats, [] { return false; });
        if (stop.stop_requested()) {
            return;
        }
        const auto due = take(nullptr);
        lock.unlock();
        release_all(due);
        lock.lock();
    }
}

}  // namespace holdfast::engines::quorums
