#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <integration/redis/redis_stage.hpp>

/// The server's clock is set while leases are held.
namespace holdfast::testing {

namespace {

/// A clock that servers have that are started while it is worn.
class stepped_clock {
public:
    stepped_clock() {
        step_by(0ns);
        ::setenv("LD_PRELOAD", HOLDFAST_STEPPED_CLOCK, 1);
        ::setenv("STEPPED_CLOCK", file_.c_str(), 1);
    }
    stepped_clock(const stepped_clock&) = delete;
    stepped_clock& operator=(const stepped_clock&) = delete;
    ~stepped_clock() { std::filesystem::remove(file_); }

    static void take_off() { ::unsetenv("LD_PRELOAD"); }
    void step_by(std::chrono::nanoseconds by) const {
        const std::int64_t count = by.count();
        std::fstream out{file_, std::ios::binary | std::ios::out | std::ios::in};
        if (!out.is_open()) {
            out.open(file_, std::ios::binary | std::ios::out);
        }
        out.write(reinterpret_cast<const char*>(&count), sizeof count);
    }

private:
    const std::filesystem::path file_{std::filesystem::temp_directory_path() /
                                      ("holdfast-clock-" + owner_id::random_client().client_text())};
};

class redis_clock : public ::testing::Test {
protected:
    redis_clock() { stepped_clock::take_off(); }

    [[nodiscard]] std::int64_t server_time() const {
        return std::stoll(server_.ask({"TIME"}).items.at(0).text);
    }

    const stepped_clock clock_;
    const redis_server server_;
    const std::shared_ptr<recorder> events_{std::make_shared<recorder>()};
    client first_{address_of(server_.port()), {.events = events_}};
    client second_{address_of(server_.port())};
};

TEST_F(redis_clock, a_step_forward_ends_leases_and_their_holders_are_told) {
    const auto before = server_time();
    const auto held = mutex{first_, "stock", {.ttl = 1500ms}}.acquire();

    clock_.step_by(10min);

    ASSERT_GE(server_time(), before + 600);
    const auto next = mutex{second_, "stock"}.try_acquire_for(20s);
    ASSERT_TRUE(next.has_value());
    EXPECT_GT(next->token(), held.token());
    EXPECT_TRUE(eventually([&] { return !held; }));
    EXPECT_TRUE(*next);
}

TEST_F(redis_clock, a_step_back_costs_nobody_its_lease_or_its_turn) {
    const auto before = server_time();
    auto plain = mutex{first_, "stock", {.ttl = 1500ms}}.acquire();
    auto fair = fair_mutex{first_, "line", {.ttl = 1500ms}}.acquire();
    auto permit = semaphore{first_, "slots", 1, {.ttl = 1500ms}}.acquire();
    auto next_plain = in_background([&] { return mutex{second_, "stock"}.try_acquire_for(20s); });
    auto next_fair = in_background([&] { return fair_mutex{second_, "line"}.try_acquire_for(20s); });
    ASSERT_TRUE(eventually([&] {
        return server_.ask({"LLEN", "redisson_lock_queue:{line}"}).integer == 1;
    }));

    clock_.step_by(-10min);

    ASSERT_LE(server_time(), before - 500);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, events_->count(event_kind::renewed) + 4));
    EXPECT_TRUE(plain && fair && permit);
    const auto tokens = std::pair{plain.token(), fair.token()};
    plain.release();
    fair.release();
    permit.release();
    const auto got_plain = next_plain.get();
    const auto got_fair = next_fair.get();
    ASSERT_TRUE(got_plain && got_fair);
    EXPECT_GT(got_plain->token(), tokens.first);
    EXPECT_GT(got_fair->token(), tokens.second);
    EXPECT_TRUE((semaphore{second_, "slots", 1}.try_acquire()));
}

}  // namespace

}  // namespace holdfast::testing
