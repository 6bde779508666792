#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/contender.hpp>
#include <integration/redis/redis_stage.hpp>
#include <redis/layout/keys.hpp>

/// Locks whose slot stays on its way from one server of a cluster to another: some of their keys have
/// moved, the others have not. Holders keep what they have, and nobody else gets it.
namespace holdfast::testing {

using engines::redis::fair_queue;
using engines::redis::slot_of;
using testing_support::redis_cluster;

class redis_moving_slot : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        cluster_ = std::make_unique<redis_cluster>(testing_support::redis_cluster_options{
            .masters = 2, .replicas_each = 0, .node_timeout = 5s});
    }
    static void TearDownTestSuite() { cluster_.reset(); }

    [[nodiscard]] static std::string address() {
        return "redis+cluster://127.0.0.1:" + std::to_string(cluster_->node(0).port());
    }
    [[nodiscard]] static contender join(const std::string& label, lock_kind kind) {
        return {address(), label, kind};
    }

    /// A name in a slot of the first server's, which has not moved yet. All slots move the same way:
    /// servers that take slots from each other in quick succession claim them with epochs that the
    /// other has not heard of, and dispute them.
    [[nodiscard]] static std::string fresh_name() {
        std::string name;
        do {
            name = "moving-" + std::to_string(++names_);
        } while (&cluster_->node_of_slot(slot_of(name)) != &cluster_->node(0));
        return name;
    }

    void begin_move(const std::string& name) {
        slot_ = slot_of(name);
        from_ = &cluster_->node(0);
        to_ = &cluster_->node(1);
        cluster_->begin_migration(slot_, *to_);
    }
    [[nodiscard]] std::vector<std::string> keys_left() const {
        std::vector<std::string> keys;
        for (const auto& key :
             from_->ask({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot_), "100"}).items) {
            keys.push_back(key.text);
        }
        std::sort(keys.begin(), keys.end());
        return keys;
    }
    void move(const std::string& key) const {
        ASSERT_EQ(from_->cli({"MIGRATE", "127.0.0.1", std::to_string(to_->port()), key, "0", "5000"}),
                  "OK");
    }
    void finish_move() {
        cluster_->migrate_keys(slot_, *to_);
        cluster_->finish_migration(slot_, *to_);
    }
    /// Wherever it is.
    [[nodiscard]] std::chrono::milliseconds life_of(const std::string& key) const {
        auto there = to_->connect();
        there.command({"ASKING"});
        const auto moved = there.command({"PTTL", key});
        const auto left = from_->ask({"PTTL", key});
        return std::chrono::milliseconds{
            std::max(moved.integer, left.is_error() ? std::int64_t{-2} : left.integer)};
    }

    /// Runs `during` once for every way in which some of the keys that `prepare` makes have moved, and
    /// `after` when the others have, too.
    void with_keys_apart(const std::function<void(const std::string&)>& prepare,
                         const std::function<void(const std::string&)>& during,
                         const std::function<void(const std::string&)>& after) {
        std::size_t ways = 1;
        for (std::size_t moved = 0; moved < ways; ++moved) {
            const auto name = fresh_name();
            prepare(name);
            begin_move(name);
            const auto keys = keys_left();
            ways = std::size_t{1} << keys.size();
            std::string which = "moved:";
            for (std::size_t index = 0; index < keys.size(); ++index) {
                if ((moved >> index & 1U) != 0) {
                    which += " " + keys[index];
                    move(keys[index]);
                }
            }
            SCOPED_TRACE(which);
            during(name);
            finish_move();
            after(name);
            if (HasFailure()) {
                return;
            }
        }
        EXPECT_GT(ways, 4U) << "there were hardly any keys";
    }

    /// Refused at once, whatever the reason: somebody has it, or nobody can tell.
    static void expect_refused(const engines::acquire_reply& reply) {
        const bool told_to_wait = reply.error.code == errc::store_unavailable &&
                                  reply.error.detail.find("TRYAGAIN") != std::string::npos;
        EXPECT_TRUE(told_to_wait || busy(reply)) << reply.error.detail;
    }

    static constexpr std::chrono::milliseconds longer = long_ttl * 2;
    static constexpr std::chrono::milliseconds no_such_key{-2};

    static inline std::unique_ptr<redis_cluster> cluster_;
    static inline int names_{};
    std::uint16_t slot_{};
    testing_support::redis_server* from_{};
    testing_support::redis_server* to_{};
};

}  // namespace holdfast::testing
