#include <quorum/examination.hpp>

#include <iterator>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

/// An examination under way.
///
/// Thread safety: all functions, from any thread.
class examination_round {
public:
    examination_round(const member_set& members, completion<examine_reply> done)
        : members_{members},
          findings_(members.size()),
          awaited_{members.size()},
          done_{std::move(done)} {}

    void answered(std::size_t member, examine_reply reply) {
        if (reply.error) {
            reply.findings.push_back({finding::severity::warning, {}, reply.error.detail});
        }
        for (auto& each : reply.findings) {
            // A member that forgets, and votes at once when it is back, may grant what is held.
            if (each.may_forget && members_.options().restart_grace.count() == 0) {
                each.level = finding::severity::warning;
                each.text += ", or give the quorum a restart_grace of the longest ttl";
            } else if (each.may_forget) {
                each.level = finding::severity::advice;
                each.text += ". The quorum's restart_grace serves as well if no ttl is longer";
            }
            each.server = members_.names()[member] + (each.server.empty() ? "" : ", ") + each.server;
        }
        {
            const std::lock_guard lock{guard_};
            findings_[member] = std::move(reply.findings);
            if (--awaited_ > 0) {
                return;
            }
        }
        examine_reply all;
        for (auto& part : findings_) {
            std::move(part.begin(), part.end(), std::back_inserter(all.findings));
        }
        done_(std::move(all));
    }

private:
    const member_set& members_;
    std::mutex guard_;
    std::vector<std::vector<finding>> findings_;
    std::size_t awaited_;
    const completion<examine_reply> done_;
};

}  // namespace

void examine_all(member_set& members, const call& limits, completion<examine_reply> done) {
    const auto round = std::make_shared<examination_round>(members, std::move(done));
    const call share{limits.deadline, caller::must_not_block};
    for (std::size_t member = 0; member < members.size(); ++member) {
        const auto send = [&](engine& store, completion<examine_reply> answered) {
            if (auto* const examination = store.offers().examination) {
                examination->examine(share, std::move(answered));
            } else {
                answered({});
            }
        };
        members.ask<examine_reply>(member, send, [round, member](examine_reply reply) {
            round->answered(member, std::move(reply));
        });
    }
}

}  // namespace holdfast::engines::quorums
