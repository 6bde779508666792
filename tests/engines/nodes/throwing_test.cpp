#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/ordered_nodes.hpp>
#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/blocking_engine.hpp>
#include <holdfast/testing/eventually.hpp>

/// What becomes of calls when the store of ordered nodes throws.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using namespace holdfast::engines;

/// Requests that shall throw: so many of each, before the next one is performed.
struct mishaps {
    std::atomic<int> opening{};
    std::atomic<int> keeping{};
    std::atomic<int> creating{};
    std::atomic<int> reading{};
    std::atomic<int> removing{};
    std::atomic<int> watching{};
    /// How often a session was kept alive.
    std::atomic<int> kept{};
};

void maybe_throw(std::atomic<int>& left) {
    if (left > 0) {
        --left;
        throw std::runtime_error{"no memory for a request"};
    }
}

/// Nodes and watches in this process. Sessions never end by themselves.
class brittle_store final : public node_store {
public:
    explicit brittle_store(std::shared_ptr<mishaps> plan) : plan_{std::move(plan)} {}

    const guarantees& promises() const noexcept override { return promises_; }
    const std::string& address() const noexcept override { return address_; }
    void attach(node_events) override {}

    void open_session(std::chrono::milliseconds ttl, call, completion<session_reply> done) override {
        maybe_throw(plan_->opening);
        done({.session = ++last_, .ttl = ttl});
    }
    void keep_alive(session_id session, call, completion<session_reply> done) override {
        maybe_throw(plan_->keeping);
        ++plan_->kept;
        done({.session = session, .ttl = 1min});
    }
    void close_session(session_id, call, completion<remove_reply> done) override { done({}); }
    void create(create_request request, call, completion<create_reply> done) override {
        maybe_throw(plan_->creating);
        create_reply reply;
        {
            const std::lock_guard lock{guard_};
            auto& queue = queues_[request.name];
            if (queue.empty() || !request.only_if_empty) {
                const auto place = ++last_;
                reply.created = {std::to_string(place), place, place, request.session, request.claim};
                queue.push_back(*reply.created);
            }
            reply.queue = queue;
        }
        done(std::move(reply));
    }
    void read(std::string name, std::string, call, completion<queue_reply> done) override {
        maybe_throw(plan_->reading);
        queue_reply reply;
        {
            const std::lock_guard lock{guard_};
            reply.queue = queues_[name];
        }
        done(std::move(reply));
    }
    void remove(std::string name, queue_node node, call, completion<remove_reply> done) override {
        maybe_throw(plan_->removing);
        std::map<int, std::function<void()>> told;
        {
            const std::lock_guard lock{guard_};
            std::erase_if(queues_[name], [&](const auto& each) { return each.place == node.place; });
            told = watches_;
        }
        done({});
        for (const auto& [number, changed] : told) {
            changed();
        }
    }
    std::unique_ptr<subscription> watch(std::string, std::vector<queue_node>,
                                        std::function<void()> changed) override {
        maybe_throw(plan_->watching);
        const std::lock_guard lock{guard_};
        const int number = ++last_watch_;
        watches_[number] = std::move(changed);
        return std::make_unique<watching>(*this, number);
    }

private:
    class watching final : public subscription {
    public:
        watching(brittle_store& store, int number) : store_{store}, number_{number} {}
        watching(const watching&) = delete;
        watching& operator=(const watching&) = delete;
        ~watching() override {
            const std::lock_guard lock{store_.guard_};
            store_.watches_.erase(number_);
        }
        [[nodiscard]] bool active() const noexcept override { return true; }

    private:
        brittle_store& store_;
        const int number_;
    };

    const std::shared_ptr<mishaps> plan_;
    const std::string address_{"brittle:"};
    const guarantees promises_{.reach_text = "this process", .tokens = fencing::strict};
    std::atomic<std::uint64_t> last_{0};
    std::mutex guard_;
    std::map<std::string, std::vector<queue_node>> queues_;
    std::map<int, std::function<void()>> watches_;
    int last_watch_{};
};

class nodes_throwing : public ::testing::Test {
protected:
    [[nodiscard]] owner_id owner(std::int64_t sequence) const {
        return {identity.client.high, identity.client.low, sequence};
    }
    [[nodiscard]] acquire_reply acquire(std::int64_t who, std::chrono::milliseconds ttl = 1min) {
        return store.acquire({.name = "stock", .owner = owner(who), .ttl = ttl});
    }
    [[nodiscard]] acquire_reply get_in_line(std::int64_t who) {
        return store.acquire({.name = "stock", .owner = owner(who), .ttl = 1min, .queue = true});
    }
    [[nodiscard]] release_reply release(std::int64_t who) {
        return store.release({.name = "stock", .owner = owner(who)});
    }
    /// The claim that a request may have made is taken back in the background.
    void expect_the_name_free() {
        EXPECT_TRUE(eventually([&] { return bool{granted(acquire(2))}; }));
        EXPECT_TRUE(released(release(2)));
    }

    client_identity identity = make_identity("of nodes");
    std::atomic<int> news{0};
    std::shared_ptr<mishaps> plan = std::make_shared<mishaps>();
    blocking_engine store{make_node_engine(std::make_unique<brittle_store>(plan), identity)};
};

TEST_F(nodes_throwing, a_session_that_could_not_be_asked_for_is_asked_for_by_the_next_call) {
    plan->opening = 1;
    EXPECT_TRUE(refused(acquire(1), errc::store_unavailable));
    expect_the_name_free();
}

TEST_F(nodes_throwing, a_creation_that_threw_is_unknown_and_given_back) {
    plan->creating = 1;
    const auto reply = acquire(1);
    EXPECT_TRUE(refused(reply, errc::outcome_unknown));
    EXPECT_NE(reply.error.detail.find("no memory for a request"), std::string::npos);
    expect_the_name_free();
}

TEST_F(nodes_throwing, a_read_that_threw_is_made_again_and_blocks_nobody) {
    plan->creating = 1;
    EXPECT_TRUE(refused(acquire(1), errc::outcome_unknown));
    plan->reading = 1;  // the next call looks what became of the creation
    EXPECT_TRUE(refused(acquire(1), errc::outcome_unknown));
    EXPECT_TRUE(granted(acquire(1)));
    EXPECT_TRUE(released(release(1)));
}

TEST_F(nodes_throwing, a_removal_that_threw_is_made_again_on_the_timers_thread) {
    ASSERT_TRUE(granted(acquire(1)));
    plan->removing = 3;  // the first by the caller, the others by the timer
    EXPECT_EQ(release(1).error.code, errc::outcome_unknown);
    expect_the_name_free();
}

TEST_F(nodes_throwing, a_session_that_could_not_be_kept_alive_is_kept_alive_a_moment_later) {
    ASSERT_TRUE(granted(acquire(1, 3s)));
    plan->keeping = 2;
    EXPECT_TRUE(eventually([&] { return plan->kept > 0; }));
    EXPECT_TRUE(renewed(store.renew({{.name = "stock", .owner = owner(1), .ttl = 3s}}).at(0)));
    EXPECT_TRUE(released(release(1)));
}

TEST_F(nodes_throwing, a_waiter_whose_watch_threw_is_watched_for_again_and_has_its_turn) {
    store.raw().attach({.turn_of = [this](const std::string&, const owner_id& who,
                                          const std::optional<turn_grant>& turn) {
        if (who == owner(2) && turn) {
            ++news;
        }
    }});
    ASSERT_TRUE(granted(acquire(1)));
    plan->watching = 2;
    EXPECT_TRUE(busy(get_in_line(2)));
    EXPECT_TRUE(eventually([&] { return plan->watching == 0; }));
    EXPECT_TRUE(released(release(1)));
    EXPECT_TRUE(eventually([&] { return news > 0; }));
}

TEST_F(nodes_throwing, a_watch_of_a_name_that_threw_is_not_active_and_is_made_for_the_next_listener) {
    auto& watching = *store.raw().offers().watching;
    plan->watching = 1;
    const auto deaf = watching.watch("stock", lock_kind::mutex, [] {});
    EXPECT_FALSE(deaf->active());
    const auto heard = watching.watch("stock", lock_kind::mutex, [this] { ++news; });
    ASSERT_TRUE(granted(acquire(1)));
    EXPECT_TRUE(released(release(1)));
    EXPECT_TRUE(eventually([&] { return news > 0; }));
    EXPECT_TRUE(heard->active());
}

}  // namespace

}  // namespace holdfast::testing
