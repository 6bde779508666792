#include <core/lock_table.hpp>

/// How those who want permits or a share of one name ask the store.
///
/// Everybody needs a grant of its own, but of a thousand threads a few ask: all at once they would keep
/// the store busy with refusals. The others stand in the order they came. "Busy" keeps those from
/// asking who want as much or more; a grant lets more of them ask; when the name may have become free,
/// the first asks. As long as somebody stands here, somebody contends.
namespace holdfast::core {

std::uint32_t lock_table::most_asking(const line& here) const {
    return std::min(here.window, settings_.contention.most_asking);
}

/// Those in trouble count: a store that does not answer is not asked by more of them.
std::size_t lock_table::count_asking(const line& here) const {
    return static_cast<std::size_t>(
        std::count_if(here.contests.begin(), here.contests.end(), [this](contest_id id) {
            const auto& who = contests_.at(id);
            return who.in_turn && !who.way.waiting();
        }));
}

/// Whether the store has told one who wants no more than this that it is busy.
bool lock_table::is_refused(const line& here, const claim& what) const {
    return std::any_of(here.contests.begin(), here.contests.end(), [&](contest_id id) {
        const auto& who = contests_.at(id);
        const auto& asked = who.way.claim();
        return who.in_turn && who.way.waiting() && asked.mode == what.mode &&
               asked.limit == what.limit && asked.permits <= what.permits;
    });
}

/// Whenever somebody came, left or was answered.
void lock_table::let_some_ask(const std::string& name, clock::time_point now) {
    const auto found = names_.find(name);
    if (found == names_.end() || !found->second.waiting || shut_down_) {
        return;
    }
    auto& here = *found->second.waiting;
    while (!here.standing.empty() && count_asking(here) < most_asking(here)) {
        const auto next = std::find_if(here.standing.begin(), here.standing.end(), [&](waiter_id id) {
            return !is_refused(here, waiters_.at(id).what);
        });
        if (next == here.standing.end()) {
            return;
        }
        const auto& who = waiters_.at(*next);
        here.standing.erase(next);
        start_contest(found->second, who, now, now);
    }
}

/// The name may have become free: the first of those who ask in turn finds out for the others. The
/// answers to requests under way may be older than the news: if they are "busy", they do not count.
void lock_table::let_first_ask(const std::string& name, clock::time_point now) {
    const auto found = names_.find(name);
    if (found == names_.end() || !found->second.waiting) {
        return;
    }
    bool asks = false;
    for (const auto id : found->second.waiting->contests) {
        auto& who = contests_.at(id);
        if (who.in_turn && waiters_.contains(who.sole) && (!asks || who.way.asking())) {
            step(who, who.way.on_hint(), now);
            asks = asks || who.way.asking();
        }
    }
}

/// One of them was granted it: there may be more.
void lock_table::let_more_ask(line& here, clock::time_point now) {
    for (const auto id : here.contests) {
        auto& who = contests_.at(id);
        if (who.in_turn && who.way.waiting() && count_asking(here) < most_asking(here)) {
            step(who, who.way.on_hint(), now);
        }
    }
}

/// What is too little for one may do for another.
void lock_table::let_smaller_ask(const line& here, const engines::acquire_request& refused,
                                 clock::time_point now) {
    for (const auto id : here.contests) {
        auto& who = contests_.at(id);
        if (who.in_turn && who.way.waiting() && who.way.claim().permits < refused.permits) {
            step(who, who.way.on_hint(), now);
            return;
        }
    }
}

/// One who is told "busy" and asks again at once may do so for ever. It does not keep a newcomer from
/// asking who wants less.
void lock_table::let_smaller_newcomer_ask(name_record& where, const engines::acquire_request& refused,
                                          clock::time_point now) {
    auto& here = *where.waiting;
    const auto next = std::find_if(here.standing.begin(), here.standing.end(), [&](waiter_id id) {
        const auto& wanted = waiters_.at(id).what;
        return wanted.permits < refused.permits && !is_refused(here, wanted);
    });
    if (next != here.standing.end() && count_asking(here) < settings_.contention.most_asking &&
        !shut_down_) {
        const auto& who = waiters_.at(*next);
        here.standing.erase(next);
        start_contest(where, who, now, now);
    }
}

/// What the answer to one of those who ask in turn means for the others.
void lock_table::after_asking(contest_id who, const engines::acquire_request& asked,
                              acquisition::verdict verdict, const engines::acquire_reply& reply,
                              clock::time_point now) {
    const auto found = names_.find(asked.name);
    if (found == names_.end() || !found->second.waiting) {
        return;
    }
    auto& here = *found->second.waiting;
    const auto contender = contests_.find(who);
    if (contender != contests_.end() && contender->second.way.asking()) {
        // It was told of something meanwhile, and asks again.
        if (reply.result == engines::acquire_reply::outcome::busy) {
            let_smaller_ask(here, asked, now);
            let_smaller_newcomer_ask(found->second, asked, now);
        }
        return;
    }
    if (verdict == acquisition::verdict::granted) {
        // Readers are let in all or none. Of permits there may be one more, or many.
        here.window = asked.mode == claim_mode::shared || here.window > line::unlimited / 2
                          ? line::unlimited
                          : 2 * here.window;
        let_more_ask(here, now);
    } else if (reply.result == engines::acquire_reply::outcome::busy &&
               verdict == acquisition::verdict::nothing) {
        here.window = 1;
        let_smaller_ask(here, asked, now);
    } else {
        // It does not know, or was told of something and has left.
        here.window = 1;
        let_first_ask(asked.name, now);
    }
    let_some_ask(asked.name, now);
}

}  // namespace holdfast::core
