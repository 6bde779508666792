#include <quorum/engine.hpp>

#include <common/quiet_thread.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

/// Releases that nobody waits for, and what members did not confirm to be rid of.
namespace holdfast::engines::quorums {

/// A release that was decided on under the mutex, and counted there as a request without an answer:
/// until it is sent, the same owner must not ask again, or what it is granted then would be taken away.
void quorum_engine::release_announced(std::size_t member, const hold_key& key, const owner_id& owner,
                                      claim_mode mode, lock_kind kind) {
    release_quietly(member, key, owner, mode, kind);
    const std::lock_guard lock{guard_};
    if (const auto found = holds_.find(key); found != holds_.end()) {
        found->second.unanswered -= found->second.unanswered > 0 ? 1 : 0;
    }
}

/// Nobody waits for the answer. If there is none, it is told again later.
void quorum_engine::release_quietly(std::size_t member, const hold_key& key, const owner_id& owner,
                                    claim_mode mode, lock_kind kind) {
    release_request request{.name = key.first, .mode = mode, .owner = owner, .kind = kind};
    const auto deadline = now() + quiet_timeout;
    use(member, [&](engine& store) {
        store.release(std::move(request), {deadline, caller::must_not_block},
                      [this, key, member, owner, mode, kind](const release_reply& reply) {
                          const std::lock_guard lock{guard_};
                          note_answer(member, reply.error);
                          const auto found = holds_.find(key);
                          if (found != holds_.end() && reply.result == release_reply::outcome::failed) {
                              keep_leftover({member, key, owner, mode, kind, found->second.forget_at},
                                            found->second);
                          }
                      });
    });
}

/// What a later request gives back: all of its own owner's, and what is left on members that answer.
/// Without a request: all, some at a time. Under the mutex.
std::vector<leftover> quorum_engine::take_leftovers(const hold_key* asking) {
    std::vector<leftover> due;
    const auto when = now();
    std::erase_if(leftovers_, [&](leftover& one) {
        if (one.until <= when) {
            return true;
        }
        const bool wanted = asking == nullptr || one.key == *asking || !suspects_[one.member];
        if (!wanted || due.size() == leftovers_at_once) {
            return false;
        }
        due.push_back(std::move(one));
        return true;
    });
    return due;
}

void quorum_engine::give_back(const std::vector<leftover>& all) {
    for (const auto& one : all) {
        release_quietly(one.member, one.key, one.owner, one.mode, one.kind);
    }
}

/// Under the mutex.
void quorum_engine::keep_leftover(leftover one, hold& of) {
    if (member_owner(one.key.second, of.attempt) == one.owner) {
        if (of.is != hold::state::idle || of.asking) {
            return;  // asked for again, as the same owner: it is no leftover any more
        }
        ++of.attempt;
    }
    if (leftovers_.size() < most_leftovers) {
        leftovers_.push_back(std::move(one));
        start_repeating();
        missed_.notify_all();
    }
}

/// Under the mutex.
void quorum_engine::start_repeating() noexcept {
    if (!repeats_ || repeater_.joinable()) {
        return;
    }
    try {
        repeater_ = quiet_thread([this](const std::stop_token& stop) { tell_again(stop); });
    } catch (const std::system_error&) {
        // no thread to be had: with the next leftover, or the next request
    }
}

void quorum_engine::tell_again(const std::stop_token& stop) {
    std::unique_lock lock{guard_};
    while (missed_.wait(lock, stop, [this] { return !leftovers_.empty(); })) {
        missed_.wait_for(lock, stop, between_repeats, [] { return false; });
        if (stop.stop_requested()) {
            return;
        }
        const auto due = take_leftovers(nullptr);
        lock.unlock();
        give_back(due);
        lock.lock();
    }
}

}  // namespace holdfast::engines::quorums
