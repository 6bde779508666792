#include <algorithm>
#include <atomic>
#include <common/callback_gate.hpp>
#include <common/ordered_calls.hpp>
#include <common/validate.hpp>
#include <random>
#include <records/exchange.hpp>
#include <thread>
#include <utility>

namespace holdfast::engines {

namespace records {

namespace {

constexpr std::size_t threads = 4;
/// Of names, for one page of a list.
constexpr std::size_t longest_scan = 1000;
constexpr int most_scans = 10;

/// Not a lock's name. Its record is replaced after every revocation, and every client listens to it.
const std::string revocation_name{"\x01revoked"};

using wall_clock = std::chrono::system_clock;

guarantees promises_of(const record_store& store) {
    guarantees promises = store.promises();
    promises.shared = promises.permits = promises.latches = true;
    promises.fair = promises.replicas = promises.notices_dead_holders = false;
    return promises;
}

void add_card(saved_record& record, const client_identity& identity) {
    auto& cards = record.cards;
    const auto place =
        std::lower_bound(cards.begin(), cards.end(), identity.client,
                         [](const auto& card, const owner_id& client) { return card.client < client; });
    if (place == cards.end() || place->client != identity.client) {
        cards.insert(place, {identity.client, identity.card});
    }
}

lock_info describe_all(const saved_record& record, std::string_view name, clock::time_point now) {
    lock_info info = inspect(record, name, now);
    for (holder_info& holder : info.holders) {
        const auto card = std::lower_bound(
            record.cards.begin(), record.cards.end(), holder.owner,
            [](const auto& each, const owner_id& owner) {
                return std::pair{each.client.high, each.client.low} < std::pair{owner.high, owner.low};
            });
        if (card != record.cards.end() && card->client.same_client(holder.owner)) {
            holder.card = card->card;
        }
    }
    return info;
}

/// Answers of several calls that are one call for the client.
struct batch_of_renewals {
    batch_of_renewals(std::size_t size, completion<std::vector<renew_reply>> whole)
        : replies(size), missing{size}, done{std::move(whole)} {}

    void finish(std::size_t index, renew_reply&& reply) {
        replies[index] = std::move(reply);
        if (missing.fetch_sub(1) == 1) {
            done(std::move(replies));
        }
    }

    std::vector<renew_reply> replies;
    std::atomic<std::size_t> missing;
    completion<std::vector<renew_reply>> done;
};

class records_engine final : public engine,
                             public watching,
                             public operators_view,
                             public latches,
                             public votes {
public:
    records_engine(std::unique_ptr<record_store> store, const client_identity& identity)
        : store_{std::move(store)}, identity_{identity}, promises_{promises_of(*store_)} {
        identity_.client.sequence = 0;
        std::random_device source;
        chance_ = (std::uint64_t{source()} << 32U) | source();
    }
    ~records_engine() override {
        stopping_ = true;
        gate_.close();
        revocations_.reset();
        calls_.stop();
    }

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return store_->address(); }
    [[nodiscard]] std::string store_identity() const override { return store_->store_identity(); }
    [[nodiscard]] abilities offers() noexcept override {
        return {.watching = store_->news() != nullptr ? this : nullptr,
                .operators = store_->listing() != nullptr ? this : nullptr,
                .latches = this,
                .votes = this};
    }
    [[nodiscard]] store_instance instance(const std::string&) const override {
        return {store_identity(), {}};
    }
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind,
                                                      std::function<void()> hint) override {
        return store_->news()->listen(std::move(name), std::move(hint));
    }

    void attach(client_callbacks callbacks) override {
        if (store_->news() == nullptr || !callbacks.holds_may_have_changed) {
            return;
        }
        revocations_ = store_->news()->listen(
            revocation_name,
            [this, tell = std::move(callbacks.holds_may_have_changed)] { gate_.pass(tell); });
    }

    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override {
        ask(std::move(request), limits, std::move(done), &records_engine::acquire_now);
    }
    void release(release_request request, call limits, completion<release_reply> done) override {
        ask(std::move(request), limits, std::move(done), &records_engine::release_now);
    }
    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override {
        ask(std::move(request), limits, std::move(done), &records_engine::revoke_now);
    }
    void latch(latch_request request, call limits, completion<latch_reply> done) override {
        ask(std::move(request), limits, std::move(done), &records_engine::latch_now);
    }
    /// Each name has a record of its own: so many requests, on as many threads as there are.
    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override {
        if (batch.empty()) {
            done({});
            return;
        }
        const auto all = std::make_shared<batch_of_renewals>(batch.size(), std::move(done));
        for (std::size_t index = 0; index < batch.size(); ++index) {
            ask(std::move(batch[index]), limits,
                completion<renew_reply>{
                    [all, index](renew_reply reply) { all->finish(index, std::move(reply)); }},
                &records_engine::renew_now);
        }
    }

    void inspect(std::string name, call limits, completion<inspect_reply> done) override {
        if (auto bad = check_name(name)) {
            done({.info = {}, .error = std::move(bad)});
            return;
        }
        const auto line = line_of(name);
        calls_.dispatch(line, limits, inspect_reply{}, std::move(done),
                        [this, name = std::move(name)](clock::time_point deadline) {
                            return inspect_now(name, deadline);
                        });
    }
    void list(list_request request, call limits, completion<list_reply> done) override {
        if (auto bad = check_request(request, promises_)) {
            done({.locks = {}, .next = {}, .error = std::move(bad)});
            return;
        }
        calls_.dispatch(std::vector<call_order::line>{}, limits, list_reply{}, std::move(done),
                        [this, request = std::move(request)](clock::time_point deadline) {
                            return list_now(request, deadline);
                        });
    }

private:
    static call_order::line line_of(const std::string& name) noexcept {
        return static_cast<call_order::line>(std::hash<std::string>{}(name));
    }

    template <class Request, class Reply>
    void ask(Request request, call limits, completion<Reply> done,
             Reply (records_engine::*run)(const Request&, clock::time_point)) {
        if (auto bad = check_request(request, promises_)) {
            Reply refused;
            refused.error = std::move(bad);
            done(std::move(refused));
            return;
        }
        const auto line = line_of(request.name);
        calls_.dispatch(line, limits, Reply{}, std::move(done),
                        [this, request = std::move(request), run](clock::time_point deadline) {
                            return (this->*run)(request, deadline);
                        });
    }

    [[nodiscard]] acquire_reply acquire_now(const acquire_request& request,
                                            clock::time_point deadline) {
        const auto asked_at = clock::now();
        acquire_reply reply;
        clock::time_point expires;
        exchange machine{known_,
                         {.name = request.name,
                          .owner = request.owner,
                          .rule =
                              [&](saved_record& record, const moment& at) {
                                  auto result =
                                      records::acquire(record.holds, request, at, record.last_token);
                                  if (result.changed) {
                                      expires = record.holds[result.own].expires;
                                      add_card(record, identity_);
                                  }
                                  reply = std::move(result.reply);
                                  return verdict{result.changed, result.freed};
                              },
                          .wall = wall_clock::now()},
                         deadline,
                         random()};
        finish(machine, reply, deadline);
        if (reply.result == acquire_reply::outcome::granted) {
            reply.ttl = machine.shortened_ttl(expires, request.ttl, asked_at);
        }
        return reply;
    }

    [[nodiscard]] renew_reply renew_now(const renew_request& request, clock::time_point deadline) {
        const auto asked_at = clock::now();
        renew_reply reply;
        clock::time_point expires;
        exchange machine{known_,
                         {.name = request.name,
                          .owner = request.owner,
                          .rule =
                              [&](saved_record& record, const moment& at) {
                                  auto result = records::renew(record, request, at.now);
                                  expires = at.now + request.ttl;
                                  reply = std::move(result.reply);
                                  return verdict{result.changed, result.freed};
                              },
                          .wall = {}},
                         deadline,
                         random()};
        finish(machine, reply, deadline);
        if (reply.result == renew_reply::outcome::renewed) {
            reply.ttl = machine.shortened_ttl(expires, request.ttl, asked_at);
        }
        return reply;
    }

    [[nodiscard]] release_reply release_now(const release_request& request,
                                            clock::time_point deadline) {
        // A lease that ends a little sooner than was asked for is told so. A linger is not, so it lasts
        // a little longer.
        return perform<release_reply>(request.name, operation::kind::once, deadline,
                                      [&](saved_record& record, const decision_time& at) {
                                          return records::release(record, request, at.latest);
                                      });
    }

    [[nodiscard]] revoke_reply revoke_now(const revoke_request& request, clock::time_point deadline) {
        auto reply = perform<revoke_reply>(request.name, operation::kind::once, deadline,
                                           [&](saved_record& record, const moment& at) {
                                               return records::revoke(record, request, at);
                                           });
        if (reply.result == revoke_reply::outcome::revoked && store_->news() != nullptr) {
            static_cast<void>(perform<revoke_reply>(revocation_name, operation::kind::repeats, deadline,
                                                    [](saved_record&, const moment&) {
                                                        return outcome<revoke_reply>{{}, true, true};
                                                    }));
        }
        return reply;
    }

    [[nodiscard]] latch_reply latch_now(const latch_request& request, clock::time_point deadline) {
        const bool reads = request.what == latch_request::operation::read;
        return perform<latch_reply>(request.name,
                                    reads ? operation::kind::looks : operation::kind::repeats, deadline,
                                    [&](saved_record& record, const moment& at) {
                                        return records::latch(record, request, at.now);
                                    });
    }

    [[nodiscard]] inspect_reply inspect_now(const std::string& name, clock::time_point deadline) {
        return perform<inspect_reply>(
            name, operation::kind::looks, deadline, [&](saved_record& record, const moment& at) {
                return outcome<inspect_reply>{{describe_all(record, name, at.now), {}}};
            });
    }

    [[nodiscard]] list_reply list_now(const list_request& request, clock::time_point deadline) {
        list_reply reply;
        reply.next = request.from;
        for (int scans = 0; scans < most_scans; ++scans) {
            auto page = store_->listing()->scan(request.prefix, reply.next, longest_scan, deadline);
            if (page.error) {
                reply.error = std::move(page.error);
                return reply;
            }
            const clock::time_point now{page.now};
            for (const auto& [name, stored] : page.entries) {
                if (reply.locks.size() == request.limit) {
                    return reply;
                }
                reply.next = name;
                auto record = decode(stored.bytes);
                if (!record) {
                    reply.missing = {errc::store_error, "the record of " + in_quotes(name) +
                                                            " is damaged, or of a newer holdfast"};
                    continue;
                }
                drop_ended(*record, now);
                if (!record->holds.empty()) {
                    reply.locks.push_back(describe_all(*record, name, now));
                }
            }
            if (page.entries.size() < longest_scan) {
                reply.next.clear();
                return reply;
            }
        }
        return reply;
    }

    template <class Reply, class Rule>
    [[nodiscard]] Reply perform(const std::string& name, operation::kind repetition,
                                clock::time_point deadline, Rule rule) {
        Reply reply;
        exchange machine{known_,
                         {.name = name,
                          .rule =
                              [&](saved_record& record, const decision_time& at) {
                                  auto result = rule(record, at);
                                  reply = std::move(result.reply);
                                  return verdict{result.changed, result.freed};
                              },
                          .repetition = repetition,
                          .wall = wall_clock::now()},
                         deadline,
                         random()};
        finish(machine, reply, deadline);
        return reply;
    }

    /// Asks the store for what the machine says until it has an answer.
    template <class Reply>
    void finish(exchange& machine, Reply& reply, clock::time_point deadline) {
        using action = exchange::action;
        action next = machine.start(clock::now());
        while (next != action::finish) {
            if (stopping_) {
                reply = {};
                reply.error = {errc::shut_down, "the client was shut down meanwhile"};
                return;
            }
            if (next == action::pause) {
                std::this_thread::sleep_for(machine.pause());
                next = machine.on_pause_over(clock::now());
                continue;
            }
            const auto sent = clock::now();
            record_reply answer = next == action::read ? store_->read(machine.name(), deadline)
                                                       : store_->replace(machine.change(), deadline);
            next = machine.on_reply(std::move(answer), sent, clock::now());
        }
        if (machine.error()) {
            reply = {};
            reply.error = machine.error();
        }
    }

    [[nodiscard]] std::uint64_t random() noexcept { return chance_.fetch_add(0x632be59bd9b4e019U); }

    const std::unique_ptr<record_store> store_;
    callback_gate gate_;
    std::unique_ptr<subscription> revocations_;
    client_identity identity_;
    const guarantees promises_;
    known_records known_;
    std::atomic<std::uint64_t> chance_;
    std::atomic<bool> stopping_{};
    ordered_calls calls_{threads};
};

}  // namespace

}  // namespace records

std::unique_ptr<engine> v0::make_records_engine(std::unique_ptr<record_store> store,
                                                const client_identity& identity) {
    return std::make_unique<records::records_engine>(std::move(store), identity);
}

}  // namespace holdfast::engines
