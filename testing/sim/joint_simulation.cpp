#include <holdfast/testing/sim/joint_simulation.hpp>

#include <joint_user.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast::testing::sim {

namespace {

/// Of a clock, from the true time: far less than the margin of a lease.
constexpr double usual_joint_rate = 0.004;
constexpr std::uint64_t most_joint_events = 200'000;
/// Without a deadlock all is over long before.
constexpr auto longest_run = 300s;

class joint_world {
public:
    explicit joint_world(const joint_plan& plan)
        : plan_{plan}, stage_{plan.seed}, referee_{stage_, stores_} {
        draw_numbers();
        make_stores();
        make_clients();
        if (!calm_) {
            plan_faults();
        }
    }

    joint_result run() {
        const auto began = stage_.now();
        for (auto& each : users_) {
            each->start();
        }
        auto& result = referee_.result();
        std::uint64_t steps = 0;
        while (result.violation.empty() && !over() && stage_.step()) {
            watch_first_call(++steps);
            if (steps == most_joint_events || stage_.now() > began + longest_run) {
                referee_.complain("not everybody finishes: " + what_is_left());
            }
        }
        if (result.violation.empty()) {
            check_end();
        }
        result.events = steps;
        return result;
    }

private:
    struct client {
        client(quorum_stage& stage, double rate) : process{stage, rate} {}
        joint_process process;
        std::vector<std::unique_ptr<joint_session>> sessions;
    };

    [[nodiscard]] double rate() { return (stage_.fraction() * 2 - 1) * usual_joint_rate; }

    void draw_numbers() {
        calm_ = stage_.one_in(3);
        terms_.ttl = std::chrono::duration_cast<std::chrono::milliseconds>(stage_.between(200ms, 1s));
        terms_.names = 2 + stage_.pick(3);
        terms_.rounds = 1 + stage_.pick(2);
        settings_.contention.request_timeout = stage_.between(80ms, 500ms);
        settings_.contention.outage_patience = stage_.between(300ms, 2s);
        settings_.contention.recheck_cap = stage_.between(150ms, 1s);
        settings_.handover.count = stage_.one_in(2) ? 128 : 1 + stage_.pick(3);
        settings_.handover.overtakings = stage_.one_in(2) ? 0 : 1 + stage_.pick(4);
        if (!calm_) {
            quality_.lost_one_in = stage_.one_in(2) ? 0 : 10 + stage_.pick(60);
            quality_.late_one_in = stage_.one_in(2) ? 0 : 5 + stage_.pick(30);
        }
    }

    void make_stores() {
        const auto count = 1 + stage_.pick(2);
        for (std::uint32_t number = 0; number < count; ++number) {
            stores_.push_back(
                std::make_unique<quorum_member>(stage_, number, rate(), clock::duration{}));
            terms_.together.push_back(!stage_.one_in(4));
        }
    }

    void make_clients() {
        const auto count = 2 + stage_.pick(2);
        for (std::uint32_t number = 0; number < count; ++number) {
            auto& one = *clients_.emplace_back(std::make_unique<client>(stage_, rate()));
            std::vector<joint_session*> sessions;
            for (auto& store : stores_) {
                settings_.seed = stage_.pick(1'000'000) + 1;
                one.sessions.push_back(std::make_unique<joint_session>(
                    one.process, *store, quality_, settings_, owner_id{0, number + 1U, 0}));
                sessions.push_back(one.sessions.back().get());
            }
            for (auto users = 1 + stage_.pick(3); users > 0; --users) {
                users_.push_back(
                    std::make_unique<joint_user>(one.process, sessions, referee_, terms_,
                                                 static_cast<std::uint32_t>(users_.size())));
            }
        }
    }

    void plan_faults() {
        for (auto faults = 1 + stage_.pick(5); faults > 0; --faults) {
            stage_.after(stage_.between(1ms, 3 * terms_.ttl), [this] { strike(); });
        }
    }

    void strike() {
        auto& store = *stores_[stage_.pick(static_cast<std::uint32_t>(stores_.size()))];
        switch (stage_.pick(3)) {
            case 0:
                store.stand_still(stage_.between(1ms, 2 * terms_.ttl));
                return;
            case 1:
                store.restart(stage_.between(1ms, terms_.ttl), quorum_member::memory::kept);
                return;
            default:
                clients_[stage_.pick(static_cast<std::uint32_t>(clients_.size()))]->process.pause(
                    stage_.between(1ms, 2 * terms_.ttl));
                return;
        }
    }

    void watch_first_call(std::uint64_t steps) {
        auto& result = referee_.result();
        auto& first = *users_.front();
        const bool calls = first.calls_for_the_first_time();
        if (calls && result.first_call_began == 0) {
            result.first_call_began = steps;
        } else if (!calls && result.first_call_began != 0 && result.first_call_ended == 0) {
            result.first_call_ended = steps;
        }
        if (calls && plan_.cancel_at == steps) {
            clients_.front()->process.awake_at() > stage_.now()
                ? clients_.front()->process.later({}, [&first] { first.cancel(); })
                : first.cancel();
        }
    }

    /// All users are done, and no client has anything left to do.
    [[nodiscard]] bool over() const {
        return std::all_of(users_.begin(), users_.end(),
                           [](const auto& one) { return one->finished(); }) &&
               std::all_of(clients_.begin(), clients_.end(), [](const auto& one) {
                   return std::all_of(one->sessions.begin(), one->sessions.end(),
                                      [](const auto& each) { return each->left().quiet(); });
               });
    }

    [[nodiscard]] std::string what_is_left() const {
        std::string result;
        for (const auto& one : clients_) {
            for (const auto& each : one->sessions) {
                const auto left = each->left();
                result += "waiters " + std::to_string(left.waiters) + ", contests " +
                          std::to_string(left.contests) + ", holds " + std::to_string(left.holds) +
                          ", releases " + std::to_string(left.releases) + "; ";
            }
        }
        return result;
    }

    void check_end() {
        if (!over()) {
            referee_.complain("nothing happens any more, but not all is over: " + what_is_left());
        }
        // A request that outlived its client's patience may still reach a store that was away.
        if (!calm_) {
            return;
        }
        for (const auto& each : stores_) {
            if (each->store().hold_count(each->local()) > 0) {
                referee_.complain("something was left behind on " + each->id());
            }
        }
    }

    const joint_plan plan_;
    quorum_stage stage_;
    std::vector<std::unique_ptr<quorum_member>> stores_;
    joint_referee referee_;
    bool calm_{};
    joint_terms terms_;
    core::table_settings settings_;
    network_quality quality_;
    std::vector<std::unique_ptr<client>> clients_;
    std::vector<std::unique_ptr<joint_user>> users_;
};

}  // namespace

joint_result run(const joint_plan& what) {
    return joint_world{what}.run();
}

}  // namespace holdfast::testing::sim
