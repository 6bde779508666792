#include <future>

#include <integration/blocking_calls.hpp>
#include <integration/redis/redis_stage.hpp>

/// A caller leaves at its deadline, or when it is stopped, although its server has stopped.
namespace holdfast::testing {

namespace {

/// Longer than any test takes: whoever waits for a request to end is noticed.
constexpr std::chrono::milliseconds very_long = 30s;
constexpr std::chrono::milliseconds at_once = 5s;

class redis_leaving : public ::testing::Test {
protected:
    void TearDown() override { server_.resume(); }

    /// Connected: the first request is on its way when the server has stopped.
    [[nodiscard]] std::unique_ptr<client> connected_client() const {
        auto made = std::make_unique<client>(
            address_of(server_.port()),
            client_options{.request_timeout = very_long, .outage_patience = very_long});
        static_cast<void>(made->inspect("x"));
        return made;
    }

    redis_server server_;
};

/// All at once, so that it does not take as long as there are calls.
TEST_F(redis_leaving, a_stop_ends_every_call_while_the_server_hangs_and_leaves_nothing_behind) {
    struct attempt {
        std::string name;
        std::unique_ptr<client> store;
        std::stop_source stop;
        std::future<bool> result;
    };
    std::vector<attempt> all;
    auto calls = stoppable_calls();
    calls.push_back({"fair_mutex::lock", [](client& c, const limits& l) {
                         return fair_mutex{c, "fair"}.lock_unless_stopped(l.stop);
                     }});
    for (const auto& call : calls) {
        all.push_back({call.name, connected_client(), {}, {}});
    }
    server_.pause();
    for (std::size_t index = 0; index < all.size(); ++index) {
        auto& one = all[index];
        const auto before = one.store->requests();
        one.result =
            in_background([&make = calls[index].make, &store = *one.store,
                           stop = one.stop.get_token()] { return make(store, {.stop = stop}); });
        ASSERT_TRUE(eventually([&] { return one.store->requests() > before; })) << one.name;
    }
    for (auto& one : all) {
        one.stop.request_stop();
    }
    for (auto& one : all) {
        SCOPED_TRACE(one.name);
        ASSERT_EQ(one.result.wait_for(at_once), std::future_status::ready);
        EXPECT_FALSE(one.result.get());
    }
    server_.resume();
    // The server reads now what it was asked meanwhile.
    EXPECT_TRUE(eventually([&] { return all.front().store->list().locks.empty(); }));
}

TEST_F(redis_leaving, a_deadline_ends_every_call_while_the_server_hangs) {
    const auto calls = timed_calls();
    std::vector<std::unique_ptr<client>> stores;
    for (std::size_t index = 0; index < calls.size(); ++index) {
        stores.push_back(connected_client());
    }
    server_.pause();
    std::vector<std::future<std::error_code>> results;
    for (std::size_t index = 0; index < calls.size(); ++index) {
        results.push_back(in_background([&make = calls[index].make, &store = *stores[index]] {
            return error_of([&] { return make(store, {.time = 200ms}); });
        }));
    }
    for (std::size_t index = 0; index < calls.size(); ++index) {
        EXPECT_EQ(results[index].wait_for(at_once), std::future_status::ready) << calls[index].name;
    }
    server_.resume();
}

/// Beside another request, which waits for the same server.
TEST_F(redis_leaving, a_request_ends_in_time_while_the_server_hangs_whatever_else_is_under_way) {
    constexpr auto request_timeout = 1s;
    struct attempt {
        std::string name;
        std::function<void(client&)> make;
        /// In request timeouts.
        int at_most{1};
        std::unique_ptr<client> store{};
        std::optional<lease> held{};
        std::future<void> other{};
        std::future<std::chrono::nanoseconds> took{};
    };
    std::vector<attempt> all;
    for (const auto& call : single_requests()) {
        all.push_back({call.name, [make = call.make](client& c) { make(c, {}); }});
    }
    const auto connect = [&] {
        auto made = std::make_unique<client>(address_of(server_.port()),
                                             client_options{.request_timeout = request_timeout});
        static_cast<void>(made->inspect("x"));
        return made;
    };
    for (auto& one : all) {
        one.store = connect();
    }
    for (const bool down : {true, false}) {
        attempt conversion{
            down ? "lease::downgrade" : "lease::try_upgrade", {}, down ? 2 : 1, connect()};
        shared_mutex lock{*conversion.store, conversion.name};
        conversion.held = down ? lock.acquire() : lock.acquire_shared();
        all.push_back(std::move(conversion));
    }
    server_.pause();
    for (auto& one : all) {
        const auto before = one.store->requests();
        one.other = in_background([&store = *one.store] {
            static_cast<void>(error_of([&] { return mutex{store, "other"}.try_lock(); }));
        });
        ASSERT_TRUE(eventually([&] { return one.store->requests() > before; })) << one.name;
        one.took = in_background([&one] {
            const stopwatch watch;
            static_cast<void>(error_of([&] {
                if (one.make) {
                    one.make(*one.store);
                } else if (one.at_most == 2) {
                    *one.held = one.held->downgrade();  // its release would wait, too
                } else {
                    static_cast<void>(one.held->try_upgrade());
                }
            }));
            return std::chrono::nanoseconds{watch.elapsed()};
        });
    }
    for (auto& one : all) {
        EXPECT_LT(one.took.get(), one.at_most * request_timeout + 700ms) << one.name;
        one.other.get();
    }
    server_.resume();
}

}  // namespace

}  // namespace holdfast::testing
