#include <quorum/inspection.hpp>

#include <quorum/merge.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

/// An inspection under way.
///
/// Thread safety: `answered`, from any thread.
class inspection_round {
public:
    inspection_round(const member_set& members, std::string name, std::function<void(inspection&)> done)
        : members_{members}, done_{std::move(done)} {
        seen_.name = std::move(name);
        seen_.answers.resize(members.size());
        seen_.failures.resize(members.size());
    }

    [[nodiscard]] const std::string& name() const noexcept { return seen_.name; }

    void answered(std::size_t member, inspect_reply reply) {
        std::function<void(inspection&)> done;
        {
            const std::lock_guard lock{guard_};
            if (!done_) {
                return;
            }
            seen_.failures[member] = reply.error;
            if (!reply.error) {
                seen_.answers[member] = std::move(reply.info);
            }
            if (waits_for_more()) {
                return;
            }
            done = std::exchange(done_, {});
        }
        done(seen_);
    }

private:
    [[nodiscard]] bool waits_for_more() const {
        for (std::size_t member = 0; member < seen_.answers.size(); ++member) {
            const bool silent = !seen_.answers[member] && !seen_.failures[member];
            if (silent && (!members_.suspect(member) || !seen_.enough())) {
                return true;
            }
        }
        return false;
    }

    const member_set& members_;
    std::mutex guard_;
    inspection seen_;
    std::function<void(inspection&)> done_;
};

}  // namespace

bool inspection::enough() const {
    const auto answered = std::count_if(answers.begin(), answers.end(),
                                        [](const auto& each) { return each.has_value(); });
    return static_cast<std::size_t>(answered) >= core::majority_of(answers.size());
}

void inspect_members(member_set& members, std::string name, const call& limits,
                     std::function<void(inspection&)> done) {
    const auto round = std::make_shared<inspection_round>(members, std::move(name), std::move(done));
    const auto order = members.asking_order();
    const auto deadline = members.query_deadline(limits);
    for (const auto member : order) {
        const auto share = member_set::share_of(limits, deadline, member == order.back());
        members.ask(
            member, &operators_view::inspect, round->name(), share,
            [round, member](inspect_reply reply) { round->answered(member, std::move(reply)); });
    }
}

void inspect_all(member_set& members, std::string name, const call& limits,
                 completion<inspect_reply> done) {
    inspect_members(members, std::move(name), limits,
                    [&members, done = std::move(done)](const inspection& seen) {
                        inspect_reply answer;
                        if (seen.enough()) {
                            answer.info = merge(seen.name, seen.answers);
                        } else {
                            answer.error = core::combined_failure(members.names(), seen.failures);
                        }
                        done(std::move(answer));
                    });
}

}  // namespace holdfast::engines::quorums
