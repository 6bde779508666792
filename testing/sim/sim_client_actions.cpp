#include <sim_client.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::sim {

user* sim_client::user_of(core::waiter_id call) noexcept {
    const auto found = std::find_if(users_.begin(), users_.end(), [&](const user& who) {
        return who.call == call && who.doing != user::state::idle;
    });
    return found == users_.end() ? nullptr : &*found;
}

void sim_client::check_after_step() {
    if (handed_over_) {
        world_.run.log.violated("released means released", "client ", +number_,
                                " reports the release of owner ", handed_over_->sequence,
                                ", but neither asked the store nor handed it to another user");
    }
    for (const auto& owner : std::exchange(overstayed_, {})) {
        if (!connection_->state_of(owner).release_sent) {
            world_.run.log.violated("max_hold frees the lock", "client ", +number_, ": owner ",
                                    owner.sequence,
                                    " reached its max_hold, and was not given back to the store");
        }
    }
}

bool sim_client::take(core::waiter_id whose, const core::send_acquire& task, follow_up&) {
    if (auto* const who = user_of(whose); who != nullptr && who->doing == user::state::waiting) {
        who->answer_by = task.deadline;
    }
    return false;
}

/// A thread is awake after a while, and looks whether the lock is still free.
void sim_client::perform(const core::offer_turn& what, follow_up&) {
    auto* who = user_of(what.id);
    if (who == nullptr || who->doing != user::state::waiting) {
        world_.run.log.violated("every call ends once", "client ", +number_, " offers call ", what.id,
                                " a turn, and nobody waits for it");
        return;
    }
    handed_over_.reset();
    happening event;
    event.what = what_happens::user_is_awake;
    event.client = number_;
    event.life = life_;
    event.subject = static_cast<std::uint32_t>(who - users_.data());
    event.detail = who->turn;
    world_.run.log.note("client ", +number_, ": offers ", who->asked.name, " to user ", event.subject);
    world_.run.after(world_.run.random.between(0us, world_.run.numbers.longest_awakening), event);
}

void sim_client::perform(const core::finish_acquire& what, follow_up&) {
    auto* who = user_of(what.id);
    if (who == nullptr || who->doing != user::state::waiting) {
        world_.run.log.violated("every call ends once", "client ", +number_, " ends call ", what.id,
                                what.error ? " without a lock" : " with a lock",
                                ", for which nobody waits");
        return;
    }
    world_.run.log.hash({what.id, static_cast<std::uint64_t>(what.error.code), what.token.value});
    check_told_in_time(*who);
    if (!what.error) {
        grant(*who, what);
        return;
    }
    check_reason(*who, what.error.code);
    const auto index = static_cast<std::uint32_t>(who - users_.data());
    world_.run.log.note("client ", +number_, " user ", index, ": does not get ", who->asked.name, " (",
                        what.error.detail, ")");
    end_round(*who);
    schedule_user(index, world_.run.random.between(0us, world_.run.numbers.longest_work));
}

void sim_client::grant(user& who, const core::finish_acquire& what) {
    const auto now = world_.run.now();
    const auto index = static_cast<std::uint32_t>(&who - users_.data());
    world_.run.log.note("client ", +number_, " user ", index, ": holds ", who.asked.name, ", token ",
                        what.token.value, ", valid until ", relative(what.valid_until));
    if (handed_over_ && *handed_over_ == what.owner) {
        handed_over_.reset();
    }
    if (now >= what.valid_until) {
        world_.run.log.violated("a grant is valid", "client ", +number_, " is given \"", who.asked.name,
                                "\" which was valid until ", relative(what.valid_until));
    }
    who.doing = user::state::holding;
    who.lost = false;
    who.seen.reset();
    who.hold = {0,          number_,    who.lock,        who.asked.mode, who.asked.permits,
                what.token, what.owner, what.valid_until};
    who.hold.serial = world_.judge.hold_begins(who.hold, who.began_after);
    who.told_by = what.valid_until;
    check_validity_is_covered(who);
    auto& random = world_.run.random;
    who.careful = !random.one_in(3);
    who.writes_left = random.pick(3);
    who.may_convert =
        who.lock == readers_and_writers && world_.run.has(feature::convert) && random.one_in(2);
    const bool slow = world_.run.has(feature::late_release) && random.one_in(4);
    schedule_user(index, random.between(0us, slow ? 2 * world_.run.numbers.ttl
                                                  : world_.run.numbers.longest_work / 4));
    schedule_check(what_happens::check_validity, index, what.valid_until);
}

void sim_client::perform(const core::finish_release& what, follow_up&) {
    auto* who = user_of(what.id);
    if (who == nullptr || who->doing != user::state::releasing) {
        world_.run.log.violated("every call ends once", "client ", +number_, " ends release ", what.id,
                                ", for which nobody waits");
        return;
    }
    const auto index = static_cast<std::uint32_t>(who - users_.data());
    world_.run.log.hash({what.id, static_cast<std::uint64_t>(what.outcome)});
    world_.run.log.note("client ", +number_, " user ", index, ": has let go of ", who->asked.name,
                        what.outcome == release_outcome::released       ? ", released"
                        : what.outcome == release_outcome::already_lost ? ", already lost"
                                                                        : ", outcome unknown");
    if (what.outcome == release_outcome::released) {
        if (!connection_->state_of(who->hold.owner).release_sent) {
            handed_over_ = who->hold.owner;
        } else if (world_.store.has(who->hold.owner, who->lock)) {
            world_.run.log.violated("released means released", "client ", +number_,
                                    " reports the release of \"", who->asked.name, "\" with token ",
                                    who->hold.token.value, ", but the store still has it");
        }
    }
    end_round(*who);
    schedule_user(index, world_.run.random.between(0us, world_.run.numbers.longest_work));
}

void sim_client::perform(const core::finish_convert& what, follow_up&) {
    if (std::erase(left_conversions_, what.id) == 1) {
        world_.run.log.note("client ", +number_, ": a conversion ends after its lease");
        return;
    }
    auto* who = user_of(what.id);
    if (who == nullptr || who->doing != user::state::converting) {
        world_.run.log.violated("every call ends once", "client ", +number_, " ends conversion ",
                                what.id, ", for which nobody waits");
        return;
    }
    const auto index = static_cast<std::uint32_t>(who - users_.data());
    world_.run.log.note("client ", +number_, " user ", index, ": conversion ",
                        what.error ? "failed" : "done");
    who->doing = user::state::holding;
    if (!what.error) {
        who->hold.mode = who->converting_to;
        who->hold.token = what.token;
        world_.judge.hold_changes_mode(who->hold.serial, who->hold.mode, what.token);
    }
    schedule_user(index, world_.run.random.between(0us, world_.run.numbers.longest_work / 4));
}

void sim_client::perform(const core::set_validity& what, follow_up&) {
    auto* who = user_of(what.id);
    if (who == nullptr || who->lost) {
        world_.run.log.violated("loss is final", "client ", +number_, " extends hold ", what.id,
                                ", which is over");
        return;
    }
    // It may end early: a store that has lost it says so when it is converted.
    if (who->asked.terms.renewal == renewal_mode::none && what.valid_until >= who->hold.valid_until) {
        world_.run.log.violated("a fixed lease stays fixed", "client ", +number_, " extends hold ",
                                what.id, ", which is not to be renewed");
    }
    who->hold.valid_until = what.valid_until;
    who->told_by = std::max(who->told_by, what.valid_until);
    world_.judge.hold_extended(who->hold.serial, what.valid_until);
    check_validity_is_covered(*who);
}

void sim_client::perform(const core::tell_loss& what, follow_up&) {
    auto* who = user_of(what.id);
    if (who == nullptr || who->lost) {
        world_.run.log.violated("every loss is told once", "client ", +number_,
                                " tells the loss of hold ", what.id, ", which is over");
        return;
    }
    world_.run.log.note("client ", +number_, " user ", who - users_.data(), ": lost ", who->asked.name,
                        " (", what.why.detail, ")");
    who->lost = true;
    if (what.why.code == errc::max_hold_exceeded) {
        overstayed_.push_back(who->hold.owner);
    }
    world_.judge.hold_ends(who->hold.serial);
}

}  // namespace holdfast::testing::sim
