#include "stage.hpp"

/// What becomes of a request that the server carries out late, after the client has given it up and
/// sent it again. Redisson's request to lock counts every time it arrives (its issue 7367); ours counts
/// once.
namespace holdfast::interop {

namespace {

class resend_interop : public interop_stage {
protected:
    /// With a single server, current Redissons do not send a lock again.
    [[nodiscard]] environment make_environment() const override {
        auto made = cluster_of_three();
        made.java.insert(made.java.end(), {"timeout=300", "retries=3"});
        return made;
    }

    /// The server carries out nothing that writes until then.
    void hold_requests_back(std::chrono::milliseconds span) {
        redis_->number({"EXISTS", name_});  // moves the probe to the node that matters
        redis_->text({"CLIENT", "PAUSE", std::to_string(span.count()), "WRITE"});
    }
};

TEST_P(resend_interop, a_java_lock_that_was_sent_again_counts_more_than_once) {
    java("holder", "plain lock");  // so that scripts are loaded and connections made
    java("holder", "plain unlock");

    hold_requests_back(std::chrono::milliseconds{1000});
    EXPECT_EQ(java("holder", "plain try", 0, long_lease), "true");

    EXPECT_GT(std::stoi(java("holder", "plain holds")), 1);
}

TEST_P(resend_interop, a_cpp_lock_that_was_sent_again_counts_once) {
    client hasty{store_, {.request_timeout = std::chrono::milliseconds{150}}};
    mutex lock{hasty, name_};
    lock.lock();
    lock.unlock();
    const auto asked_before = hasty.requests();

    hold_requests_back(std::chrono::milliseconds{600});
    auto held = lock.try_acquire_for(patience);

    ASSERT_TRUE(held);
    EXPECT_GT(hasty.requests(), asked_before + 1) << "it was not sent again: nothing is tested";
    EXPECT_EQ(redis_->text({"HGETALL", name_}), held->owner().text() + " 1");
    EXPECT_EQ(held->release(), release_outcome::released);
    EXPECT_EQ(java("next", "plain try", 0, long_lease), "true");
}

TEST_P(resend_interop, cpp_tolerates_a_java_hold_that_counts_more_than_once) {
    java("holder", "plain lock", long_lease);
    redis_->text({"HINCRBY", name_, java_holder("holder"), "2"});
    mutex lock{*client_, name_};

    EXPECT_FALSE(lock.try_acquire());
    EXPECT_TRUE(revoke());

    EXPECT_TRUE(lock.try_acquire());
}

HOLDFAST_WITH_EVERY_REDISSON(resend_interop);

}  // namespace

}  // namespace holdfast::interop
