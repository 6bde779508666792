#include <common/quiet_thread.hpp>
#include <core/quorum.hpp>
#include <quorum/address.hpp>
#include <quorum/engine.hpp>
#include <quorum/late_member.hpp>
#include <quorum/openings.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::engines {

std::unique_ptr<engine> open_quorum(std::string_view rest, const client_identity& identity);
address_summary summarise_quorum(std::string_view rest);

std::unique_ptr<engine> open_quorum(std::string_view rest, const client_identity& identity) {
    return open_quorum(quorums::parse_quorum(rest), identity);
}

}  // namespace holdfast::engines

namespace holdfast::engines::quorums {

namespace {

using std::chrono::milliseconds;

/// How long members that do not answer are waited for if a majority is there.
constexpr milliseconds opening_patience{500};

/// Why `store` may not vote in the place of `wanted`.
[[nodiscard]] failure check_promises(engine& store, late_member& wanted) {
    const auto& there = store.promises();
    const auto& promised = wanted.promises();
    const auto lacks = [](const auto* offered, const auto* expected) {
        return offered == nullptr && expected != nullptr;
    };
    const auto offered = store.offers();
    const auto expected = wanted.offers();
    const bool fits =
        there.reach >= promised.reach && there.tokens >= promised.tokens &&
        (there.shared || !promised.shared) && (there.replicas || !promised.replicas) &&
        there.minimum_ttl <= promised.minimum_ttl && !lacks(offered.watching, expected.watching) &&
        !lacks(offered.operators, expected.operators) && !lacks(offered.votes, expected.votes);
    return fits ? failure{}
                : failure{errc::bad_configuration, "this store promises less than the other members"};
}

/// Goes on opening the stores that were not there when the quorum was opened.
///
/// Thread safety: `go_on`, on one thread.
class late_openings {
public:
    /// `under_way`: its store is being opened.
    struct missing {
        std::size_t index;
        late_member* member;
        bool under_way;
    };

    late_openings(std::vector<missing> missing_ones, std::vector<engine*> present,
                  std::shared_ptr<openings> stores)
        : missing_{std::move(missing_ones)}, present_{std::move(present)}, stores_{std::move(stores)} {}

    void go_on(const std::stop_token& stop) {
        constexpr milliseconds first_pause{100};
        constexpr milliseconds longest_pause{5000};
        auto pause = first_pause;
        auto again_at = clock::now() + pause;
        while (!missing_.empty() && !stop.stop_requested()) {
            if (auto ended = stores_->next(stop, again_at)) {
                settle(ended->first, std::move(ended->second));
                continue;
            }
            for (auto& each : missing_) {
                if (!stop.stop_requested() && !each.under_way) {
                    each.under_way = begins(each.index);
                }
            }
            pause = std::min(2 * pause, longest_pause);
            again_at = clock::now() + pause;
        }
        stores_->abandon();
    }

private:
    /// False when there is no thread to be had at the moment.
    [[nodiscard]] bool begins(std::size_t index) {
        try {
            stores_->begin(index);
            return true;
        } catch (const std::system_error&) {
            return false;
        }
    }

    void settle(std::size_t index, attempt result) {
        const auto one = std::find_if(missing_.begin(), missing_.end(),
                                      [&](const missing& each) { return each.index == index; });
        if (result.store) {
            result.error = check_promises(*result.store, *one->member);
        }
        if (result.store && !result.error) {
            auto known = present_;
            known.push_back(result.store.get());
            result.error = check_distinct(known);
        }
        if (result.error) {
            one->under_way = false;
            one->member->explain(std::move(result.error));
            return;
        }
        present_.push_back(result.store.get());
        one->member->adopt(std::move(result.store));
        missing_.erase(one);
    }

    std::vector<missing> missing_;
    std::vector<engine*> present_;
    std::shared_ptr<openings> stores_;
};

/// A quorum needs a majority to begin with, and addresses and credentials that are right: a member that
/// will never vote is not one that is away.
void check_attempts(const std::vector<attempt>& attempts, const std::vector<std::string>& names) {
    std::vector<failure> failures;
    std::size_t open = 0;
    for (const auto& each : attempts) {
        failures.push_back(each.error);
        open += each.store ? 1 : 0;
        const bool ours_to_mend = each.error.code == errc::bad_configuration ||
                                  each.error.code == errc::invalid_argument ||
                                  each.error.code == errc::unauthorised;
        if (ours_to_mend) {
            each.error.raise("cannot use the quorum: " + names[failures.size() - 1]);
        }
    }
    if (open < core::majority_of(attempts.size())) {
        core::combined_failure(names, failures).raise("cannot use the quorum");
    }
}

struct member_summaries {
    std::vector<std::string> names;
    std::vector<std::string> identities;
    std::vector<std::string> prefixes;
};

/// The same whether or not they can be opened.
[[nodiscard]] member_summaries summarise_members(const quorum& stores) {
    member_summaries all;
    for (const auto& each : stores.stores) {
        auto summary = summarise_address(each);
        all.names.push_back(std::move(summary.shown));
        all.identities.push_back(std::move(summary.identity));
        std::move(summary.prefixes.begin(), summary.prefixes.end(), std::back_inserter(all.prefixes));
    }
    return all;
}

[[nodiscard]] quorum_options options_of(const quorum& stores) {
    return {stores.member_timeout, stores.drift, stores.restart_grace, {}};
}

void check_stores(const quorum& stores) {
    if (stores.stores.empty()) {
        refuse_quorum("name at least one store: quorum:redis://a redis://b redis://c");
    }
    std::set<std::string> distinct;
    for (const auto& each : stores.stores) {
        const auto place = "store " + std::to_string(distinct.size() + 1) + " of the quorum";
        if (each.find_first_of(" \t\n\r") != std::string::npos) {
            refuse_quorum(place + " has white space in its address");
        }
        if (each.rfind("quorum:", 0) == 0) {
            refuse_quorum("a quorum cannot be a member of another");
        }
        const auto summary = summarise_address(each);
        if (!distinct.insert(summary.identity).second) {
            refuse_quorum(summary.shown + " is named twice; it has one vote");
        }
    }
    // No moment of a clock that counts nanoseconds is further away.
    constexpr std::chrono::hours longest{24 * 365 * 100};
    const auto from = [longest](milliseconds shortest, milliseconds given) {
        return given >= shortest && given <= longest;
    };
    if (!from(milliseconds{0}, stores.restart_grace) ||
        !from(milliseconds{1}, stores.member_timeout.value_or(milliseconds{1})) ||
        !from(milliseconds{0}, stores.drift.value_or(milliseconds{0}))) {
        refuse_quorum(
            "member_timeout must be positive, drift and restart_grace not negative, and none longer "
            "than a hundred years");
    }
}

}  // namespace

}  // namespace holdfast::engines::quorums

namespace holdfast::engines {

address_summary summarise_quorum(std::string_view rest) {
    const auto stores = quorums::parse_quorum(rest);
    auto members = quorums::summarise_members(stores);
    return {quorums::identity_of(std::move(members.identities)),
            quorums::text_of(quorums::options_of(stores), members.names), std::move(members.prefixes)};
}

std::unique_ptr<engine> v0::open_quorum(const quorum& stores, const client_identity& identity) {
    using namespace quorums;
    check_stores(stores);
    const auto opening = std::make_shared<openings>(stores.stores, identity);
    for (std::size_t index = 0; index < stores.stores.size(); ++index) {
        opening->begin(index);
    }
    const auto patience = stores.member_timeout.value_or(opening_patience);
    auto attempts = opening->first_results(clock::now() + patience);
    auto [names, identities, prefixes] = summarise_members(stores);
    for (std::size_t index = 0; index < attempts.size(); ++index) {
        if (attempts[index].store) {
            names[index] = attempts[index].store->address();
        }
    }
    check_attempts(attempts, names);
    const auto any = std::find_if(attempts.begin(), attempts.end(),
                                  [](const attempt& one) { return one.store != nullptr; });
    auto& like = *any->store;
    std::vector<std::unique_ptr<engine>> members;
    std::vector<engine*> present;
    std::vector<late_openings::missing> missing;
    for (std::size_t index = 0; index < attempts.size(); ++index) {
        if (attempts[index].store) {
            present.push_back(attempts[index].store.get());
            members.push_back(std::move(attempts[index].store));
            continue;
        }
        auto late =
            std::make_unique<late_member>(names[index], identities[index], like, attempts[index].error);
        missing.push_back({index, late.get(), attempts[index].under_way});
        members.push_back(std::move(late));
    }
    auto whole = std::make_unique<quorum_engine>(std::move(members), options_of(stores), names,
                                                 std::move(identities));
    whole->repeat_releases();
    if (!missing.empty()) {
        late_openings late{std::move(missing), std::move(present), opening};
        whole->add_helper(quiet_thread(
            [late = std::move(late)](const std::stop_token& stop) mutable { late.go_on(stop); }));
    }
    return whole;
}

}  // namespace holdfast::engines
