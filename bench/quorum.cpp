#include "bare_redis.hpp"
#include "measure.hpp"

#include <holdfast/holdfast.hpp>
#include <holdfast/quorum.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t members = 5;
constexpr std::size_t majority = 3;
constexpr std::size_t operations = 100;
constexpr std::chrono::milliseconds pause{2};

/// The least that a client could do for a lock on five servers: write to all of them, read until three
/// have answered, and look at the others' answers when there is nothing else to do.
class bare_quorum {
public:
    explicit bare_quorum(const std::array<redis_process, members>& servers) {
        for (const auto& each : servers) {
            members_.push_back(std::make_unique<bare_redis>(each.port()));
        }
    }

    void lock() { ask(bare_redis::acquire("bare")); }
    void unlock() { ask(bare_redis::release("bare")); }

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

/// One way to take a lock and to let go of it.
struct way {
    std::function<void()> lock;
    std::function<void()> unlock;
};

/// The four that are compared, and how long each takes: measured in turns, medians.
struct ways {
    way quorum, single, bare_quorum, bare_single;
};
struct times {
    nanoseconds quorum, single, bare_quorum, bare_single;
};

template <class Measure>
[[nodiscard]] times in_turns(std::size_t rounds, const ways& all, const Measure& measure) {
    const std::array<const way*, 4> each{&all.quorum, &all.single, &all.bare_quorum, &all.bare_single};
    std::array<std::vector<nanoseconds>, each.size()> taken;
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t index = 0; index < each.size(); ++index) {
            taken[index].push_back(measure(*each[index]));
        }
    }
    return {median(taken[0]), median(taken[1]), median(taken[2]), median(taken[3])};
}

/// `lock` by itself, some time after the last `unlock`, as in programs that do something in between.
[[nodiscard]] nanoseconds after_a_pause(const way& contender) {
    // not a guess: the pause is part of what is measured
    std::this_thread::sleep_for(pause);
    const auto result = time_of(contender.lock);
    contender.unlock();
    return result;
}

/// A pair among many, one after the other.
[[nodiscard]] nanoseconds back_to_back(const way& contender) {
    const auto pairs = [&contender] {
        for (std::size_t i = 0; i < operations; ++i) {
            contender.lock();
            contender.unlock();
        }
    };
    return time_of(pairs) / static_cast<double>(operations);
}

[[nodiscard]] figure against(std::string subject, const comparison& result, double goal = 0) {
    auto measured = microseconds(result.ours) + " : " + microseconds(result.theirs) + " = " +
                    text(result.ratio(), 2) + " ×";
    if (goal <= 0) {
        return {std::move(subject), std::move(measured), {}, true};
    }
    return {std::move(subject), std::move(measured), "≤ " + text(goal, 2) + " ×",
            result.ratio() <= goal};
}

void report(std::vector<figure>& figures, const std::string& subject, const times& seen, double goal) {
    figures.push_back(against("quorum: " + subject + ", 5 servers against one of them",
                              {seen.quorum, seen.single}, goal));
    figures.push_back(
        against("  … 5 bare connections, written to in turn, read until 3 answered, "
                "against the lock on one server",
                {seen.bare_quorum, seen.single}));
    figures.push_back(
        against("  … the quorum against these bare connections", {seen.quorum, seen.bare_quorum}));
    figures.push_back(against("  … they against a bare one: what the machine allows",
                              {seen.bare_quorum, seen.bare_single}));
}

}  // namespace

std::vector<figure> quorum() {
    constexpr std::size_t rounds = 31;
    constexpr std::size_t paced_rounds = 1000;
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

    const auto ask_one = [&](const bare_redis::words& command) {
        bare_one.begin(command);
        bare_one.finish();
    };
    const ways compared{
        {[&] { together.lock(); }, [&] { together.unlock(); }},
        {[&] { alone.lock(); }, [&] { alone.unlock(); }},
        {[&] { bare.lock(); }, [&] { bare.unlock(); }},
        {[&] { ask_one(bare_redis::acquire("bare alone")); },
         [&] { ask_one(bare_redis::release("bare alone")); }},
    };
    std::vector<figure> figures;
    report(figures, "lock + unlock, back to back", in_turns(rounds, compared, back_to_back), 2);
    // No goal: after a pause five processes have to be woken, which bare connections show as well.
    report(figures, "lock by itself, 2 ms after the last unlock",
           in_turns(paced_rounds, compared, after_a_pause), 0);
    return figures;
}

}  // namespace bench
