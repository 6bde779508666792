#include "bare_redis.hpp"
#include "measure.hpp"

#include <holdfast/holdfast.hpp>
#include <holdfast/quorum.hpp>

#include <array>
#include <memory>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t members = 5;
constexpr std::size_t majority = 3;
constexpr std::size_t operations = 100;

/// The least that a client could do for a lock on five servers: write to all of them, read until three
/// have answered, and look at the others' answers when there is nothing else to do.
class bare_quorum {
public:
    explicit bare_quorum(const std::array<redis_process, members>& servers) {
        for (const auto& each : servers) {
            members_.push_back(std::make_unique<bare_redis>(each.port()));
        }
    }

    void pair() {
        ask(bare_redis::acquire("bare"));
        ask(bare_redis::release("bare"));
    }

private:
    void ask(const bare_redis::words& command) {
        for (std::size_t index = majority; index < members && unread_; ++index) {
            members_[index]->finish();
        }
        for (const auto& each : members_) {
            each->begin(command);
        }
        for (std::size_t index = 0; index < majority; ++index) {
            members_[index]->finish();
        }
        unread_ = true;
    }

    std::vector<std::unique_ptr<bare_redis>> members_;
    bool unread_{};
};

[[nodiscard]] std::function<void()> pairs_of(holdfast::mutex& mutex) {
    return [&mutex] {
        for (std::size_t i = 0; i < operations; ++i) {
            mutex.lock();
            mutex.unlock();
        }
    };
}

[[nodiscard]] figure against(std::string what, const comparison& result, double goal) {
    auto measured = microseconds(result.ours) + " : " + microseconds(result.theirs) + " = " +
                    text(result.ratio(), 2) + " ×";
    if (goal <= 0) {
        return {std::move(what), std::move(measured), {}, true};
    }
    return {std::move(what), std::move(measured), "≤ " + text(goal, 2) + " ×", result.ratio() <= goal};
}

}  // namespace

std::vector<figure> quorum() {
    constexpr std::size_t rounds = 31;
    const std::array<redis_process, members> servers;
    holdfast::quorum stores;
    for (const auto& each : servers) {
        stores.stores.push_back(each.address());
    }
    holdfast::client all{stores};
    holdfast::client one{servers[0].address()};
    holdfast::mutex together{all, "bench"};
    holdfast::mutex alone{one, "alone"};
    bare_quorum bare{servers};
    bare_redis bare_one{servers[0].port()};

    const auto bare_pairs = [&] {
        for (std::size_t i = 0; i < operations; ++i) {
            bare.pair();
        }
    };
    const auto bare_single = [&] {
        for (std::size_t i = 0; i < operations; ++i) {
            bare_one.pair("bare alone");
        }
    };
    return {against("quorum: lock + unlock on 5 servers, against the same on one of them",
                    compare(rounds, operations, pairs_of(together), pairs_of(alone)), 2),
            against("quorum: … against 5 bare connections, written to in turn, read until 3 answered",
                    compare(rounds, operations, pairs_of(together), bare_pairs), 0),
            against("quorum: these bare connections against a bare one: what the machine allows",
                    compare(rounds, operations, bare_pairs, bare_single), 0)};
}

}  // namespace bench
