#include <redis/engine.hpp>

#include <common/validate.hpp>
#include <redis/errors.hpp>
#include <redis/examination.hpp>
#include <redis/layout/keys.hpp>
#include <redis/moving.hpp>
#include <redis/renewal.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace holdfast::engines {

std::unique_ptr<engine> open_redis(std::string_view scheme, std::string_view rest,
                                   const client_identity& identity);
address_summary summarise_redis(std::string_view scheme, std::string_view rest);

address_summary summarise_redis(std::string_view scheme, std::string_view rest) {
    auto store = redis::parse_address(scheme, rest, redis::passwords::ignored);
    return {std::move(store.identity), std::move(store.text), {std::move(store.prefix)}};
}

std::unique_ptr<engine> open_redis(std::string_view scheme, std::string_view rest,
                                   const client_identity& identity) {
    return std::make_unique<redis::redis_engine>(redis::parse_address(scheme, rest), identity);
}

}  // namespace holdfast::engines

namespace holdfast::engines::redis {

namespace {

using std::chrono::milliseconds;

/// What is under way when a client ends may take so long.
constexpr milliseconds longest_farewell{100};

[[nodiscard]] std::string reach_text(const address& store) {
    const std::string with_prefix = store.prefix.empty() ? "" : " with this prefix";
    switch (store.topology) {
        case topology_kind::sentinel:
            return "every host that uses this Redis service" + with_prefix;
        case topology_kind::cluster:
            return "every host that uses this Redis cluster" + with_prefix;
        case topology_kind::standalone:
            break;
    }
    return "every host that uses this Redis server" + with_prefix;
}

/// Connections know nothing of the whole address, so their advice is that for a single server.
void fit_advice(std::string& detail, const address& store) {
    const auto replace = [&detail](std::string_view words, std::string_view others) {
        if (const auto at = detail.find(words); at != std::string::npos) {
            detail.replace(at, words.size(), others);
        }
    };
    if (store.connection.tls && store.topology != topology_kind::standalone) {
        replace("; use redis://", "; use rediss://");
        const bool cluster = store.topology == topology_kind::cluster;
        replace("write redis:// instead of rediss://",
                cluster ? "write redis+cluster:// instead of rediss+cluster://"
                        : "write redis+sentinel:// instead of rediss+sentinel://");
    }
    const auto says = [&detail](std::string_view code) {
        return detail.find(code) != std::string::npos;
    };
    if (detail.starts_with("sentinel ") && (says("NOAUTH") || says("WRONGPASS"))) {
        detail += "; the password of the sentinels is that of sentinel_password_file=FILE";
    }
}

[[nodiscard]] guarantees promises_of(const address& store) {
    guarantees promises;
    promises.reach = scope::fleet;
    promises.reach_text = reach_text(store);
    // A server that loses data and whose clock is set back may repeat tokens.
    promises.tokens = fencing::best_effort;
    promises.shared = true;
    promises.permits = true;
    promises.latches = true;
    promises.fair = true;
    promises.replicas = true;
    promises.minimum_ttl = milliseconds{20};
    return promises;
}

constexpr auto* late_text = "the deadline had passed before anything was sent";

/// Says why not, if there is a reason.
template <class Reply>
[[nodiscard]] bool refused(failure why, const call& limits, const completion<Reply>& done) {
    if (!why && clock::now() >= limits.deadline) {
        why = {errc::store_unavailable, late_text};
    }
    if (!why) {
        return false;
    }
    Reply reply;
    reply.error = std::move(why);
    done(std::move(reply));
    return true;
}

/// What the server's answer means, or why there is none.
template <class Decode>
[[nodiscard]] auto read(connection::result& result, const Decode& decode) {
    decltype(decode(result.replies.front())) reply;
    if (result.error) {
        reply.error = std::move(result.error);
    } else {
        reply = decode(result.replies.front());
    }
    return reply;
}

/// How many replicas must confirm a lock of a server that has `known` of them.
[[nodiscard]] std::uint32_t confirmations_for(const replica_policy& policy, std::uint32_t known) {
    return policy.what == replica_policy::rule::majority ? (known + 1) / 2 : policy.count;
}

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

[[nodiscard]] std::unique_ptr<router> make_router(const address& store, router::events told,
                                                  const client_identity& identity) {
    switch (store.topology) {
        case topology_kind::sentinel:
            return make_sentinel(store, std::move(told));
        case topology_kind::cluster:
            return make_cluster(store, std::move(told),
                                identity.only_looks ? cluster_use::looking : cluster_use::locks);
        case topology_kind::standalone:
            break;
    }
    return make_standalone(store, std::move(told));
}

}  // namespace

redis_engine::redis_engine(redis::address store, const client_identity& identity)
    : store_{std::move(store)},
      identity_{identity},
      promises_{promises_of(store_)},
      watches_{std::make_shared<watches>()},
      turns_{std::make_shared<turns>()},
      router_{make_router(
          store_,
          {.heard = [all = watches_](const std::string& channel,
                                     std::string_view message) { all->heard(channel, message); },
           .subscribed = [all = watches_](const std::string& channel) { all->flows(channel); },
           .refused = [this](const std::string& channel,
                             const std::string& words) { cannot_listen(channel, words); }},
          identity)} {
    watches_->connect(router_.get());
    const auto deadline = clock::now() + store_.connection.connect_timeout;
    if (auto trouble = router_->connect(deadline)) {
        // The store's address names the server already.
        const auto server = store_.nodes.front().text() + ": ";
        if (store_.nodes.size() == 1 && trouble.detail.starts_with(server)) {
            trouble.detail.erase(0, server.size());
        }
        const bool at_sentinels = trouble.detail.starts_with("sentinel ");
        fit_advice(trouble.detail, store_);
        const auto& login = at_sentinels ? store_.sentinel_login : store_.connection.login;
        trouble.detail += line_that_allows(trouble.detail, login.user);
        trouble.raise("cannot use the store " + store_.text);
    }
    dialect_ = {store_.prefix, router_->clustered(), store_.redisson_tokens,
                router_->publish_command()};
    scripts_ = std::make_unique<script_runner>(*router_);
    catalogue_ = std::make_shared<catalogue>(catalogue{
        *router_, dialect_,
        [this](script_call script, std::uint16_t slot, call limits, script_runner::answered done) {
            scripts_->run(std::move(script), slot, limits, std::move(done));
        }});
    card_ = std::make_unique<client_card>(identity_, *router_,
                                          slot_for(card_key(identity_.client.client_text())));
    card_->write({});
}

redis_engine::~redis_engine() {
    take_leave();
    watches_->close();
    // Completes what is pending. Completions that are running may still send something, so the pointer
    // must last until the end; `reset` would clear it first.
    delete router_.get();
    static_cast<void>(router_.release());
    line_.clear();
    const std::lock_guard lock{guard_};
    revocations_.reset();
}

void redis_engine::attach(client_callbacks callbacks) {
    callbacks_ = std::move(callbacks);
}

std::uint16_t redis_engine::slot_for(const std::string& key) const noexcept {
    return dialect_.clustered ? slot_of(key) : std::uint16_t{0};
}

/// Names that look like a key of ours, and names whose keys a cluster would scatter over several
/// servers.
failure redis_engine::check_key(std::string_view name, lock_kind kind) const {
    const auto key = dialect_.key_of(name);
    if (is_reserved(key)) {
        return {errc::invalid_name, "the name " + in_quotes(name) +
                                        " is not for locks: a key that begins like this holds what "
                                        "is known about locks"};
    }
    if (!dialect_.clustered) {
        return {};
    }
    const bool fits = kind == lock_kind::latch ? latch_fits_one_slot(key) : fits_one_slot(key);
    if (fits) {
        return {};
    }
    return {errc::invalid_name,
            "the braces in " + in_quotes(name) +
                " make a cluster keep parts of this lock on different servers; leave them out, or put "
                "one pair around the part that decides the slot"};
}

void redis_engine::acquire(acquire_request request, call limits, completion<acquire_reply> done) {
    if (refused(check_request(request, promises_), limits, done) ||
        refused(check_key(request.name, request.kind), limits, done)) {
        return;
    }
    card_->write(request.ttl);
    listen_for_revocations();
    const auto key = dialect_.key_of(request.name);
    std::int64_t question{};
    const bool in_line = request.kind == lock_kind::fair_mutex && request.queue;
    if (in_line) {
        question = line_.enter(request.owner, *watches_,
                               {fair_channel(key, request.owner.text()), slot_for(key)}, key,
                               turn_teller(request.name));
    } else if (request.kind == lock_kind::mutex && request.queue) {
        question = clock::now().time_since_epoch().count();
    }
    // What is granted by another's release asks for no particular token.
    const bool may_be_told = request.token_floor.value == 0;
    const bool has_turns = request.kind != lock_kind::fair_mutex;
    const int turn = has_turns ? turns_->claim(key) : 0;
    auto script = acquire_call(request, key, dialect_, may_be_told ? question : 0, turn);
    if (request.replicas != replica_policy{}) {
        if (in_line) {
            done = [this, request, done = std::move(done)](acquire_reply reply) {
                settle_in_line(request, std::move(reply), false, done);
            };
        }
        acquire_confirmed(std::move(request), std::move(script), limits, std::move(done));
        return;
    }
    scripts_->run(std::move(script), slot_for(key), limits,
                  [this, in_line, request = std::move(request),
                   done = std::move(done)](connection::result result) {
                      bool listened = false;
                      auto reply = read(result, [&](const value& answer) {
                          listened = in_line && says_listening(answer);
                          return decode_grant(answer, request);
                      });
                      if (in_line) {
                          settle_in_line(request, std::move(reply), listened, done);
                      } else {
                          done(std::move(reply));
                      }
                  });
}

/// One server alone has every name; of a cluster, those that share a slot are on one server, and may be
/// used by one script.
bool redis_engine::acquires_together(const std::vector<std::string>& names) const {
    if (names.empty() || !dialect_.clustered) {
        return !names.empty();
    }
    const auto slot = slot_for(dialect_.key_of(names.front()));
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return slot_for(dialect_.key_of(name)) == slot && !check_key(name, lock_kind::mutex);
    });
}

void redis_engine::acquire_all(std::vector<acquire_request> all, call limits,
                               completion<acquire_all_reply> done) {
    failure wrong;
    std::vector<std::string> keys;
    std::chrono::milliseconds longest{};
    for (const auto& one : all) {
        if (!wrong) {
            wrong = check_request(one, promises_);
        }
        if (!wrong) {
            wrong = check_key(one.name, one.kind);
        }
        keys.push_back(dialect_.key_of(one.name));
        longest = std::max(longest, one.ttl);
    }
    if (refused(std::move(wrong), limits, done)) {
        return;
    }
    card_->write(longest);
    listen_for_revocations();
    scripts_->run(
        acquire_all_call(all, keys, dialect_), slot_for(keys.front()), limits,
        [count = all.size(), done = std::move(done)](connection::result result) {
            done(read(result, [&](const value& answer) { return acquire_all_answer(answer, count); }));
        });
}

void redis_engine::renew(std::vector<renew_request> batch, call limits,
                         completion<std::vector<renew_reply>> done) {
    const bool late = clock::now() >= limits.deadline;
    std::vector<failure> refusals;
    for (const auto& request : batch) {
        auto& refusal = refusals.emplace_back(check_request(request, promises_));
        if (!refusal) {
            refusal = check_key(request.name, request.kind);
        }
        if (!refusal && late) {
            refusal = {errc::store_unavailable, late_text};
        }
    }
    renew_together(catalogue_, std::move(batch), refusals, limits, std::move(done));
    card_->write({});
}

/// Remembers a turn of others that is in the way.
acquire_reply redis_engine::decode_grant(const value& answer, const acquire_request& request) {
    const int theirs = turn_in_the_way(answer);
    if (theirs != 0 && request.kind != lock_kind::fair_mutex) {
        turns_->refused(dialect_.key_of(request.name), theirs);
    }
    return acquire_answer(answer, request);
}

/// The lock counts only when enough replicas have it.
void redis_engine::acquire_confirmed(acquire_request request, script_call script, call limits,
                                     completion<acquire_reply> done) {
    const auto slot = slot_for(dialect_.key_of(request.name));
    const auto needed = confirmations_for(request.replicas, router_->replicas_of(slot));
    const auto left = std::chrono::duration_cast<milliseconds>(limits.deadline - clock::now());
    // Time is left to give the lock back when too few confirm it.
    const auto wait = std::max(milliseconds{1}, std::min(left / 2, request.ttl / 4));
    script.then.add("WAIT", needed, wait.count());
    scripts_->run(
        std::move(script), slot, limits,
        [this, needed, slot, limits, request = std::move(request),
         done = std::move(done)](connection::result result) mutable {
            auto reply =
                read(result, [&](const value& answer) { return decode_grant(answer, request); });
            if (reply.error.code == errc::outcome_unknown) {
                unsettled_.add(request.owner, clock::now() + 2 * request.ttl);
                reply.error.detail +=
                    " (waiting for " + std::to_string(needed) + " replicas to confirm)";
            } else {
                unsettled_.remove(request.owner);
            }
            if (reply.result != acquire_reply::outcome::granted) {
                done(std::move(reply));
                return;
            }
            const auto confirmed = result.replies.size() > 1 ? result.replies[1].integer : 0;
            // A server that was met only now has told how many replicas it has.
            const auto needed_now =
                std::max(needed, confirmations_for(request.replicas, router_->replicas_of(slot)));
            if (confirmed >= needed_now) {
                done(std::move(reply));
                return;
            }
            settle_unconfirmed(request, confirmed, limits, std::move(done));
        },
        router::lane::confirmed);
}

/// Gives back what too few replicas have, so that the refusal is true.
void redis_engine::settle_unconfirmed(const acquire_request& request, std::int64_t confirmed,
                                      call limits, completion<acquire_reply> done) {
    release({request.name, request.mode, request.owner, {}, request.kind},
            {limits.deadline, caller::must_not_block},
            [confirmed, done = std::move(done)](const release_reply& back) {
                acquire_reply reply;
                const auto words =
                    "only " + std::to_string(confirmed) + " replicas confirmed the lock in time";
                const bool undone = back.result != release_reply::outcome::failed;
                reply.error = {undone ? errc::store_unavailable : errc::outcome_unknown,
                               undone ? words : words + ", and giving it back failed"};
                done(std::move(reply));
            });
}

void redis_engine::release(release_request request, call limits, completion<release_reply> done) {
    if (refused(check_request(request, promises_), limits, done) ||
        refused(check_key(request.name, request.kind), limits, done)) {
        return;
    }
    if (request.kind == lock_kind::fair_mutex) {
        line_.leave(request.owner);
    }
    const auto key = dialect_.key_of(request.name);
    if (request.linger.count() > 0) {
        card_->keep();
        card_->write(request.linger);
    }
    const auto kind = request.mode == claim_mode::permit ? lock_kind::semaphore : request.kind;
    const auto finish = [this, kind, key, owner = request.owner,
                         done = std::move(done)](release_reply reply) {
        if (reply.result == release_reply::outcome::failed) {
            card_->keep();
        } else {
            unsettled_.remove(owner);
        }
        // Who hears a channel was counted, and we do so ourselves.
        if (kind != lock_kind::fair_mutex && reply.others_waiting > 0) {
            reply.others_waiting -= watches_->own_subscriptions(channel_of(kind, key));
        }
        done(std::move(reply));
    };
    const auto lane =
        unsettled_.contains(request.owner) ? router::lane::confirmed : router::lane::common;
    auto script = release_call(request, key, dialect_);
    scripts_->run(
        std::move(script), slot_for(key), limits,
        [this, limits, finish, request = std::move(request)](connection::result result) {
            if (says_moving(result)) {
                release_while_moving(catalogue_, request, limits, finish);
            } else {
                finish(read(result, [this](const value& answer) {
                    cannot_tell(telling_trouble(answer, dialect_));
                    return release_answer(answer);
                }));
            }
        },
        lane);
}

void redis_engine::revoke(revoke_request request, call limits, completion<revoke_reply> done) {
    if (refused(check_request(request, promises_), limits, done) ||
        refused(check_key(request.name, lock_kind::mutex), limits, done)) {
        return;
    }
    request.actor = shortened(request.actor, longest_remark);
    request.reason = shortened(request.reason, longest_remark);
    const auto key = dialect_.key_of(request.name);
    scripts_->run(
        revoke_call(request, key, dialect_, std::chrono::system_clock::now()), slot_for(key), limits,
        [done = std::move(done)](connection::result result) { done(read(result, revoke_answer)); });
}

void redis_engine::inspect(std::string name, call limits, completion<inspect_reply> done) {
    if (refused(check_name(name), limits, done) ||
        refused(check_key(name, lock_kind::mutex), limits, done)) {
        return;
    }
    inspect_name(catalogue_, name, limits, std::move(done));
}

void redis_engine::list(list_request request, call limits, completion<list_reply> done) {
    if (refused(check_request(request, promises_), limits, done)) {
        return;
    }
    list_names(catalogue_, std::move(request), limits, std::move(done));
}

void redis_engine::latch(latch_request request, call limits, completion<latch_reply> done) {
    if (refused(check_request(request, promises_), limits, done) ||
        refused(check_key(request.name, lock_kind::latch), limits, done)) {
        return;
    }
    const auto key = dialect_.key_of(request.name);
    scripts_->run(
        latch_call(request, key, dialect_), slot_for(key), limits,
        [done = std::move(done)](connection::result result) { done(read(result, latch_answer)); });
}

void redis_engine::examine(call limits, completion<examine_reply> done) {
    examine_servers(catalogue_, store_, limits, std::move(done));
}

store_instance redis_engine::instance(const std::string& name) const {
    return router_->instance_of(slot_for(dialect_.key_of(name)));
}

std::unique_ptr<subscription> redis_engine::watch(std::string name, lock_kind kind,
                                                  std::function<void()> hint) {
    const auto key = dialect_.key_of(name);
    const auto slot = slot_for(key);
    const auto listen = [&](std::string channel, watches::listener listener) {
        return watches_->listen({std::move(channel), slot}, watches::beginning::told_if_awaited,
                                std::move(listener));
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
    const auto turn = read_turn(message);
    const bool ours = turn && turn->key == dialect_.key_of(name);
    const auto owner = ours ? owner_id::parse(turn->owner) : std::nullopt;
    if (owner) {
        turn_teller(name)(*owner, grant_in(*turn));
    }
}

waiting_line::turn_told redis_engine::turn_teller(const std::string& name) {
    return [this, name](const owner_id& owner, const std::optional<turn_grant>& granted) {
        if (callbacks_.turn_of) {
            callbacks_.turn_of(name, owner, granted);
        }
    };
}

/// An owner that may have missed its turn asks again.
void redis_engine::settle_in_line(const acquire_request& request, acquire_reply reply, bool listened,
                                  const completion<acquire_reply>& done) {
    const bool missed_turn = line_.on_reply(request.owner, reply, listened);
    done(std::move(reply));
    if (missed_turn) {
        turn_teller(request.name)(request.owner, std::nullopt);
    }
}

void redis_engine::attend(const std::string& name, lock_kind kind, const owner_id& owner,
                          idle_thread& thread) {
    const auto others_listen = [&] {
        const auto own = kind == lock_kind::mutex        ? 3U
                         : kind == lock_kind::latch      ? 1U
                         : kind != lock_kind::fair_mutex ? 2U
                         : line_.contains(owner)         ? 1U
                                                         : 0U;
        const std::lock_guard lock{guard_};
        return watches_->listeners() > (revocations_ ? 1U : 0U) + own;
    };
    router_->attend(slot_for(dialect_.key_of(name)), thread, others_listen);
}

void redis_engine::listen_for_revocations() {
    if (listens_.load(std::memory_order_acquire) || !callbacks_.holds_may_have_changed) {
        return;
    }
    const std::lock_guard lock{guard_};
    if (!listens_.load(std::memory_order_relaxed)) {
        const auto channel = client_channel(identity_.client.client_text());
        revocations_ = watches_->listen(
            {channel, slot_for(channel), channel_style::classic}, watches::beginning::told,
            [this](std::string_view) { callbacks_.holds_may_have_changed(); });
        listens_.store(true, std::memory_order_release);  // not if that threw: the next request tries
    }
}

/// Waiting works without notifications, and wakes up a second late.
void redis_engine::cannot_listen(const std::string& channel, const std::string& words) {
    if (callbacks_.degraded && !cannot_listen_.exchange(true)) {
        callbacks_.degraded({errc::unauthorised, "this user may not subscribe to " + channel +
                                                     ", so waiters ask once a second instead of being "
                                                     "told (" +
                                                     words + "); docs/redis.md has the ACL line"});
    }
}

/// The lock is given back all the same.
void redis_engine::cannot_tell(const failure& why) {
    if (why && callbacks_.degraded && !cannot_tell_.exchange(true)) {
        callbacks_.degraded({why.code,
                             "those who wait cannot be told of a release, so they ask once a "
                             "second: " +
                                 why.detail});
    }
}

/// Gives what is under way a moment to be answered: a release that nobody waited for may be among it,
/// and need not have been sent yet.
void redis_engine::take_leave() {
    const auto deadline = clock::now() + longest_farewell;
    card_->take_away(deadline);
    // All that was asked of the same server is over now. Others may take a little longer.
    while (scripts_->under_way() && clock::now() < deadline) {
        std::this_thread::sleep_for(milliseconds{1});  // not a guess: looked at again
    }
}

}  // namespace holdfast::engines::redis
