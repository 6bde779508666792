#include <sim_client.hpp>

#include <algorithm>

namespace holdfast::testing::sim {

void sim_client::check_quiet() {
    if (!count().quiet()) {
        return;
    }
    for (const auto& one : connection_->owners()) {
        if (one.unknown && !one.release_sent && world_.run.now() < one.forgotten_by) {
            world_.run.log.violated("unknown is never guessed", "client ", +number_,
                                    " has nothing to do any more, but whether the store granted owner ",
                                    one.owner.sequence, " was never found out nor taken back");
        }
    }
    world_.store.check_left_behind(identity_);
    if (world_.net.watched_by(number_)) {
        world_.run.log.violated("nothing is left behind", "client ", +number_,
                                " has nothing to do any more, but still watches");
    }
    if (shutting_down_) {
        crash(world_.run.random.between(0ms, 10ms));
    }
}

void sim_client::check_call(const happening& event) {
    if (event.life != life_ || !running()) {
        return;
    }
    const auto& who = users_[event.subject];
    if (event.detail != who.turn || who.doing != user::state::waiting) {
        return;
    }
    if (paused()) {
        schedule_check(what_happens::check_call, event.subject, paused_until_);
        return;
    }
    if (who.answer_by && world_.run.now() <= *who.answer_by) {
        schedule_check(what_happens::check_call, event.subject, *who.answer_by);
        return;
    }
    world_.run.log.violated("calls end in time", "client ", +number_, " user ", event.subject,
                            " still waits for \"", who.asked.name, "\" after its deadline");
}

void sim_client::check_release(const happening& event) {
    if (event.life != life_ || !running()) {
        return;
    }
    const auto& who = users_[event.subject];
    if (event.detail != who.turn || who.doing != user::state::releasing) {
        return;
    }
    if (paused()) {
        schedule_check(what_happens::check_release, event.subject, paused_until_);
        return;
    }
    world_.run.log.violated("calls end in time", "client ", +number_, " user ", event.subject,
                            " still waits for its release of \"", who.asked.name,
                            "\" after the release timeout");
}

void sim_client::check_validity(const happening& event) {
    if (event.life != life_ || !running()) {
        return;
    }
    const auto& who = users_[event.subject];
    const bool holds = who.doing == user::state::holding || who.doing == user::state::converting;
    if (event.detail != who.turn || !holds || who.lost) {
        return;
    }
    if (paused()) {
        schedule_check(what_happens::check_validity, event.subject, paused_until_);
        return;
    }
    if (world_.run.now() <= who.told_by) {
        schedule_check(what_happens::check_validity, event.subject, who.told_by);
        return;
    }
    world_.run.log.violated("loss is told in time", "client ", +number_, " user ", event.subject,
                            " holds \"", who.asked.name, "\" with token ", who.hold.token.value,
                            ", which was valid until ", relative(who.told_by),
                            ", and has not been told");
}

/// The store's word that a lease is gone is not to be doubted, unless it was asked about a mode that
/// the lease has no more.
void sim_client::check_gone_is_told(const message& what) {
    const auto* replies = std::get_if<renew_replies>(&what.answer);
    if (replies == nullptr) {
        return;
    }
    const auto& batch = std::get<renew_requests>(what.asked);
    for (std::size_t i = 0; i < replies->size(); ++i) {
        if ((*replies)[i].result != engines::renew_reply::outcome::gone) {
            continue;
        }
        for (const auto& who : users_) {
            const bool holds =
                who.doing == user::state::holding || who.doing == user::state::converting;
            if (holds && !who.lost && who.hold.owner == batch[i].owner &&
                who.hold.mode == batch[i].mode) {
                world_.run.log.violated("loss is told in time", "the store told client ", +number_,
                                        " that \"", batch[i].name, "\" with token ",
                                        who.hold.token.value, " is gone, and its user was not told");
            }
        }
    }
}

/// What a user may count on ends before the store would give the lock to another.
void sim_client::check_validity_is_covered(const user& who) {
    if (!world_.run.store_kept_its_word || world_.run.now() >= who.hold.valid_until) {
        return;
    }
    const auto expiry = world_.store.expiry(who.hold.owner, who.lock);
    if (!expiry || *expiry < who.hold.valid_until) {
        world_.run.log.violated("validity is pessimistic", "client ", +number_, " counts on \"",
                                who.asked.name, "\" with token ", who.hold.token.value, " until ",
                                relative(who.hold.valid_until), ", but the store ",
                                expiry ? "forgets it at " + relative(*expiry) : "has forgotten it");
    }
}

void sim_client::check_told_in_time(const user& who) {
    if (!who.asked.deadline || !who.asked.wait) {
        return;
    }
    // After a pause everything is done at the moment of waking up. One who asks late waits for the
    // answer.
    const auto end = std::max(*who.asked.deadline, last_resume_);
    if (world_.run.now() > std::max(end, who.answer_by.value_or(end))) {
        world_.run.log.violated("calls end in time", "client ", +number_, ": a call for \"",
                                who.asked.name, "\" ended after its deadline");
    }
}

/// Only who has asked may be in doubt, and only when the network or the store is to blame.
void sim_client::check_reason(const user& who, errc why) {
    if (why == errc::outcome_unknown && !who.answer_by) {
        world_.run.log.violated("doubt has a reason", "client ", +number_, ": a call for \"",
                                who.asked.name, "\" ended in doubt, and nothing was asked for it");
    }
    const bool failed = why == errc::outcome_unknown || why == errc::store_unavailable;
    if (failed && world_.run.numbers.wake_up_bound > 0us) {
        world_.run.log.violated("doubt has a reason", "client ", +number_, ": a call for \"",
                                who.asked.name, "\" failed, although the store answers everybody");
    }
}

bool sim_client::waited_since(std::size_t lock, clock::time_point since) const noexcept {
    return running() && !paused() && std::any_of(users_.begin(), users_.end(), [&](const user& who) {
               return who.waits_for(lock) && who.since < since;
           });
}

bool sim_client::has_read_waiting(std::size_t lock, clock::time_point since) const noexcept {
    return running() && !paused() && std::any_of(users_.begin(), users_.end(), [&](const user& who) {
               return who.waits_for(lock) && who.since < since && who.asked.mode == claim_mode::shared;
           });
}

void sim_client::check_at_end() {
    if (!finished()) {
        world_.run.log.violated("everybody finishes", "client ", +number_,
                                " has users who are not done at ", relative(world_.run.now()));
        return;
    }
    if (!running()) {
        return;
    }
    const auto left = count();
    if (!left.quiet()) {
        world_.run.log.violated("nothing is left behind", "client ", +number_,
                                " has nothing to do any more, but keeps waiters ", left.waiters,
                                ", contests ", left.contests, ", tenures ", left.tenures, ", holds ",
                                left.holds, ", releases ", left.releases, ", names ", left.names,
                                ", requests ", left.requests);
        return;
    }
    check_quiet();
}

}  // namespace holdfast::testing::sim
