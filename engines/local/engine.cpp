#include <algorithm>
#include <cerrno>
#include <common/validate.hpp>
#include <filesystem>
#include <local/absent_store.hpp>
#include <local/catalogue.hpp>
#include <local/directory.hpp>
#include <local/engine.hpp>
#include <utility>

#include <sys/stat.h>

namespace holdfast::engines {

std::unique_ptr<engine> open_local(std::string_view rest, const client_identity& identity);
address_summary summarise_local(std::string_view rest);

namespace local {

namespace {

constexpr std::chrono::seconds background_patience{2};
constexpr std::uint32_t grants_between_sweeps = 4096;
constexpr std::chrono::seconds between_waiter_checks{1};
/// So that one large batch does not keep all others from writing.
constexpr std::size_t renewals_per_transaction = 256;

/// Whichever way leads to the directory.
std::string identity_of(const std::string& directory) {
    std::error_code ignored;
    return "local:" + std::filesystem::weakly_canonical(directory, ignored).string();
}

call_order::line line_of(std::string_view name) noexcept {
    return call_order::line_of(wake_map::key_of(name));
}

guarantees make_promises() {
    return {.reach = scope::host,
            .reach_text = "this host only (user " + user_name() + ")",
            .tokens = fencing::strict,
            .shared = true,
            .permits = true,
            .latches = true,
            .fair = false,
            .notices_dead_holders = true,
            .minimum_ttl = std::chrono::milliseconds{20}};
}

}  // namespace

local_engine::local_engine(const std::string& directory, const process_ref& self, const time_base& base,
                           const client_identity& identity)
    : self_{self},
      identity_{identity},
      address_{"local:" + directory},
      promises_{make_promises()},
      wake_map_{std::make_shared<wake_map>(directory + "/wake", self_)},
      connections_{directory, base, *wake_map_, clock::now() + identity.opening_timeout, stopping_} {
    {
        const auto store = connections_.writer(clock::now() + identity.opening_timeout);
        store->enter(identity_, self_);
        store->sweep(self_);
    }
    watcher_ = std::make_unique<watcher>(wake_map_, [this] { tell_client(); });
    processes_ = std::make_shared<process_watch>(
        self_, [this](const std::string& name) { return find_holders(name); },
        [this](const std::string& name) { watcher_->fire(name); });
}

local_engine::~local_engine() {
    stopping_ = true;
    calls_.stop();
    processes_->stop();
    watcher_.reset();
    try {
        connections_.writer(clock::now() + background_patience)->take_card_back(identity_.client);
    } catch (const database_error&) {
        // Whoever opens the store after this process has ended removes the card.
    }
}

void local_engine::attach(client_callbacks callbacks) {
    const std::lock_guard lock{callbacks_mutex_};
    callbacks_ = std::move(callbacks);
}

template <class Reply, class Lines, class Work>
void local_engine::dispatch(Lines lines, call limits, Reply blank, completion<Reply> done, Work work) {
    calls_.dispatch(std::move(lines), limits, blank, std::move(done),
                    [this, blank, work = std::move(work)](clock::time_point deadline) mutable {
                        try {
                            try {
                                return work(deadline);
                            } catch (const database_full&) {
                                connections_.writer(deadline)->raw().make_room();
                            }
                            return work(deadline);
                        } catch (const database_error& error) {
                            set_error(blank, error.reason());
                        }
                        return blank;
                    });
}

void local_engine::acquire(acquire_request request, call limits, completion<acquire_reply> done) {
    if (auto bad = check_request(request, promises_)) {
        done({.error = std::move(bad)});
        return;
    }
    const auto line = line_of(request.name);
    dispatch(
        line, limits, acquire_reply{}, std::move(done),
        [this, request = std::move(request)](auto deadline) { return acquire_now(request, deadline); });
}

acquire_reply local_engine::acquire_now(const acquire_request& request, clock::time_point deadline) {
    const bool waiting = watcher_->is_watched(request.name);
    holders_of_name holders;
    if (waiting) {
        // One of many that were woken, probably too late: those who only look do not queue for the
        // write lock.
        const auto store = connections_.reader(deadline);
        if (auto refused = store->look_before_acquire(request)) {
            holders = examine_holders(*store, self_, request.name);
            if (holders.dead.empty() || refused->error) {
                follow_holders(request.name, std::move(holders.alive));
                return *refused;
            }
        }
    }
    const auto store = connections_.writer(deadline);
    auto result = store->acquire(request, holders.dead);
    if (result.reply.result == acquire_reply::outcome::busy) {
        holders = examine_holders(*store, self_, request.name);
        if (!holders.dead.empty()) {
            result = store->acquire(request, holders.dead);
        }
    }
    if (waiting && result.reply.result == acquire_reply::outcome::busy) {
        follow_holders(request.name, std::move(holders.alive));
    }
    if (result.downgraded) {
        wake_map_->announce(wake_map::key_of(request.name));
    }
    tidy_now_and_then();
    return result.reply;
}

void local_engine::renew(std::vector<renew_request> batch, call limits,
                         completion<std::vector<renew_reply>> done) {
    std::vector<renew_reply> blank(batch.size());
    std::vector<call_order::line> lines;
    lines.reserve(batch.size());
    for (const renew_request& request : batch) {
        lines.push_back(line_of(request.name));
    }
    if (batch.empty()) {
        done({});
        return;
    }
    dispatch(std::move(lines), limits, std::move(blank), std::move(done),
             [this, batch = std::move(batch)](auto deadline) { return renew_now(batch, deadline); });
}

std::vector<renew_reply> local_engine::renew_now(const std::vector<renew_request>& batch,
                                                 clock::time_point deadline) {
    std::vector<renew_reply> replies(batch.size());
    std::vector<renew_request> accepted;
    std::vector<std::size_t> places;
    for (std::size_t index = 0; index < batch.size(); ++index) {
        replies[index].error = check_request(batch[index], promises_);
        if (!replies[index].error) {
            accepted.push_back(batch[index]);
            places.push_back(index);
        }
    }
    std::vector<renew_reply> answers(accepted.size());
    for (std::size_t done = 0; done < accepted.size(); done += renewals_per_transaction) {
        const std::size_t count = std::min(renewals_per_transaction, accepted.size() - done);
        const auto answered = std::span{answers}.subspan(done, count);
        try {
            connections_.writer(deadline)->renew(std::span{accepted}.subspan(done, count), answered);
        } catch (const database_error& error) {
            std::fill(answered.begin(), answered.end(),
                      renew_reply{renew_reply::outcome::failed, error.reason()});
        }
    }
    for (std::size_t index = 0; index < places.size(); ++index) {
        replies[places[index]] = std::move(answers[index]);
    }
    return replies;
}

void local_engine::release(release_request request, call limits, completion<release_reply> done) {
    if (auto bad = check_request(request, promises_)) {
        done({.error = std::move(bad)});
        return;
    }
    const auto line = line_of(request.name);
    dispatch(
        line, limits, release_reply{}, std::move(done),
        [this, request = std::move(request)](auto deadline) { return release_now(request, deadline); });
}

release_reply local_engine::release_now(const release_request& request, clock::time_point deadline) {
    release_reply reply = connections_.writer(deadline)->release(request);
    if (reply.result != release_reply::outcome::released) {
        return reply;
    }
    const std::uint64_t key = wake_map::key_of(request.name);
    if (request.linger.count() == 0) {
        wake_map_->announce(key);
    }
    reply.others_waiting = wake_map_->count_other_waiters(key);
    if (reply.others_waiting > 0) {
        tidy_waiters_now_and_then();
    }
    return reply;
}

void local_engine::revoke(revoke_request request, call limits, completion<revoke_reply> done) {
    if (auto bad = check_request(request, promises_)) {
        done({.error = std::move(bad)});
        return;
    }
    const auto line = line_of(request.name);
    dispatch(line, limits, revoke_reply{}, std::move(done),
             [this, request = std::move(request)](auto deadline) {
                 revoke_reply reply = connections_.writer(deadline)->revoke(request);
                 if (reply.result == revoke_reply::outcome::revoked) {
                     wake_map_->announce(wake_map::key_of(request.name));
                     wake_map_->announce_revocation();
                 }
                 return reply;
             });
}

void local_engine::inspect(std::string name, call limits, completion<inspect_reply> done) {
    if (auto bad = check_name(name)) {
        done({.info = {}, .error = std::move(bad)});
        return;
    }
    const auto line = line_of(name);
    dispatch(line, limits, inspect_reply{}, std::move(done),
             [this, name = std::move(name)](auto deadline) {
                 const auto store = connections_.reader(deadline);
                 return inspect_reply{describe_name(*store, *wake_map_, self_, name), {}};
             });
}

void local_engine::list(list_request request, call limits, completion<list_reply> done) {
    if (auto bad = check_request(request, promises_)) {
        done({.locks = {}, .next = {}, .error = std::move(bad)});
        return;
    }
    dispatch(std::vector<call_order::line>{}, limits, list_reply{}, std::move(done),
             [this, request = std::move(request)](auto deadline) {
                 const auto store = connections_.reader(deadline);
                 return list_names(*store, *wake_map_, self_, request);
             });
}

void local_engine::latch(latch_request request, call limits, completion<latch_reply> done) {
    if (auto bad = check_request(request, promises_)) {
        done({.error = std::move(bad)});
        return;
    }
    const auto line = line_of(request.name);
    dispatch(
        line, limits, latch_reply{}, std::move(done),
        [this, request = std::move(request)](auto deadline) { return latch_now(request, deadline); });
}

latch_reply local_engine::latch_now(const latch_request& request, clock::time_point deadline) {
    if (request.what == latch_request::operation::read) {
        return connections_.reader(deadline)->read_latch(request.name);
    }
    latch_reply reply = connections_.writer(deadline)->latch(request);
    if (request.what == latch_request::operation::count_down && reply.applied && reply.count == 0) {
        wake_map_->announce(wake_map::key_of(request.name));
    }
    return reply;
}

/// Restarts do not matter here: what was granted is in the file.
store_instance local_engine::instance(const std::string&) const {
    return {store_identity(), {}};
}

std::string local_engine::store_identity() const {
    return identity_of(address_.substr(address_.find(':') + 1));
}

std::unique_ptr<subscription> local_engine::watch(std::string name, lock_kind,
                                                  std::function<void()> hint) {
    auto result = watcher_->watch(name, std::move(hint),
                                  [processes = std::weak_ptr{processes_}](const std::string& ended) {
                                      if (const auto still = processes.lock()) {
                                          still->forget(ended);
                                      }
                                  });
    processes_->look_at(std::move(name));
    return result;
}

void local_engine::follow_holders(const std::string& name, std::vector<process_ref> holders) {
    processes_->follow(name, std::move(holders));
    // The watch may have ended meanwhile, and with it the reason to follow anybody.
    if (!watcher_->is_watched(name)) {
        processes_->forget(name);
    }
}

std::vector<process_ref> local_engine::find_holders(const std::string& name) {
    holders_of_name found;
    try {
        const auto store = connections_.reader(clock::now() + background_patience);
        found = examine_holders(*store, self_, name);
    } catch (const database_error&) {
        // Their end is not noticed then; the ttl still ends what they hold.
    }
    if (!found.dead.empty()) {
        watcher_->fire(name);
    }
    return std::move(found.alive);
}

/// Holds whose owners vanished and whose names nobody asks for would stay for ever.
void local_engine::tidy_now_and_then() {
    if (grants_.fetch_add(1, std::memory_order_relaxed) % grants_between_sweeps !=
        grants_between_sweeps - 1) {
        return;
    }
    const auto deadline = clock::now() + background_patience;
    worker_pool::job sweep = [this, deadline](worker_pool::verdict verdict) {
        if (verdict != worker_pool::verdict::run) {
            return;
        }
        try {
            connections_.writer(deadline)->sweep(self_);
        } catch (const database_error&) {
            // There is a next time.
        }
    };
    static_cast<void>(calls_.submit(deadline, std::move(sweep)));
}

void local_engine::tidy_waiters_now_and_then() {
    const auto now = clock::now().time_since_epoch();
    clock::rep due = next_waiter_check_.load(std::memory_order_relaxed);
    const clock::rep next = (now + between_waiter_checks).count();
    if (now.count() >= due && next_waiter_check_.compare_exchange_strong(due, next)) {
        wake_map_->forget_dead_waiters();
    }
}

void local_engine::tell_client() {
    std::function<void()> callback;
    {
        const std::lock_guard lock{callbacks_mutex_};
        callback = callbacks_.holds_may_have_changed;
    }
    if (callback) {
        callback();
    }
}

}  // namespace local

address_summary summarise_local(std::string_view rest) {
    const auto directory = local::directory_of(rest);
    return {local::identity_of(directory), "local:" + directory};
}

std::unique_ptr<engine> open_local(std::string_view rest, const client_identity& identity) {
    const std::string wanted = local::directory_of(rest);
    const auto absent = [&](const std::string& path) {
        // What may not be looked at is refused like everywhere else.
        struct ::stat status {};
        return identity.only_looks && ::lstat(path.c_str(), &status) != 0 && errno == ENOENT;
    };
    if (absent(wanted)) {
        return local::make_absent_store(wanted, local::make_promises());
    }
    std::string place = wanted;
    try {
        // Before anything is made: who cannot tell these leaves no new store behind.
        const local::process_ref self = local::this_process();
        const local::time_base base = local::this_time_base();
        place = local::prepare_directory(wanted);
        if (absent(place + "/locks.db")) {
            return local::make_absent_store(place, local::make_promises());
        }
        local::keep_private(place);
        return std::make_unique<local::local_engine>(place, self, base, identity);
    } catch (const local::database_error& error) {
        failure reason = error.reason();
        if (reason.code == errc::outcome_unknown) {
            reason.code = errc::store_unavailable;  // nothing was asked for yet
        }
        reason.raise("local:" + place);
    }
}

}  // namespace holdfast::engines
