#include <algorithm>
#include <common/callback_gate.hpp>
#include <common/validate.hpp>
#include <holdfast/engine.hpp>
#include <map>
#include <memory/store_model.hpp>
#include <memory>
#include <mutex>
#include <set>
#include <threading/primitives.hpp>

namespace holdfast::engines {

std::unique_ptr<engine> open_memory(std::string_view rest, const client_identity& identity);
address_summary summarise_memory(std::string_view rest);

namespace memory {

namespace {

const guarantees& memory_promises() {
    static const guarantees promises{.reach = scope::process,
                                     .reach_text = "this process only",
                                     .tokens = fencing::strict,
                                     .shared = true,
                                     .permits = true,
                                     .latches = true,
                                     .fair = false,
                                     .notices_dead_holders = false,
                                     .minimum_ttl = std::chrono::milliseconds{20}};
    return promises;
}

/// One client of a store, as the others see it.
struct member {
    explicit member(client_identity client) : identity{std::move(client)} {}

    const client_identity identity;
    callback_gate gate;
    /// Guarded by the store's mutex.
    std::function<void()> holds_may_have_changed;
};

struct watch_entry {
    std::shared_ptr<member> watcher;
    std::function<void()> hint;
};

/// What all clients of one `memory:name` share. The mutex guards everything, and is never held while
/// a callback runs.
struct shared_store {
    explicit shared_store(std::uint64_t token_floor) : model{token_floor} {}

    threading::mutex mutex;
    store_model model;
    std::set<std::shared_ptr<member>> members;
    std::map<std::pair<std::uint64_t, std::uint64_t>, holder_card> cards;
    std::multimap<std::string, std::shared_ptr<watch_entry>, std::less<>> watches;
};

/// The stores of this process. A store goes with its last client; tokens keep rising in its successor.
class store_registry {
public:
    static store_registry& instance() {
        // Never destroyed: a client that shutdown left behind may end after the static objects.
        static auto& registry = *new store_registry;
        return registry;
    }

    std::shared_ptr<shared_store> open(std::string_view name) {
        const std::lock_guard lock{mutex_};
        std::weak_ptr<shared_store>& place = stores_[std::string{name}];
        std::shared_ptr<shared_store> store = place.lock();
        if (!store) {
            store = std::make_shared<shared_store>(token_floor_);
            place = store;
        }
        return store;
    }

    void leave(std::shared_ptr<shared_store> store) {
        const std::lock_guard lock{mutex_};
        {
            const std::lock_guard store_lock{store->mutex};
            token_floor_ = std::max(token_floor_, store->model.last_token());
        }
        store.reset();
        std::erase_if(stores_, [](const auto& entry) { return entry.second.expired(); });
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<shared_store>> stores_;
    std::uint64_t token_floor_{};
};

class memory_subscription final : public subscription {
public:
    using place = decltype(shared_store::watches)::iterator;

    memory_subscription(std::shared_ptr<shared_store> store, place position)
        : store_{std::move(store)}, position_{position} {}
    ~memory_subscription() override {
        const std::lock_guard lock{store_->mutex};
        store_->watches.erase(position_);
    }
    [[nodiscard]] bool active() const noexcept override { return true; }

private:
    std::shared_ptr<shared_store> store_;
    place position_;
};

using watch_list = std::vector<std::shared_ptr<watch_entry>>;

class memory_engine final : public engine,
                            public watching,
                            public operators_view,
                            public latches,
                            public joint_locking,
                            public votes {
public:
    memory_engine(std::string_view name, const client_identity& identity)
        : address_{"memory:" + std::string{name}},
          store_{store_registry::instance().open(name)},
          self_{std::make_shared<member>(identity)} {
        const std::lock_guard lock{store_->mutex};
        store_->members.insert(self_);
        store_->cards[card_key(identity.client)] = identity.card;
    }

    ~memory_engine() override {
        self_->gate.close();
        {
            const std::lock_guard lock{store_->mutex};
            store_->members.erase(self_);
            forget_cards();
        }
        store_registry::instance().leave(std::move(store_));
    }

    [[nodiscard]] const guarantees& promises() const noexcept override { return memory_promises(); }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] abilities offers() noexcept override {
        return {
            .watching = this, .operators = this, .latches = this, .joint_locking = this, .votes = this};
    }

    void attach(client_callbacks callbacks) override {
        const std::lock_guard lock{store_->mutex};
        self_->holds_may_have_changed = std::move(callbacks.holds_may_have_changed);
    }

    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override {
        perform(request, limits, done, [&](store_model& model, clock::time_point now) {
            return model.acquire(request, now, std::chrono::system_clock::now());
        });
    }

    [[nodiscard]] bool acquires_together(const std::vector<std::string>&) const override {
        return true;
    }

    void acquire_all(std::vector<acquire_request> all, call limits,
                     completion<acquire_all_reply> done) override {
        acquire_all_reply reply;
        const auto now = clock::now();
        for (const auto& one : all) {
            if (auto bad = refusal(one, limits, now)) {
                reply.error = std::move(bad);
                done(std::move(reply));
                return;
            }
        }
        {
            const std::lock_guard lock{store_->mutex};
            reply = store_->model.acquire_all(all, now, std::chrono::system_clock::now());
        }
        done(std::move(reply));
    }

    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override {
        std::vector<renew_reply> replies(batch.size());
        const auto now = clock::now();
        {
            const std::lock_guard lock{store_->mutex};
            for (std::size_t index = 0; index < batch.size(); ++index) {
                if (auto bad = refusal(batch[index], limits, now)) {
                    replies[index].error = std::move(bad);
                } else {
                    replies[index] = store_->model.renew(batch[index], now);
                }
            }
        }
        done(std::move(replies));
    }

    void release(release_request request, call limits, completion<release_reply> done) override {
        perform(request, limits, done, [&](store_model& model, clock::time_point now) {
            release_reply reply = model.release(request, now);
            if (reply.result == release_reply::outcome::released) {
                reply.others_waiting = others_waiting(request.name);
            }
            return reply;
        });
    }

    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override {
        std::vector<std::shared_ptr<member>> told;
        perform(request, limits, completion<revoke_reply>{[&](revoke_reply reply) {
                    tell(told);
                    done(std::move(reply));
                }},
                [&](store_model& model, clock::time_point now) {
                    revoke_reply reply = model.revoke(request, now, std::chrono::system_clock::now());
                    if (reply.result == revoke_reply::outcome::revoked) {
                        told.assign(store_->members.begin(), store_->members.end());
                    }
                    return reply;
                });
    }

    void inspect(std::string name, call limits, completion<inspect_reply> done) override {
        inspect_reply reply;
        const auto now = clock::now();
        reply.error = check_name(name);
        if (!reply.error) {
            reply.error = lateness(limits, now);
        }
        if (!reply.error) {
            const std::lock_guard lock{store_->mutex};
            reply.info = store_->model.inspect(name, now);
            complete(reply.info);
        }
        done(std::move(reply));
    }

    void list(list_request request, call limits, completion<list_reply> done) override {
        perform(request, limits, done, [&](store_model& model, clock::time_point now) {
            list_reply reply = model.list(request, now);
            for (lock_info& info : reply.locks) {
                complete(info);
            }
            return reply;
        });
    }

    void latch(latch_request request, call limits, completion<latch_reply> done) override {
        perform(request, limits, done,
                [&](store_model& model, clock::time_point now) { return model.latch(request, now); });
    }

    [[nodiscard]] store_instance instance(const std::string&) const override {
        return {"memory:" + std::to_string(reinterpret_cast<std::uintptr_t>(store_.get())), {}};
    }

    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind,
                                                      std::function<void()> hint) override {
        auto entry = std::make_shared<watch_entry>(watch_entry{self_, std::move(hint)});
        const std::lock_guard lock{store_->mutex};
        const auto place = store_->watches.emplace(std::move(name), std::move(entry));
        return std::make_unique<memory_subscription>(store_, place);
    }

private:
    static std::pair<std::uint64_t, std::uint64_t> card_key(const owner_id& client) {
        return {client.high, client.low};
    }

    static failure lateness(const call& limits, clock::time_point now) {
        if (now < limits.deadline) {
            return {};
        }
        return {errc::store_unavailable, "the deadline passed before the store was asked"};
    }

    template <class Request>
    failure refusal(const Request& request, const call& limits, clock::time_point now) const {
        if (auto bad = check_request(request, promises())) {
            return bad;
        }
        return lateness(limits, now);
    }

    /// Does `work` under the lock, then wakes those whom it concerns and answers, without it.
    template <class Request, class Reply, class Work>
    void perform(const Request& request, const call& limits, const completion<Reply>& done, Work work) {
        Reply reply;
        watch_list due;
        const auto now = clock::now();
        reply.error = refusal(request, limits, now);
        if (!reply.error) {
            const std::lock_guard lock{store_->mutex};
            reply = work(store_->model, now);
            due = take_due();
        }
        for (const auto& watch : due) {
            watch->watcher->gate.pass(watch->hint);
        }
        done(std::move(reply));
    }

    [[nodiscard]] watch_list take_due() {
        watch_list due;
        for (const std::string& name : store_->model.take_hints()) {
            const auto [first, last] = store_->watches.equal_range(name);
            std::for_each(first, last, [&](const auto& entry) { due.push_back(entry.second); });
        }
        return due;
    }

    void tell(const std::vector<std::shared_ptr<member>>& told) {
        for (const auto& each : told) {
            std::function<void()> callback;
            {
                const std::lock_guard lock{store_->mutex};
                callback = each->holds_may_have_changed;
            }
            each->gate.pass(callback);
        }
    }

    [[nodiscard]] std::uint32_t others_waiting(std::string_view name) const {
        const auto [first, last] = store_->watches.equal_range(name);
        return static_cast<std::uint32_t>(std::count_if(
            first, last, [&](const auto& entry) { return entry.second->watcher != self_; }));
    }

    /// Adds what the model does not know.
    void complete(lock_info& info) const {
        for (holder_info& holder : info.holders) {
            const auto card = store_->cards.find(card_key(holder.owner));
            if (card != store_->cards.end()) {
                holder.card = card->second;
            }
            holder.process = liveness::alive;
        }
        info.waiters = static_cast<std::uint32_t>(store_->watches.count(info.name));
    }

    /// A card stays for as long as its client is here or left something that lingers.
    void forget_cards() {
        const auto now = clock::now();
        std::erase_if(store_->cards, [&](const auto& entry) {
            const owner_id client{entry.first.first, entry.first.second, 0};
            const bool here = std::any_of(
                store_->members.begin(), store_->members.end(),
                [&](const auto& each) { return each->identity.client.same_client(client); });
            return !here && !store_->model.has_holds_of(client, now);
        });
    }

    const std::string address_;
    std::shared_ptr<shared_store> store_;
    const std::shared_ptr<member> self_;
};

}  // namespace

}  // namespace memory

address_summary summarise_memory(std::string_view rest) {
    const auto address = "memory:" + std::string{rest};
    return {address, address};
}

std::unique_ptr<engine> open_memory(std::string_view rest, const client_identity& identity) {
    if (auto bad = rest.empty() ? failure{} : check_name(rest)) {
        failure{errc::bad_configuration, bad.detail}.raise("memory:");
    }
    return std::make_unique<memory::memory_engine>(rest, identity);
}

}  // namespace holdfast::engines
