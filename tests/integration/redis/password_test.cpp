#include <fstream>
#include <string>

#include <integration/redis/redis_stage.hpp>
#include <support/server_process.hpp>

/// Passwords that change while locks are held.
namespace holdfast::testing {

namespace {

class redis_passwords : public redis_stage {
protected:
    redis_passwords() : redis_stage{{.acl = "user default off\nuser locker on >first ~* &* +@all"}} {
        write_password("first");
    }
    void write_password(const std::string& password) const {
        // In one step, as tools that rotate secrets do.
        const auto next = file().string() + ".next";
        std::ofstream{next} << password << '\n';
        std::filesystem::rename(next, file());
    }
    [[nodiscard]] std::filesystem::path file() const { return server_.directory() / "password"; }
    [[nodiscard]] std::string address() const {
        return address_of(server_.port(), "?user=locker&password_file=" + file().string());
    }
    void rotate(const std::string& password) const {
        server_.cli({"ACL", "SETUSER", "locker", "resetpass", ">" + password});
        server_.cli({"CLIENT", "KILL", "USER", "locker"});
    }
};

TEST_F(redis_passwords, a_lease_outlives_a_new_one_in_the_file) {
    client store{address(), {.events = events_}};
    mutex stock{store, "stock", {.ttl = 3s}};
    const auto held = stock.acquire();
    write_password("second");
    rotate("second");
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_TRUE(held) << "it is renewed with the new password";
    client another{address()};
    EXPECT_EQ(another.inspect("stock").holders.size(), 1U);
}

TEST_F(redis_passwords, the_file_may_follow_the_server) {
    client store{address(), {.events = events_}};
    mutex stock{store, "stock", {.ttl = 6s}};
    const auto held = stock.acquire();
    rotate("second");
    // A renewal was refused, the lease is not lost for that.
    ASSERT_TRUE(events_->wait_for(event_kind::renewal_failed));
    EXPECT_TRUE(held);
    write_password("second");
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_TRUE(held);
}

TEST_F(redis_passwords, a_file_that_is_gone_changes_nothing) {
    client store{address(), {.events = events_}};
    mutex stock{store, "stock", {.ttl = 3s}};
    const auto held = stock.acquire();
    std::filesystem::remove(file());
    server_.cli({"CLIENT", "KILL", "USER", "locker"});
    EXPECT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_TRUE(held);
}

}  // namespace

}  // namespace holdfast::testing
