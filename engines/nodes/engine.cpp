#include <algorithm>
#include <chrono>
#include <common/callback_gate.hpp>
#include <common/quiet_thread.hpp>
#include <common/validate.hpp>
#include <condition_variable>
#include <exception>
#include <holdfast/ordered_nodes.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <nodes/recipe.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::engines {

namespace nodes {

namespace {

/// A client that ends waits for so long until its sessions are closed. The store ends them by itself.
constexpr std::chrono::seconds closing_patience{1};

class node_engine;

/// Who is told of news. Outlives the engine, for subscriptions that do.
struct watch_list {
    using hint = std::shared_ptr<const std::function<void()>>;

    std::mutex mutex;
    std::multimap<std::string, hint> watches;
    node_engine* engine{};
};

class name_subscription final : public subscription {
public:
    using place = decltype(watch_list::watches)::iterator;

    name_subscription(std::shared_ptr<watch_list> list, place position)
        : list_{std::move(list)}, position_{position} {}
    name_subscription(const name_subscription&) = delete;
    name_subscription& operator=(const name_subscription&) = delete;
    ~name_subscription() override;
    [[nodiscard]] bool active() const noexcept override;

private:
    std::shared_ptr<watch_list> list_;
    place position_;
};

/// Performs what the recipe asks for. The mutex guards the recipe and what is waited for, and is never
/// held while the store or the client is called.
class node_engine final : public engine, public watching, public lines {
public:
    node_engine(std::unique_ptr<node_store> store, const client_identity& identity)
        : promises_{store->promises()},
          address_{store->address()},
          store_{std::move(store)},
          recipe_{identity.client.client_text(),
                  {.granularity = promises_.ttl_granularity,
                   .minimum_ttl = promises_.minimum_ttl,
                   .tokens_per_node = store_->tokens_per_node()}} {
        watches_->engine = this;
        store_->attach({.session_ended =
                            [this](session_id session) {
                                run([&](auto now) { return recipe_.on_session_ended(session, now); });
                            },
                        .node_removed =
                            [this](const std::string& name, const std::string& id) {
                                run([&](auto now) { return recipe_.on_node_removed(name, id, now); });
                            }});
        timer_ = quiet_thread([this] { keep_time(); });
    }
    node_engine(const node_engine&) = delete;
    node_engine& operator=(const node_engine&) = delete;

    ~node_engine() override {
        gate_.close();
        run([&](auto now) {
            shutting_down_ = true;
            return recipe_.shut_down(now);
        });
        decltype(store_watches_) watches;
        {
            std::unique_lock lock{mutex_};
            watches.swap(store_watches_);
            changed_.wait_for(lock, closing_patience, [&] { return !recipe_.closing(); });
            closed_ = true;
            changed_.notify_all();
        }
        timer_.join();
        watches.clear();
        store_.reset();
        const std::lock_guard lock{watches_->mutex};
        watches_->engine = nullptr;
    }

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] abilities offers() noexcept override { return {.watching = this, .lines = this}; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] std::string store_identity() const override { return store_->store_identity(); }
    [[nodiscard]] bool serves_plain_locks() const noexcept override { return true; }

    void attach(client_callbacks callbacks) override {
        const std::lock_guard lock{mutex_};
        callbacks_ = std::make_shared<const client_callbacks>(std::move(callbacks));
    }

    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override {
        auto bad = refusal(request, limits);
        if (!bad && ((request.mode == claim_mode::shared && !promises_.shared) ||
                     (request.mode == claim_mode::permit && !promises_.permits))) {
            bad = {errc::guarantee_not_met, "this store has no locks of this kind"};
        }
        if (bad) {
            done({.error = std::move(bad)});
            return;
        }
        run(
            [&](auto now) {
                const auto id = ++last_call_;
                acquires_[id] = std::move(done);
                return recipe_.acquire(id, std::move(request), limits.deadline, now);
            },
            limits.from);
    }

    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override {
        std::vector<renew_reply> replies(batch.size());
        std::vector<std::size_t> places;
        std::vector<renew_request> sound;
        for (std::size_t index = 0; index < batch.size(); ++index) {
            replies[index].error = refusal(batch[index], limits);
            if (!replies[index].error) {
                places.push_back(index);
                sound.push_back(std::move(batch[index]));
            }
        }
        if (sound.empty()) {
            done(std::move(replies));
            return;
        }
        auto merged = [replies = std::move(replies), places = std::move(places),
                       done = std::move(done)](std::vector<renew_reply> answers) mutable {
            for (std::size_t index = 0; index < places.size(); ++index) {
                replies[places[index]] = std::move(answers[index]);
            }
            done(std::move(replies));
        };
        run(
            [&](auto now) {
                const auto id = ++last_call_;
                renewals_[id] = std::move(merged);
                return recipe_.renew(id, std::move(sound), limits.deadline, now);
            },
            limits.from);
    }

    void release(release_request request, call limits, completion<release_reply> done) override {
        if (auto bad = refusal(request, limits)) {
            done({.error = std::move(bad)});
            return;
        }
        run(
            [&](auto now) {
                const auto id = ++last_call_;
                releases_[id] = std::move(done);
                return recipe_.release(id, std::move(request), limits.deadline, now);
            },
            limits.from);
    }

    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind,
                                                      std::function<void()> hint) override {
        const auto shared = std::make_shared<const std::function<void()>>(std::move(hint));
        std::unique_ptr<subscription> result;
        {
            const std::lock_guard lock{watches_->mutex};
            const auto place = watches_->watches.emplace(name, shared);
            result = std::make_unique<name_subscription>(watches_, place);
        }
        count_watchers(name);
        return result;
    }

    /// After somebody has begun or ceased to watch the name.
    void count_watchers(const std::string& name) {
        run([&](auto) {
            const std::lock_guard lock{watches_->mutex};
            return recipe_.watchers(name, static_cast<std::uint32_t>(watches_->watches.count(name)));
        });
    }

    [[nodiscard]] bool hears(const std::string& name) {
        const std::lock_guard lock{mutex_};
        return recipe_.hears(name);
    }

private:
    template <class Request>
    [[nodiscard]] failure refusal(const Request& request, const call& limits) const {
        if (auto bad = check_request(request, promises_)) {
            return bad;
        }
        if (clock::now() >= limits.deadline) {
            return {errc::store_unavailable, "the deadline passed before the store was asked"};
        }
        return {};
    }

    /// One step of the recipe, and what follows from it.
    template <class Step>
    void run(Step step, caller from = caller::must_not_block) {
        actions wanted;
        {
            const std::lock_guard lock{mutex_};
            wanted = step(clock::now());
            if (const auto next = recipe_.next_wake(); next < timer_at_) {
                timer_at_ = next;
                changed_.notify_all();
            }
            if (shutting_down_ && !recipe_.closing()) {
                changed_.notify_all();
            }
        }
        for (auto& each : wanted) {
            std::visit([&](auto& one) { perform(one, from); }, each);
        }
    }

    void keep_time() {
        std::unique_lock lock{mutex_};
        while (!closed_) {
            const auto now = clock::now();
            const auto next = recipe_.next_wake();
            if (next <= now) {
                lock.unlock();
                run([&](auto at) { return recipe_.on_time(at); });
                lock.lock();
                continue;
            }
            timer_at_ = next;
            const auto pause = std::min<clock::duration>(next - now, std::chrono::seconds{1});
            changed_.wait_for(lock, pause, [&] { return closed_ || timer_at_ < next; });
        }
    }

    /// A store that throws has not answered, and may have done what it was asked. The recipe takes the
    /// first answer: also if the store has answered before it threw, or does so later.
    template <class Reply, class Send>
    void ask(request_id id, actions (recipe::*answered)(request_id, const Reply&, clock::time_point),
             const Send& send) {
        const auto done = [this, id, answered](const Reply& reply) {
            run([&](auto now) { return (recipe_.*answered)(id, reply, now); });
        };
        try {
            send(done);
        } catch (const std::exception& wrong) {
            done({.error = {errc::outcome_unknown, wrong.what()}});
        }
    }
    void perform(send_open& one, caller from) {
        ask(one.id, &recipe::on_session, [&](const auto& done) {
            store_->open_session(one.ttl, {one.deadline, from}, done);
        });
    }
    void perform(send_keep_alive& one, caller from) {
        ask(one.id, &recipe::on_session, [&](const auto& done) {
            store_->keep_alive(one.session, {one.deadline, from}, done);
        });
    }
    void perform(send_close& one, caller from) {
        ask(one.id, &recipe::on_closed, [&](const auto& done) {
            store_->close_session(one.session, {one.deadline, from}, done);
        });
    }
    void perform(send_create& one, caller from) {
        ask(one.id, &recipe::on_created, [&](const auto& done) {
            store_->create(std::move(one.request), {one.deadline, from}, done);
        });
    }
    void perform(send_read& one, caller from) {
        ask(one.id, &recipe::on_read, [&](const auto& done) {
            store_->read(std::move(one.name), std::move(one.label), {one.deadline, from}, done);
        });
    }
    void perform(send_remove& one, caller from) {
        ask(one.id, &recipe::on_removed, [&](const auto& done) {
            store_->remove(std::move(one.name), std::move(one.node), {one.deadline, from}, done);
        });
    }

    /// Another thread may stop the watch before it is in place.
    void perform(start_watch& one, caller) {
        std::unique_ptr<subscription> watch;
        try {
            watch = store_->watch(std::move(one.name), std::move(one.nodes), [this, id = one.id] {
                run([&](auto now) { return recipe_.on_changed(id, now); });
            });
        } catch (const std::exception&) {
            run([&](auto now) { return recipe_.on_watch_failed(one.id, now); });
        }
        const std::lock_guard lock{mutex_};
        if (stopped_watches_.erase(one.id) == 0 && watch) {
            store_watches_.emplace(one.id, std::move(watch));
        }
    }
    void perform(stop_watch& one, caller) {
        std::unique_ptr<subscription> stopped;
        const std::lock_guard lock{mutex_};
        const auto found = store_watches_.find(one.id);
        if (found == store_watches_.end()) {
            stopped_watches_.insert(one.id);
        } else {
            stopped = std::move(found->second);
            store_watches_.erase(found);
        }
    }

    template <class Done>
    [[nodiscard]] Done taken(std::map<call_id, Done>& waiting, call_id id) {
        const std::lock_guard lock{mutex_};
        return std::move(waiting.extract(id).mapped());
    }
    void perform(answer_acquire& one, caller) { taken(acquires_, one.id)(std::move(one.reply)); }
    void perform(answer_renew& one, caller) { taken(renewals_, one.id)(std::move(one.replies)); }
    void perform(answer_release& one, caller) { taken(releases_, one.id)(std::move(one.reply)); }

    [[nodiscard]] std::shared_ptr<const client_callbacks> callbacks() {
        const std::lock_guard lock{mutex_};
        return callbacks_;
    }
    void perform(tell_turn& one, caller) {
        const auto client = callbacks();
        if (client && client->turn_of) {
            gate_.pass([&] { client->turn_of(one.name, one.owner, one.granted); });
        }
    }
    void perform(tell_hint& one, caller) {
        std::vector<watch_list::hint> told;
        {
            const std::lock_guard lock{watches_->mutex};
            const auto [first, last] = watches_->watches.equal_range(one.name);
            std::transform(first, last, std::back_inserter(told),
                           [](const auto& entry) { return entry.second; });
        }
        for (const auto& hint : told) {
            gate_.pass(*hint);
        }
    }
    void perform(tell_holds_changed&, caller) {
        const auto client = callbacks();
        if (client && client->holds_may_have_changed) {
            gate_.pass(client->holds_may_have_changed);
        }
    }

    const guarantees promises_;
    const std::string address_;
    const std::shared_ptr<watch_list> watches_{std::make_shared<watch_list>()};
    callback_gate gate_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<const client_callbacks> callbacks_;
    std::map<call_id, completion<acquire_reply>> acquires_;
    std::map<call_id, std::function<void(std::vector<renew_reply>)>> renewals_;
    std::map<call_id, completion<release_reply>> releases_;
    call_id last_call_{};
    std::map<watch_id, std::unique_ptr<subscription>> store_watches_;
    std::set<watch_id> stopped_watches_;
    clock::time_point timer_at_{clock::time_point::max()};
    bool shutting_down_{};
    bool closed_{};

    std::unique_ptr<node_store> store_;
    recipe recipe_;
    threading::jthread timer_;
};

name_subscription::~name_subscription() {
    const auto name = position_->first;
    node_engine* engine{};
    {
        const std::lock_guard lock{list_->mutex};
        list_->watches.erase(position_);
        engine = list_->engine;
    }
    if (engine != nullptr) {
        engine->count_watchers(name);
    }
}

bool name_subscription::active() const noexcept {
    node_engine* engine{};
    {
        const std::lock_guard lock{list_->mutex};
        engine = list_->engine;
    }
    return engine != nullptr && engine->hears(position_->first);
}

}  // namespace

}  // namespace nodes

std::unique_ptr<engine> v0::make_node_engine(std::unique_ptr<node_store> store,
                                             const client_identity& identity) {
    return std::make_unique<nodes::node_engine>(std::move(store), identity);
}

}  // namespace holdfast::engines
