#include <nodes/sessions.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::nodes {

using std::chrono::milliseconds;

namespace {}  // namespace

std::optional<milliseconds> session_record::granted_ttl(milliseconds asked,
                                                        clock::time_point since) const {
    const auto left = std::chrono::floor<milliseconds>(valid_until - since);
    if (left < milliseconds{1}) {
        return std::nullopt;
    }
    return left < asked ? left : milliseconds::zero();
}

milliseconds session_pool::rounded_ttl(milliseconds ttl) const {
    const auto step = settings_.granularity;
    return (std::max(ttl, settings_.minimum_ttl) + step - milliseconds{1}) / step * step;
}

session_key session_pool::for_ttl(milliseconds ttl, clock::time_point now) {
    const auto wanted = rounded_ttl(ttl);
    for (auto& [key, session] : sessions_) {
        if (session.ttl == wanted && !session.ends_at) {
            session.used_at = now;
            return key;
        }
    }
    return make(ttl, now);
}

session_key session_pool::make(milliseconds ttl, clock::time_point now) {
    const auto key = outbox_.next_id();
    auto& session = sessions_[key];
    session.ttl = rounded_ttl(ttl);
    session.used_at = now;
    return key;
}

session_record* session_pool::find(session_key key) {
    const auto found = sessions_.find(key);
    return found == sessions_.end() ? nullptr : &found->second;
}

session_key session_pool::find_open(session_id id) const {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
        return entry.second.open && entry.second.id == id;
    });
    return found == sessions_.end() ? 0 : found->first;
}

void session_pool::ask(session_key key, clock::time_point now) {
    auto& session = sessions_.at(key);
    if (session.asking) {
        return;
    }
    session.asking = true;
    session.sent_at = now;
    session.next_keep_alive = never;
    const auto deadline = now + settings_.request_timeout;
    if (session.open) {
        outbox_.emit(send_keep_alive{outbox_.ask_for(key), session.id, deadline});
    } else {
        outbox_.emit(send_open{outbox_.ask_for(key), session.ttl, deadline});
    }
}

session_pool::news session_pool::on_reply(request_id id, const session_reply& reply,
                                          clock::time_point now) {
    const auto key = outbox_.answered(id);
    auto* const session = find(key);
    if (session == nullptr) {
        // A store that threw may answer all the same. Then the session is in use.
        if (!reply.error && reply.session != 0 && find_open(reply.session) == 0) {
            start_closing(reply.session, reply.ttl, now);  // opened for nobody
        }
        return {};
    }
    session->asking = false;
    if (!reply.error) {
        const bool in_time = confirm(*session, reply, now);
        return {key, in_time ? session_change::confirmed : session_change::too_late};
    }
    if (!session->open || reply.error.code == errc::lost) {
        return {key, session_change::refused};
    }
    const auto pause = std::clamp<clock::duration>(session->granted / 20, settings_.shortest_pause,
                                                   settings_.longest_pause);
    session->next_keep_alive = now + pause;
    return {key, session_change::troubled};
}

/// False: it has ended by our clock.
bool session_pool::confirm(session_record& session, const session_reply& reply, clock::time_point now) {
    if (!session.open) {
        session.open = true;
        session.id = reply.session;
    }
    // The store may have begun the ttl at any moment since the request left.
    session.granted = reply.ttl;
    session.confirmed_at = session.sent_at;
    session.valid_until = std::max(session.valid_until, session.sent_at + reply.ttl);
    session.next_keep_alive = session.sent_at + reply.ttl / 3;
    if (session.ends_at && session.valid_until >= *session.ends_at) {
        session.next_keep_alive = never;
    }
    return now < session.valid_until;
}

std::vector<session_key> session_pool::ended(clock::time_point now) const {
    std::vector<session_key> ended;
    for (const auto& [key, session] : sessions_) {
        if ((session.open && now >= session.valid_until) ||
            (session.ends_at && now >= *session.ends_at)) {
            ended.push_back(key);
        }
    }
    return ended;
}

void session_pool::on_time(clock::time_point now) {
    std::vector<session_key> due;
    for (const auto& [key, session] : sessions_) {
        if (!session.asking && now >= session.next_keep_alive) {
            due.push_back(key);
        }
    }
    for (const auto key : due) {
        const auto& session = sessions_.at(key);
        const bool idle = session.claims.empty() && now - session.used_at >= settings_.idle_session &&
                          !session.ends_at;
        if (idle) {
            close(take(key), now);
        } else {
            ask(key, now);
        }
    }
    for (auto& [key, session] : closing_) {
        if (now >= session.wakes) {
            send_closing(key, session, now);
        }
    }
}

clock::time_point session_pool::next_wake() const {
    auto next = never;
    for (const auto& [key, session] : sessions_) {
        if (!session.asking) {
            next = std::min(next, session.next_keep_alive);
        }
        if (session.open) {
            next = std::min(next, session.valid_until);
        }
        if (session.ends_at) {
            next = std::min(next, *session.ends_at);
        }
    }
    for (const auto& [key, session] : closing_) {
        next = std::min(next, session.wakes);
    }
    return next;
}

void session_pool::close(const session_record& session, clock::time_point now) {
    if (session.open) {
        start_closing(session.id, session.granted, now);
    }
}

void session_pool::close_all(clock::time_point now) {
    for (const auto& [key, session] : std::exchange(sessions_, {})) {
        if (!session.ends_at) {
            close(session, now);
        }
    }
}

/// Until the store has confirmed it, or has ended it by itself.
void session_pool::start_closing(session_id id, milliseconds ttl, clock::time_point now) {
    const auto key = outbox_.next_id();
    auto& session = closing_[key];
    session.id = id;
    session.gone_at = now + settings_.request_timeout + ttl;
    session.pause = settings_.shortest_pause;
    send_closing(key, session, now);
}

void session_pool::send_closing(std::uint64_t key, closing_session& session, clock::time_point now) {
    session.wakes = never;
    outbox_.emit(send_close{outbox_.ask_for(key), session.id, now + settings_.request_timeout});
}

void session_pool::on_closed(request_id id, const remove_reply& reply, clock::time_point now) {
    const auto found = closing_.find(outbox_.answered(id));
    if (found == closing_.end()) {
        return;
    }
    auto& session = found->second;
    if (!reply.error || reply.error.code == errc::lost || now >= session.gone_at) {
        closing_.erase(found);
    } else {
        session.wakes = now + session.pause;
        session.pause = std::min<clock::duration>(2 * session.pause, settings_.longest_pause);
    }
}

}  // namespace holdfast::engines::nodes
