#include <redis/engine.hpp>

#include <common/host_process.hpp>
#include <common/validate.hpp>
#include <redis/errors.hpp>
#include <redis/examination.hpp>
#include <redis/layout/keys.hpp>
#include <redis/moving.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace holdfast::engines {

std::unique_ptr<engine> open_redis(std::string_view scheme, std::string_view rest,
                                   const client_identity& identity);
address_summary summarise_redis(std::string_view scheme, std::string_view rest);

address_summary summarise_redis(std::string_view scheme, std::string_view rest) {
    auto where = redis::parse_address(scheme, rest, redis::passwords::ignored);
    return {std::move(where.identity), std::move(where.text), {std::move(where.prefix)}};
}

std::unique_ptr<engine> open_redis(std::string_view scheme, std::string_view rest,
                                   const client_identity& identity) {
    return std::make_unique<redis::redis_engine>(redis::parse_address(scheme, rest), identity);
}

}  // namespace holdfast::engines

namespace holdfast::engines::redis {

namespace {

using std::chrono::milliseconds;

/// A client that was killed, or had no time to take its card away, leaves it for so long.
constexpr std::chrono::minutes shortest_card_life{2};
/// What is under way when a client ends may take so long.
constexpr milliseconds longest_farewell{100};

[[nodiscard]] std::string reach_text(const address& where) {
    const std::string with_prefix = where.prefix.empty() ? "" : " with this prefix";
    switch (where.topology) {
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
void fit_advice(std::string& detail, const address& where) {
    const auto replace = [&detail](std::string_view words, std::string_view others) {
        if (const auto at = detail.find(words); at != std::string::npos) {
            detail.replace(at, words.size(), others);
        }
    };
    if (where.connection.tls && where.topology != topology_kind::standalone) {
        replace("; use redis://", "; use rediss://");
        const bool cluster = where.topology == topology_kind::cluster;
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

[[nodiscard]] guarantees promises_of(const address& where) {
    guarantees promises;
    promises.reach = scope::fleet;
    promises.reach_text = reach_text(where);
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

/// Says why not, if there is a reason.
template <class Reply>
[[nodiscard]] bool refused(failure why, const call& how, const completion<Reply>& done) {
    if (!why && clock::now() >= how.deadline) {
        why = {errc::store_unavailable, "the deadline had passed before anything was sent"};
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

[[nodiscard]] std::unique_ptr<router> make_router(const address& where, router::events told,
                                                  const client_identity& identity) {
    switch (where.topology) {
        case topology_kind::sentinel:
            return make_sentinel(where, std::move(told));
        case topology_kind::cluster:
            return make_cluster(where, std::move(told),
                                identity.only_looks ? cluster_use::looking : cluster_use::locks);
        case topology_kind::standalone:
            break;
    }
    return make_standalone(where, std::move(told));
}

}  // namespace

redis_engine::redis_engine(redis::address where, const client_identity& identity)
    : where_{std::move(where)},
      identity_{identity},
      promises_{promises_of(where_)},
      watches_{std::make_shared<watches>()},
      turns_{std::make_shared<turns>()},
      router_{make_router(
          where_,
          {.heard = [all = watches_](const std::string& channel,
                                     std::string_view message) { all->heard(channel, message); },
           .subscribed = [all = watches_](const std::string& channel) { all->flows(channel); },
           .refused = [this](const std::string& channel,
                             const std::string& words) { cannot_listen(channel, words); }},
          identity)} {
    watches_->connect(router_.get());
    const auto deadline = clock::now() + where_.connection.connect_timeout;
    if (auto trouble = router_->connect(deadline)) {
        // The store's address names the server already.
        const auto server = where_.nodes.front().text() + ": ";
        if (where_.nodes.size() == 1 && trouble.detail.starts_with(server)) {
            trouble.detail.erase(0, server.size());
        }
        const bool at_sentinels = trouble.detail.starts_with("sentinel ");
        fit_advice(trouble.detail, where_);
        const auto& login = at_sentinels ? where_.sentinel_login : where_.connection.login;
        trouble.detail += line_that_allows(trouble.detail, login.user);
        trouble.raise("cannot use the store " + where_.text);
    }
    dialect_ = {where_.prefix, router_->clustered(), where_.redisson_tokens,
                router_->publish_command()};
    catalogue_ = std::make_shared<catalogue>(catalogue{
        *router_, dialect_, [this](script_call what, std::uint16_t slot, call how, answered done) {
            run(std::move(what), slot, how, std::move(done));
        }});
    write_card({});
}

redis_engine::~redis_engine() {
    take_leave();
    watches_->close();
    // Completes what is pending. Completions that are running may still send something, so the pointer
    // must last until the end; `reset` would clear it first.
    delete router_.get();
    static_cast<void>(router_.release());
    const std::lock_guard lock{guard_};
    in_line_.clear();
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

void redis_engine::run(script_call what, std::uint16_t slot, call how, answered done,
                       router::lane lane) {
    struct errand {
        script_call what;
        answered done;
    };
    const auto mine = std::make_shared<const errand>(errand{std::move(what), std::move(done)});
    const auto finish = [this](const errand& over, connection::result result) {
        under_way_.fetch_sub(1, std::memory_order_release);
        if (!result.error && result.replies.front().is_error()) {
            name_forbidden_command(result.replies.front(), over.what.what->text, dialect_.publish);
            name_keys(result.replies.front(), over.what.keys);
        }
        over.done(std::move(result));
    };
    // The errand lives until its answer has been dealt with, and after that nobody encodes it.
    const auto encoded = [script = &mine->what](script_call::form form) {
        return [script, form](std::string& out, const server_facts& server) {
            return script->append(out, server, form);
        };
    };
    // Behind a script that the server does not know, WAIT would use up the time that is there.
    const auto first =
        lane == router::lane::confirmed ? script_call::form::text : script_call::form::fingerprint;
    under_way_.fetch_add(1, std::memory_order_relaxed);
    router_->send(
        slot, lane, encoded(first), how,
        [this, mine, finish, encoded, slot, lane, until = how.deadline](connection::result result) {
            const bool unknown_script =
                !result.error && result.replies.front().error_code() == "NOSCRIPT";
            if (!unknown_script) {
                finish(*mine, std::move(result));
                return;
            }
            // Nothing has happened yet: say it in full.
            router_->send(
                slot, lane, encoded(script_call::form::text), {until, caller::must_not_block},
                [mine, finish](connection::result answer) { finish(*mine, std::move(answer)); });
        });
}

void redis_engine::acquire(acquire_request request, call how, completion<acquire_reply> done) {
    if (refused(check_request(request, promises_), how, done) ||
        refused(check_key(request.name, request.kind), how, done)) {
        return;
    }
    write_card(request.ttl);
    listen_for_revocations();
    const auto key = dialect_.key_of(request.name);
    std::int64_t question{};
    const bool in_line = request.kind == lock_kind::fair_mutex && request.queue;
    if (in_line) {
        question = stand_in_line(request, key);
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
        acquire_confirmed(std::move(request), std::move(script), how, std::move(done));
        return;
    }
    run(std::move(script), slot_for(key), how,
        [this, in_line, has_turns, key, request = std::move(request),
         done = std::move(done)](connection::result result) {
            bool listened = false;
            auto reply = read(result, [&](const value& answer) {
                listened = in_line && says_listening(answer);
                if (const int theirs = turn_in_the_way(answer); theirs != 0 && has_turns) {
                    turns_->refused(key, theirs);
                }
                return acquire_answer(answer, request);
            });
            if (in_line) {
                settle_in_line(request, std::move(reply), listened, done);
            } else {
                done(std::move(reply));
            }
        });
}

/// The lock counts only when enough replicas have it.
void redis_engine::acquire_confirmed(acquire_request request, script_call script, call how,
                                     completion<acquire_reply> done) {
    const auto slot = slot_for(dialect_.key_of(request.name));
    const auto needed = confirmations_for(request.replicas, router_->replicas_of(slot));
    const auto left = std::chrono::duration_cast<milliseconds>(how.deadline - clock::now());
    // Time is left to give the lock back when too few confirm it.
    const auto wait = std::max(milliseconds{1}, std::min(left / 2, request.ttl / 4));
    script.then.add("WAIT", needed, wait.count());
    run(
        std::move(script), slot, how,
        [this, needed, slot, how, request = std::move(request),
         done = std::move(done)](connection::result result) mutable {
            auto reply =
                read(result, [&](const value& answer) { return acquire_answer(answer, request); });
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
            settle_unconfirmed(request, confirmed, how, std::move(done));
        },
        router::lane::confirmed);
}

/// Gives back what too few replicas have, so that the refusal is true.
void redis_engine::settle_unconfirmed(const acquire_request& request, std::int64_t confirmed, call how,
                                      completion<acquire_reply> done) {
    release({request.name, request.mode, request.owner, {}, request.kind},
            {how.deadline, caller::must_not_block},
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

void redis_engine::release(release_request request, call how, completion<release_reply> done) {
    if (refused(check_request(request, promises_), how, done) ||
        refused(check_key(request.name, request.kind), how, done)) {
        return;
    }
    if (request.kind == lock_kind::fair_mutex) {
        leave_line(request.owner);
    }
    const auto key = dialect_.key_of(request.name);
    if (request.linger.count() > 0) {
        leaves_locks_ = true;
        write_card(request.linger);
    }
    const auto kind = request.mode == claim_mode::permit ? lock_kind::semaphore : request.kind;
    const auto finish = [this, kind, key, owner = request.owner,
                         done = std::move(done)](release_reply reply) {
        if (reply.result == release_reply::outcome::failed) {
            leaves_locks_ = true;
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
    run(
        std::move(script), slot_for(key), how,
        [this, how, finish, request = std::move(request)](connection::result result) {
            if (says_moving(result)) {
                release_while_moving(catalogue_, request, how, finish);
            } else {
                finish(read(result, [this](const value& answer) {
                    cannot_tell(telling_trouble(answer, dialect_));
                    return release_answer(answer);
                }));
            }
        },
        lane);
}

void redis_engine::revoke(revoke_request request, call how, completion<revoke_reply> done) {
    if (refused(check_request(request, promises_), how, done) ||
        refused(check_key(request.name, lock_kind::mutex), how, done)) {
        return;
    }
    request.actor = shortened(request.actor, longest_remark);
    request.reason = shortened(request.reason, longest_remark);
    const auto key = dialect_.key_of(request.name);
    run(revoke_call(request, key, dialect_, std::chrono::system_clock::now()), slot_for(key), how,
        [done = std::move(done)](connection::result result) { done(read(result, revoke_answer)); });
}

void redis_engine::inspect(std::string name, call how, completion<inspect_reply> done) {
    if (refused(check_name(name), how, done) || refused(check_key(name, lock_kind::mutex), how, done)) {
        return;
    }
    inspect_name(catalogue_, name, how, std::move(done));
}

void redis_engine::list(list_request request, call how, completion<list_reply> done) {
    if (refused(check_request(request, promises_), how, done)) {
        return;
    }
    list_names(catalogue_, std::move(request), how, std::move(done));
}

void redis_engine::latch(latch_request request, call how, completion<latch_reply> done) {
    if (refused(check_request(request, promises_), how, done) ||
        refused(check_key(request.name, lock_kind::latch), how, done)) {
        return;
    }
    const auto key = dialect_.key_of(request.name);
    run(latch_call(request, key, dialect_), slot_for(key), how,
        [done = std::move(done)](connection::result result) { done(read(result, latch_answer)); });
}

void redis_engine::examine(call how, completion<examine_reply> done) {
    examine_servers(catalogue_, where_, how, std::move(done));
}

store_instance redis_engine::instance(const std::string& name) const {
    return router_->instance_of(slot_for(dialect_.key_of(name)));
}

void redis_engine::listen_for_revocations() {
    if (listens_.load(std::memory_order_acquire) || !callbacks_.holds_may_have_changed) {
        return;
    }
    const std::lock_guard lock{guard_};
    if (!listens_.exchange(true)) {
        const auto channel = client_channel(identity_.client.client_text());
        revocations_ = watches_->listen(
            {channel, slot_for(channel), channel_style::classic}, watches::beginning::told,
            [this](std::string_view) { callbacks_.holds_may_have_changed(); });
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

/// Takes the card away, unless locks stay, and gives what is under way a moment to be answered: a
/// release that nobody waited for may be among it, and need not have been sent yet.
void redis_engine::take_leave() {
    const auto deadline = clock::now() + longest_farewell;
    const auto card = card_key(identity_.client.client_text());
    if (!identity_.only_looks) {
        router_->send(
            slot_for(card), router::lane::common,
            [card, keep = leaves_locks_.load()](std::string& out, const server_facts&) {
                append_command(out, std::vector<std::string_view>{keep ? "EXISTS" : "DEL", card});
                return connection::expected{1};
            },
            {deadline, caller::may_block}, [](const connection::result&) {});
    }
    // All that was asked of the same server is over now. Others may take a little longer.
    while (under_way_.load(std::memory_order_acquire) > 0 && clock::now() < deadline) {
        std::this_thread::sleep_for(milliseconds{1});  // not a guess: looked at again
    }
}

/// Says who we are, for those who look at our locks; often enough that it outlives our leases. `ttl` is
/// how long the lock lasts that is asked for.
void redis_engine::write_card(milliseconds ttl) {
    if (identity_.only_looks) {
        return;
    }
    auto longest = longest_ttl_.load(std::memory_order_relaxed);
    bool longer = false;
    while (ttl > longest) {
        if (longest_ttl_.compare_exchange_weak(longest, ttl)) {
            longest = ttl;
            longer = true;
        }
    }
    const auto now = clock::now();
    const auto life = std::max<milliseconds>(shortest_card_life, longest * 2);
    auto due = card_due_.load(std::memory_order_relaxed);
    if (longer && life > shortest_card_life) {
        card_due_.store(now + life / 3);
    } else if (now < due || !card_due_.compare_exchange_strong(due, now + life / 3)) {
        return;
    }
    const auto key = card_key(identity_.client.client_text());
    router_->send(
        slot_for(key), router::lane::common,
        [key, life, card = identity_.card, mark = process_mark()](std::string& out,
                                                                  const server_facts&) {
            const auto pid = std::to_string(card.pid);
            const auto milliseconds = std::to_string(life.count());
            append_command(out, std::vector<std::string_view>{"HSET", key, "host", card.host, "pid",
                                                              pid, "program", card.program, "label",
                                                              card.label, "process", mark});
            append_command(out, std::vector<std::string_view>{"PEXPIRE", key, milliseconds});
            return connection::expected{2};
        },
        {now + std::chrono::seconds{2}, caller::must_not_block},
        [this](const connection::result& result) {
            // A card without an end would stay for ever.
            const bool written =
                !result.error && std::none_of(result.replies.begin(), result.replies.end(),
                                              [](const value& reply) { return reply.is_error(); });
            if (!written) {
                card_due_.store(clock::time_point{});
            }
        });
}

}  // namespace holdfast::engines::redis
