#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <redis/watches.hpp>

/// When those who listen to a channel are told that notifications flow.
namespace holdfast::engines::redis {

namespace {

/// A server that subscribes when the test says so.
class slow_router final : public router {
public:
    failure connect(clock::time_point) override { return {}; }
    void send(std::uint16_t, lane, connection::encode, call, connection::done) override {}
    std::vector<std::uint16_t> a_slot_of_each_master() override { return {}; }
    void subscribe(const channel_place&) override {
        if (std::exchange(has_no_thread, false)) {
            throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
        }
        ++subscriptions;
    }
    void unsubscribe(const channel_place& where) override { active.erase(where.channel); }
    bool subscribed(const channel_place& where) const override {
        return active.contains(where.channel);
    }
    void attend(std::uint16_t, idle_thread&, const std::function<bool()>&) override {}
    const std::string& publish_command() const noexcept override { return command; }
    bool clustered() const noexcept override { return false; }
    std::uint32_t replicas_of(std::uint16_t) const override { return 0; }
    store_instance instance_of(std::uint16_t) const override { return {}; }
    std::uint64_t commands_sent() const override { return 0; }

    std::set<std::string> active;
    /// For the thread that listens, once.
    bool has_no_thread{};
    int subscriptions{};
    const std::string command{"publish"};
};

class redis_watches : public ::testing::Test {
protected:
    redis_watches() { all->connect(&server); }

    [[nodiscard]] std::unique_ptr<watches::listening> listen(watches::beginning first, int& count) {
        return all->listen({channel, 0}, first, [&count](std::string_view) { ++count; });
    }
    void begins_to_flow() {
        server.active.insert(channel);
        all->flows(channel);
    }

    const std::string channel{"stock"};
    slow_router server;
    std::shared_ptr<watches> all = std::make_shared<watches>();
    int told{};
};

TEST_F(redis_watches, who_looked_in_vain_is_told_when_notifications_flow) {
    const auto listening = listen(watches::beginning::told_if_awaited, told);
    EXPECT_FALSE(listening->active());
    begins_to_flow();
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(listening->active());
}

TEST_F(redis_watches, who_looks_only_afterwards_sees_it_and_is_not_told_as_well) {
    const auto listening = listen(watches::beginning::told_if_awaited, told);
    begins_to_flow();
    EXPECT_EQ(told, 0);
    EXPECT_TRUE(listening->active());
}

TEST_F(redis_watches, who_never_looks_may_ask_to_be_told) {
    const auto listening = listen(watches::beginning::told, told);
    begins_to_flow();
    EXPECT_EQ(told, 1);
}

TEST_F(redis_watches, everybody_is_told_when_notifications_flow_again) {
    const auto listening = listen(watches::beginning::told_if_awaited, told);
    begins_to_flow();
    EXPECT_TRUE(listening->active());
    int told_later{};
    const auto later = listen(watches::beginning::told_if_awaited, told_later);
    EXPECT_TRUE(later->active());
    begins_to_flow();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(told_later, 1);
}

TEST_F(redis_watches,
       a_subscription_that_failed_leaves_nothing_behind_and_is_made_by_the_next_listener) {
    server.has_no_thread = true;
    EXPECT_THROW(static_cast<void>(listen(watches::beginning::told, told)), std::system_error);
    EXPECT_EQ(all->listeners(), 0U);
    EXPECT_EQ(all->own_subscriptions(channel), 0U);
    const auto listening = listen(watches::beginning::told, told);
    EXPECT_EQ(server.subscriptions, 1);
    begins_to_flow();
    EXPECT_EQ(told, 1);
}

}  // namespace

}  // namespace holdfast::engines::redis
