#include <holdfast/testing/sim/quorum_simulation.hpp>

#include <holdfast/quorum.hpp>
#include <quorum_contender.hpp>
#include <quorum_member.hpp>
#include <quorum_stage.hpp>

#include <memory>
#include <vector>

namespace holdfast::testing::sim {

namespace {

/// Half of what the quorum allows for: two clocks differ by twice as much.
constexpr double usual_quorum_rate = 0.004;
constexpr double wild_rate = 0.05;
/// What the quorum allows for beside the rates, for all jumps of a member together.
constexpr clock::duration allowed_jumps = 2ms;
constexpr std::uint64_t most_quorum_events = 400'000;

class quorum_world {
public:
    explicit quorum_world(const quorum_plan& plan)
        : plan_{plan}, stage_{plan.seed}, referee_{stage_, plan} {
        draw_numbers();
        make_members();
        make_contenders();
        if (!calm_) {
            plan_faults();
        }
    }

    quorum_result run() {
        for (auto& each : contenders_) {
            each->start();
        }
        while (referee_.result().violation.empty() && stage_.events() < most_quorum_events &&
               stage_.step()) {
        }
        check_end();
        auto result = referee_.result();
        result.events = stage_.events();
        return result;
    }

private:
    [[nodiscard]] double rate() {
        const auto most =
            plan_.drift == quorum_plan::clocks::within_bound ? usual_quorum_rate : wild_rate;
        return (stage_.fraction() * 2 - 1) * most;
    }

    void draw_numbers() {
        calm_ = plan_.members == quorum_plan::restarts::keep && stage_.one_in(4);
        members_count_ = stage_.one_in(3) ? 5 : 3;
        terms_.ttl = std::chrono::duration_cast<std::chrono::milliseconds>(stage_.between(200ms, 2s));
        terms_.rounds = 2 + static_cast<int>(stage_.pick(2));
        terms_.calm = calm_;
        if (plan_.members == quorum_plan::restarts::forget_wisely) {
            terms_.restart_grace = terms_.ttl + terms_.ttl / 10;
        }
        if (!calm_) {
            quality_.lost_one_in = stage_.one_in(2) ? 0 : 10 + stage_.pick(60);
            quality_.late_one_in = stage_.one_in(2) ? 0 : 5 + stage_.pick(30);
        }
    }

    void make_members() {
        for (std::size_t number = 0; number < members_count_; ++number) {
            members_.push_back(
                std::make_unique<quorum_member>(stage_, number, rate(), stage_.between(-500ms, 500ms)));
            jumps_left_.push_back(allowed_jumps);
        }
    }

    void make_contenders() {
        const auto clients = stage_.one_in(8) ? 4 : 2 + stage_.pick(2);
        for (std::uint32_t number = 0; number < clients; ++number) {
            contenders_.push_back(std::make_unique<quorum_contender>(stage_, referee_, number, rate(),
                                                                     members_, quality_, terms_));
        }
    }

    void plan_faults() {
        const auto faults = 1 + stage_.pick(6);
        for (std::uint32_t number = 0; number < faults; ++number) {
            stage_.after(stage_.between(1ms, 4 * terms_.ttl), [this] { strike(); });
        }
    }

    void strike() {
        auto& member = *members_[stage_.pick(static_cast<std::uint32_t>(members_.size()))];
        switch (stage_.pick(4)) {
            case 0:
                member.stand_still(stage_.between(1ms, 2 * terms_.ttl));
                break;
            case 1:
                member.restart(stage_.between(1ms, terms_.ttl),
                               plan_.members == quorum_plan::restarts::keep
                                   ? quorum_member::memory::kept
                                   : quorum_member::memory::lost);
                break;
            case 2:
                jump();
                break;
            default: {
                auto& client =
                    *contenders_[stage_.pick(static_cast<std::uint32_t>(contenders_.size()))];
                client.pause(stage_.between(1ms, 2 * terms_.ttl));
                break;
            }
        }
    }

    /// Some members' clocks at once, in one direction: they all asked the same server for the time.
    void jump() {
        const bool forward = stage_.one_in(2);
        for (std::size_t number = 0; number < members_.size(); ++number) {
            const auto most = plan_.jumps == quorum_plan::steps::within_bound
                                  ? jumps_left_[number]
                                  : clock::duration{terms_.ttl};
            const auto by = stage_.between(0ms, most);
            if (stage_.one_in(2)) {
                jumps_left_[number] -= by;
                members_[number]->step_clock(forward ? by : -by);
            }
        }
    }

    void check_end() {
        if (stage_.events() >= most_quorum_events) {
            referee_.complain("the clients never come to an end");
        }
        if (!calm_) {
            return;
        }
        for (const auto& each : members_) {
            if (!each->store().inspect(lock_under_test(), each->local()).holders.empty()) {
                referee_.complain("something was left behind on " + each->id());
            }
        }
    }

    const quorum_plan plan_;
    quorum_stage stage_;
    quorum_referee referee_;
    bool calm_{};
    std::size_t members_count_{3};
    contention_terms terms_;
    network_quality quality_;
    std::vector<std::unique_ptr<quorum_member>> members_;
    std::vector<clock::duration> jumps_left_;
    std::vector<std::unique_ptr<quorum_contender>> contenders_;
};

}  // namespace

quorum_result run(const quorum_plan& what) {
    return quorum_world{what}.run();
}

}  // namespace holdfast::testing::sim
