#include <array>
#include <core/table_script.hpp>
#include <core/tiny_store.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::claim_mode;
using holdfast::clock;
using holdfast::errc;
namespace engines = holdfast::engines;

template <class... Handlers>
struct overloaded : Handlers... {
    using Handlers::operator()...;
};
template <class... Handlers>
overloaded(Handlers...) -> overloaded<Handlers...>;

table_settings impatient(std::uint64_t seed) {
    table_settings settings;
    settings.contention.request_timeout = 50ms;
    settings.contention.outage_patience = 300ms;
    settings.contention.recheck_cap = 40ms;
    settings.handover.count = 3;
    settings.handover.time = 20ms;
    settings.handover.overtakings = 2;
    settings.handover.fleeting = 5ms;
    settings.observed = true;
    settings.seed = seed;
    return settings;
}

/// Two clients, a store and a bad network, with users who do whatever the dice say. What a user may
/// rely on is checked at every grant.
class restless_world {
public:
    explicit restless_world(std::uint64_t seed) : random_{seed} {
        for (std::size_t i = 0; i < clients_.size(); ++i) {
            clients_[i].table =
                std::make_unique<lock_table>(impatient(seed + i), holdfast::owner_id{i + 1, 0, 0});
        }
    }

    void do_something() {
        auto& who = clients_[dice(clients_.size())];
        const auto what = dice(100);
        if (what < 40 && who.waiting.size() + who.holds.size() < 32) {
            acquire(who);
        } else if (what < 65) {
            release_one(who);
        } else if (what < 72) {
            convert_one(who);
        } else if (what < 78) {
            cancel_one(who);
        } else if (what < 82) {
            who.table->on_hint(some_name(), now_);
        } else if (what < 84) {
            who.table->on_holds_may_have_changed(now_);
        }
        perform(who);
        pass(dice(200) == 0 ? 250ms : std::chrono::microseconds{dice(4000)});
    }

    /// Everybody lets go, and the dust settles.
    void come_to_rest() {
        for (auto& who : clients_) {
            while (!who.waiting.empty()) {
                cancel_one(who);
                perform(who);
            }
        }
        pass(1s);
        for (auto& who : clients_) {
            while (!who.holds.empty()) {
                release_one(who);
                perform(who);
            }
        }
        pass(10s);
    }

    void expect_rest() {
        for (auto& who : clients_) {
            EXPECT_TRUE(who.table->count().quiet());
            EXPECT_EQ(who.table->wake_at(), never);
            EXPECT_GT(who.grants, 500U) << "a test in which nothing happens proves nothing";
            EXPECT_GT(who.losses, 10U);
        }
        EXPECT_TRUE(mail_.empty());
        EXPECT_EQ(store_.held(now_), 0U);
    }

    /// Every timer lives in a record, so this bounds the heaps as well.
    [[nodiscard]] std::size_t records() const {
        std::size_t sum = 0;
        for (const auto& who : clients_) {
            const auto all = who.table->count();
            sum += all.waiters + all.contests + all.tenures + all.holds + all.releases + all.names +
                   all.requests;
        }
        return sum;
    }

private:
    struct user_hold {
        std::string name;
        claim_mode mode{};
        clock::time_point valid_until;
        holdfast::fencing_token token;
        bool lost{};
        std::optional<claim_mode> becoming{};
    };

    struct client {
        std::unique_ptr<lock_table> table;
        std::map<waiter_id, claim> waiting;
        std::map<hold_id, user_hold> holds;
        clock::time_point last_arrival{};
        std::size_t grants{};
        std::size_t losses{};
    };

    enum class fate { fine, never_sent, never_arrived, answer_lost };

    std::uint64_t dice(std::uint64_t sides) { return random_() % sides; }
    std::string some_name() { return "lock" + std::to_string(dice(3)); }

    void acquire(client& who) {
        claim what = exclusive(some_name());
        what.terms = dice(4) == 0 ? fixed_terms(120ms) : lease_terms(240ms);
        what.terms.release_timeout = 30ms;
        const auto kind = dice(10);
        if (kind < 2) {
            what.mode = claim_mode::shared;
        } else if (kind == 2) {
            what = on_terms(what.terms, permits(1 + static_cast<std::uint32_t>(dice(2)), 3));
        }
        if (dice(10) == 0) {
            what.terms.max_hold = 60ms;
        }
        what.wait = dice(4) != 0;
        if (dice(2) == 0) {
            what.deadline = now_ + std::chrono::milliseconds{dice(100)};
        }
        const auto id = who.table->acquire(what, now_);
        who.waiting.emplace(id, what);
    }

    template <class Map>
    auto any_of(Map& map) {
        return std::next(map.begin(), static_cast<std::ptrdiff_t>(dice(map.size())));
    }

    void release_one(client& who) {
        if (who.holds.empty()) {
            return;
        }
        const auto which = any_of(who.holds);
        for (int attempts = 0; which->second.becoming && attempts < 3; ++attempts) {
            pass(100ms);  // each of its requests is answered within the request timeout
        }
        const auto id = which->first;
        who.holds.erase(which);
        who.table->release_hold(id, dice(20) == 0 ? 10ms : 0ms, now_);
    }

    void convert_one(client& who) {
        if (who.holds.empty()) {
            return;
        }
        auto& [id, one] = *any_of(who.holds);
        if (one.mode == claim_mode::permit || one.becoming) {
            return;
        }
        const auto to = one.mode == claim_mode::shared ? claim_mode::exclusive : claim_mode::shared;
        if (to == claim_mode::shared) {
            one.mode = to;  // from now on it relies on no more than that
        }
        one.becoming = to;
        who.table->convert(id, to, now_);
    }

    void cancel_one(client& who) {
        if (!who.waiting.empty()) {
            who.table->cancel(any_of(who.waiting)->first, errc::cancelled, now_);
        }
    }

    /// Lets time go on: letters arrive and timers ring in their order.
    void pass(clock::duration time) {
        const auto end = now_ + time;
        while (true) {
            auto next = mail_.empty() ? never : mail_.begin()->first;
            for (const auto& who : clients_) {
                next = std::min(next, who.table->wake_at());
            }
            if (next > end) {
                break;
            }
            now_ = std::max(now_, next);
            if (!mail_.empty() && mail_.begin()->first <= now_) {
                const auto letter = mail_.extract(mail_.begin());
                letter.mapped()();
            }
            for (auto& who : clients_) {
                who.table->on_time(now_);
                perform(who);
            }
        }
        now_ = end;
    }

    void post(clock::time_point when, std::function<void()> what) {
        mail_.emplace(when, std::move(what));
    }

    /// Requests of one client take effect in the order they were made; every one ends by its deadline.
    template <class Reply>
    void deliver(client& who, clock::time_point deadline, Reply no_effect, Reply no_answer,
                 const std::function<Reply()>& effect,
                 const std::function<void(const Reply&)>& answer) {
        const auto luck = dice(100);
        const auto what = luck < 90   ? fate::fine
                          : luck < 94 ? fate::never_sent
                          : luck < 97 ? fate::never_arrived
                                      : fate::answer_lost;
        if (what == fate::never_sent) {
            post(now_ + std::chrono::microseconds{dice(500)}, [=] { answer(no_effect); });
            return;
        }
        const auto arrival = std::max(who.last_arrival, now_ + std::chrono::microseconds{dice(1000)});
        const auto return_trip = std::chrono::microseconds{dice(1000)};
        const bool in_time = what == fate::fine && arrival + return_trip <= deadline;
        who.last_arrival = arrival;
        post(arrival, [=, this] {
            const auto reply = what == fate::never_arrived ? no_answer : effect();
            if (in_time) {
                post(now_ + return_trip, [=] { answer(reply); });
            }
        });
        if (!in_time) {
            post(std::max(deadline, now_), [=] { answer(no_answer); });
        }
    }

    void send(client& who, const send_acquire& what) {
        deliver<engines::acquire_reply>(
            who, what.deadline, not_acquired(errc::store_unavailable),
            not_acquired(errc::outcome_unknown),
            [=, this] {
                auto reply = store_.acquire(what.request, now_);
                if (what.request.mode == claim_mode::shared) {
                    notify(what.request.name);  // it may have been a downgrade
                }
                return reply;
            },
            [=, this, &who](const auto& reply) {
                who.table->on_acquire_reply(what.id, reply, now_);
                perform(who);
            });
    }

    void send(client& who, const send_renew& what) {
        using replies = std::vector<engines::renew_reply>;
        const auto count = what.requests.size();
        deliver<replies>(
            who, what.deadline, replies(count, not_renewed(errc::store_unavailable)),
            replies(count, not_renewed(errc::outcome_unknown)),
            [=, this] {
                replies all;
                for (const auto& one : what.requests) {
                    all.push_back(store_.renew(one, now_));
                }
                return all;
            },
            [=, this, &who](const replies& all) {
                who.table->on_renew_replies(what.id, all, now_);
                perform(who);
            });
    }

    void send(client& who, const send_release& what) {
        deliver<engines::release_reply>(
            who, what.deadline, not_released(errc::store_unavailable),
            not_released(errc::outcome_unknown),
            [=, this] {
                auto reply = store_.release(what.request, now_);
                reply.others_waiting = static_cast<std::uint32_t>(dice(2));
                notify(what.request.name);
                return reply;
            },
            [=, this, &who](const auto& reply) {
                who.table->on_release_reply(what.id, reply, now_);
                perform(who);
            });
    }

    void notify(const std::string& name) {
        for (auto& who : clients_) {
            if (who.table->wants_watch(name) && dice(10) != 0) {
                post(now_ + std::chrono::microseconds{dice(1000)}, [this, &who, name] {
                    who.table->on_hint(name, now_);
                    perform(who);
                });
            }
        }
    }

    void watch(client& who, const std::string& name) {
        if (who.table->wants_watch(name)) {
            post(now_ + std::chrono::microseconds{dice(1000)}, [this, &who, name] {
                who.table->on_watch_active(name, now_);
                perform(who);
            });
        }
    }

    void perform(client& who) {
        for (const auto& action : who.table->take_actions()) {
            std::visit(
                overloaded{[&](const send_acquire& one) { send(who, one); },
                           [&](const send_renew& one) { send(who, one); },
                           [&](const send_release& one) { send(who, one); },
                           [&](const update_watch& one) { watch(who, one.name); },
                           [&](const stand_by&) {}, [&](const offer_turn& one) { offer(who, one.id); },
                           [&](const finish_acquire& one) { finish(who, one); },
                           [&](const finish_convert& one) { finish(who, one); },
                           [&](const set_validity& one) { extend(who, one); },
                           [&](const tell_loss& one) { lose(who, one); }, [](const auto&) {}},
                action);
        }
    }

    void offer(client& who, waiter_id call) {
        post(now_ + std::chrono::microseconds{dice(1000)}, [this, &who, call] {
            who.table->take_turn(call, now_);
            perform(who);
        });
    }

    void finish(client& who, const finish_acquire& one) {
        auto asked = who.waiting.extract(one.id);
        ASSERT_FALSE(asked.empty()) << "a call was finished twice";
        if (one.error) {
            return;
        }
        ++who.grants;
        const auto& what = asked.mapped();
        EXPECT_GT(one.valid_until, now_);
        check_exclusion(what.name, what.mode);
        check_token(what.name, what.mode, one.token);
        who.holds.emplace(one.id, user_hold{what.name, what.mode, one.valid_until, one.token});
    }

    void finish(client& who, const finish_convert& one) {
        auto& held = who.holds.at(one.id);
        const auto mode = std::exchange(held.becoming, std::nullopt);
        if (one.error || held.valid_until <= now_) {
            return;
        }
        EXPECT_GE(one.token.value, held.token.value) << "a resource would refuse it from now on";
        if (mode == claim_mode::exclusive) {
            held.lost = true;  // as a share, while the others are looked at
            check_exclusion(held.name, claim_mode::exclusive);
            held.lost = false;
            held.mode = claim_mode::exclusive;
        }
        // A downgrade that did not reach the store leaves nothing to upgrade, and no new token.
        if (one.token != held.token) {
            check_token(held.name, claim_mode::exclusive, one.token);
        }
        held.token = one.token;
    }

    void check_exclusion(const std::string& name, claim_mode mode) {
        for (const auto& who : clients_) {
            for (const auto& [id, other] : who.holds) {
                if (other.name == name && !other.lost && other.valid_until > now_) {
                    EXPECT_NE(mode, claim_mode::exclusive) << "a writer among others";
                    EXPECT_NE(other.mode, claim_mode::exclusive) << "somebody beside a writer";
                }
            }
        }
    }

    void check_token(const std::string& name, claim_mode mode, holdfast::fencing_token token) {
        if (mode == claim_mode::exclusive) {
            EXPECT_GT(token.value, std::exchange(last_token_[name], token.value));
        }
    }

    void extend(client& who, const set_validity& one) {
        if (const auto found = who.holds.find(one.id); found != who.holds.end()) {
            EXPECT_GT(found->second.valid_until, now_) << "what was over is valid again";
            EXPECT_FALSE(found->second.lost);
            EXPECT_GE(one.valid_until, found->second.valid_until) << "a deadline moved back";
            found->second.valid_until = one.valid_until;
        }
    }

    void lose(client& who, const tell_loss& one) {
        ++who.losses;
        if (const auto found = who.holds.find(one.id); found != who.holds.end()) {
            EXPECT_FALSE(found->second.lost) << "a loss was told twice";
            found->second.lost = true;
        }
    }

    std::array<client, 2> clients_;
    std::mt19937_64 random_;
    tiny_store store_;
    std::map<std::string, std::uint64_t> last_token_;
    std::multimap<clock::time_point, std::function<void()>> mail_;
    clock::time_point now_{start};
};

class lock_table_long_run : public testing::TestWithParam<std::uint64_t> {};

TEST_P(lock_table_long_run, keeps_its_promises_and_leaves_nothing_behind) {
    restless_world world{GetParam()};

    for (int i = 0; i < 25'000 && !HasFailure(); ++i) {
        world.do_something();
        ASSERT_LT(world.records(), 600U) << "after " << i << " operations";
    }
    world.come_to_rest();

    world.expect_rest();
}

// 100 000 operations in all.
INSTANTIATE_TEST_SUITE_P(seeds, lock_table_long_run, testing::Values(1, 4711, 20240607, 65537));

}  // namespace
