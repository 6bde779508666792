#include <redis/engine.hpp>

#include <redis/layout/keys.hpp>

#include <utility>

namespace holdfast::engines::redis {

namespace {

/// What a watch listens to. The last is the channel of the lock: it is in place when all are, and the
/// first that ends, so that nobody takes us for a client of another library.
class redis_subscription final : public subscription {
public:
    using all = std::vector<std::unique_ptr<watches::listening>>;

    redis_subscription(all channels, std::function<void()> ended)
        : channels_{std::move(channels)}, ended_{std::move(ended)} {}
    redis_subscription(const redis_subscription&) = delete;
    redis_subscription& operator=(const redis_subscription&) = delete;
    ~redis_subscription() override {
        while (!channels_.empty()) {
            channels_.pop_back();
        }
        if (ended_) {
            ended_();
        }
    }
    [[nodiscard]] bool active() const noexcept override { return channels_.back()->active(); }

private:
    all channels_;
    std::function<void()> ended_;
};

/// Whether whoever got this answer may still be in the line, and hear of its turn.
[[nodiscard]] bool stays_in_line(const acquire_reply& reply) noexcept {
    return reply.result == acquire_reply::outcome::busy || reply.error.code == errc::outcome_unknown;
}

}  // namespace

std::unique_ptr<subscription> redis_engine::watch(std::string name, lock_kind kind,
                                                  std::function<void()> hint) {
    const auto key = dialect_.key_of(name);
    const auto slot = slot_for(key);
    const auto listen = [&](std::string channel, watches::listener what) {
        return watches_->listen({std::move(channel), slot}, watches::beginning::told_if_awaited,
                                std::move(what));
    };
    redis_subscription::all channels;
    if (kind == lock_kind::mixed_mutex) {
        // Of a plain lock it hears as Java's waiters do, and has turns as they have: ours would hand
        // the lock to each other for ever.
        channels.push_back(listen(lock_channel(key), [hint](std::string_view) { hint(); }));
    }
    if (kind == lock_kind::latch || kind == lock_kind::fair_mutex) {
        channels.push_back(
            listen(channel_of(kind, key), [hint = std::move(hint)](std::string_view) { hint(); }));
        return std::make_unique<redis_subscription>(std::move(channels), nullptr);
    }
    turns_->watch(key);
    if (kind == lock_kind::mutex) {
        channels.push_back(listen(grant_channel(key, identity_.client.client_text()),
                                  [this, name](std::string_view message) { on_grant(name, message); }));
    }
    if (kind != lock_kind::mixed_mutex) {
        channels.push_back(listen(listeners_channel(key), [](std::string_view) {}));
    }
    channels.push_back(
        listen(channel_of(kind, key), [this, key, hint = std::move(hint)](std::string_view message) {
            turns_->heard(key, message);
            hint();
        }));
    return std::make_unique<redis_subscription>(std::move(channels),
                                                [known = turns_, key] { known->forget(key); });
}

/// The question's number is the time when it was asked: the core knows whether it was its last.
void redis_engine::on_grant(const std::string& name, std::string_view message) {
    const auto told = read_turn(message);
    const bool ours = told && told->key == dialect_.key_of(name);
    const auto owner = ours ? owner_id::parse(told->owner) : std::nullopt;
    if (owner && callbacks_.turn_of) {
        callbacks_.turn_of(name, *owner,
                           turn_grant{told->first_token, told->token_count,
                                      clock::time_point{clock::duration{told->question}}});
    }
}

/// From the moment it asks, an owner in a line listens to its own channel. The number of its question.
std::int64_t redis_engine::stand_in_line(const acquire_request& request, const std::string& key) {
    const std::lock_guard lock{guard_};
    auto& mine = in_line_[request.owner];
    mine.asked_at = clock::now();
    if (!mine.channel) {
        mine.channel = watches_->listen(
            {fair_channel(key, request.owner.text()), slot_for(key)}, watches::beginning::told,
            [this, name = request.name, owner = request.owner](std::string_view message) {
                on_turn(name, owner, message);
            });
    }
    return mine.asked_at.time_since_epoch().count();
}

/// One whose channel began to flow after the server had looked, and before it was told so, may have
/// missed its turn: it asks again.
void redis_engine::settle_in_line(const acquire_request& asked, acquire_reply reply, bool listened,
                                  const completion<acquire_reply>& done) {
    bool missed_turn = false;
    if (!stays_in_line(reply)) {
        leave_line(asked.owner);
    } else {
        const std::lock_guard lock{guard_};
        const auto found = in_line_.find(asked.owner);
        if (found != in_line_.end() && !found->second.listened) {
            found->second.listened = listened;
            missed_turn = found->second.began && !listened;
        }
    }
    done(std::move(reply));
    if (missed_turn && callbacks_.turn_of) {
        callbacks_.turn_of(asked.name, asked.owner, std::nullopt);
    }
}

/// A channel begins to flow: whether that is no reason to ask again. It is not if the server knew of it
/// when it answered; while it has not answered yet, `settle_in_line` sees to it.
bool redis_engine::missed_nothing(const owner_id& owner) {
    const std::lock_guard lock{guard_};
    const auto found = in_line_.find(owner);
    return found != in_line_.end() && !std::exchange(found->second.began, true) &&
           found->second.listened.value_or(true);
}

void redis_engine::on_turn(const std::string& name, const owner_id& owner, std::string_view message) {
    if (!callbacks_.turn_of || (message.empty() && missed_nothing(owner))) {
        return;
    }
    std::optional<turn_grant> granted;
    std::unique_ptr<watches::listening> left;
    const auto told = read_turn(message);
    if (told && told->owner == owner.text() && told->key == dialect_.key_of(name)) {
        const std::lock_guard lock{guard_};
        const auto found = in_line_.find(owner);
        // The core knows whether the question was its last, and gives back what nobody waits for.
        granted = {told->first_token, told->token_count,
                   clock::time_point{clock::duration{told->question}}};
        if (found != in_line_.end() && found->second.asked_at == granted->asked_at) {
            left = std::move(found->second.channel);
            in_line_.erase(found);
        }
    }
    callbacks_.turn_of(name, owner, granted);
}

void redis_engine::leave_line(const owner_id& owner) {
    std::unique_ptr<watches::listening> left;
    const std::lock_guard lock{guard_};
    if (const auto found = in_line_.find(owner); found != in_line_.end()) {
        left = std::move(found->second.channel);
        in_line_.erase(found);
    }
}

void redis_engine::attend(const std::string& name, lock_kind kind, const owner_id& owner,
                          idle_thread& thread) {
    const auto others_listen = [&] {
        const std::lock_guard lock{guard_};
        const auto own = kind == lock_kind::mutex        ? 3U
                         : kind == lock_kind::latch      ? 1U
                         : kind != lock_kind::fair_mutex ? 2U
                         : in_line_.contains(owner)      ? 1U
                                                         : 0U;
        return watches_->listeners() > (revocations_ ? 1U : 0U) + own;
    };
    router_->attend(slot_for(dialect_.key_of(name)), thread, others_listen);
}

}  // namespace holdfast::engines::redis
