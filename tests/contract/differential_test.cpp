// Random sequences of requests on `memory:` and on the store under test: the same answers. The first
// difference is reduced to the requests that it takes.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <contract/deployments.hpp>
#include <holdfast/testing/contender.hpp>

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using engines::latch_request;

constexpr std::uint32_t names_of_a_kind = 2;
constexpr std::size_t clients = 2;
constexpr std::size_t owners_of_a_client = 3;
constexpr std::uint32_t permit_limit = 3;

struct operation {
    enum class verb : std::uint8_t { acquire, renew, release, linger, revoke, inspect, latch } what{};
    lock_kind kind{};
    std::uint32_t name{};
    std::size_t owner{};
    claim_mode mode{};
    std::uint32_t count{1};
    latch_request::operation latch{};
    /// Latches: a request that is sent again has the same number.
    std::int64_t request{};
};

using sequence = std::vector<operation>;

std::string_view text_of(claim_mode mode) {
    switch (mode) {
        case claim_mode::exclusive:
            return "exclusive";
        case claim_mode::shared:
            return "shared";
        case claim_mode::permit:
            return "permit";
    }
    return "?";
}

std::string text_of(const operation& what) {
    using enum operation::verb;
    static constexpr std::array verbs{"acquire", "renew",   "release", "release and linger",
                                      "revoke",  "inspect", "latch"};
    std::ostringstream text;
    text << verbs.at(static_cast<std::size_t>(what.what)) << " name " << static_cast<int>(what.kind)
         << '/' << what.name;
    if (what.what == latch) {
        text << " operation " << static_cast<int>(what.latch) << " by " << what.count << ", request "
             << what.request;
    } else if (what.what != inspect) {
        text << " by owner " << what.owner << ", " << text_of(what.mode) << " × " << what.count;
    }
    return text.str();
}

/// Draws requests that make sense now and then: modes fit the kind of lock, and not always the hold.
class author {
public:
    explicit author(std::uint64_t seed) : random_{seed} {}

    sequence write(std::size_t length) {
        sequence result(length);
        std::generate(result.begin(), result.end(), [this] { return next(); });
        return result;
    }

private:
    std::uint32_t pick(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }

    operation next() {
        using enum operation::verb;
        operation what;
        what.name = pick(names_of_a_kind);
        what.owner = pick(clients * owners_of_a_client);
        static constexpr std::array<lock_kind, 4> kinds{lock_kind::mutex, lock_kind::shared_mutex,
                                                        lock_kind::shared_mutex, lock_kind::semaphore};
        what.kind = kinds.at(pick(4));
        if (what.kind == lock_kind::shared_mutex) {
            what.mode = pick(2) == 0 ? claim_mode::shared : claim_mode::exclusive;
        } else if (what.kind == lock_kind::semaphore) {
            what.mode = claim_mode::permit;
            what.count = 1 + pick(2);
        }
        static constexpr std::array verbs{acquire, acquire, acquire, acquire, renew,   release,
                                          release, release, linger,  revoke,  inspect, latch};
        what.what = verbs.at(pick(verbs.size()));
        if (what.what == latch) {
            what.latch = static_cast<latch_request::operation>(pick(3));
            what.count = 1 + pick(3);
            what.request = pick(12);
        }
        return what;
    }

    std::mt19937_64 random_;
};

/// A store that answers in words which do not depend on time, owners or tokens themselves.
class subject {
public:
    explicit subject(const std::string& address)
        : clients_{contender{address, "one"}, contender{address, "other"}} {}

    /// Names that nothing was done to before.
    void begin() {
        ++run_;
        owners_.clear();
        ended_.clear();
        tokens_.clear();
        largest_.clear();
    }

    [[nodiscard]] bool offers(const operation& what) {
        const auto& promises = clients_.front().store().promises();
        return (what.mode != claim_mode::shared || promises.shared) &&
               (what.mode != claim_mode::permit || promises.permits) &&
               (what.what != operation::verb::latch || promises.latches);
    }

    std::string answer(const operation& what) {
        using enum operation::verb;
        switch (what.what) {
            case acquire:
                return acquired(what);
            case renew:
                return renewed(what);
            case release:
                return released(what, 0ms);
            case linger:
                return released(what, 1min);
            case revoke:
                return revoked(what);
            case inspect:
                return inspected(what);
            case latch:
                return counted(what);
        }
        return {};
    }

private:
    using place = std::pair<std::string, std::size_t>;

    [[nodiscard]] blocking_engine& store_of(std::size_t owner) {
        return clients_.at(owner / owners_of_a_client).store();
    }
    [[nodiscard]] std::string name_of(const operation& what) const {
        const auto kind = what.what == operation::verb::latch ? 9 : static_cast<int>(what.kind);
        return "differ:" + std::to_string(run_) + ":" + std::to_string(kind) + ":" +
               std::to_string(what.name);
    }
    [[nodiscard]] owner_id owner_of(const std::string& name, std::size_t owner) {
        auto& known = owners_[{name, owner}];
        if (known == owner_id{}) {
            known = clients_.at(owner / owners_of_a_client).another_owner();
        }
        return known;
    }
    /// An owner serves for one hold: once that is over, the next acquisition has another.
    [[nodiscard]] owner_id acquiring_owner(const std::string& name, std::size_t owner) {
        if (ended_.erase({name, owner}) > 0) {
            owners_.erase({name, owner});
            tokens_.erase({name, owner});
        }
        return owner_of(name, owner);
    }
    /// A first token by what it is to those before it.
    [[nodiscard]] std::string token(const std::string& name, std::size_t owner, fencing_token token) {
        auto& largest = largest_[name];
        auto& last = tokens_[{name, owner}];
        const bool same = token == last;
        const bool rises = token > largest;
        last = token;
        largest = std::max(largest, token);
        return same ? "its token" : rises ? "a new token" : "a token of before";
    }
    [[nodiscard]] static std::string error(const failure& why) {
        return why ? " " + std::error_code{why.code}.message() : "";
    }

    std::string acquired(const operation& what) {
        using outcome = engines::acquire_reply::outcome;
        const bool permit = what.mode == claim_mode::permit;
        const auto name = name_of(what);
        const auto reply = store_of(what.owner)
                               .acquire({.name = name,
                                         .mode = what.mode,
                                         .permits = permit ? what.count : 1,
                                         .limit = permit ? permit_limit : 0,
                                         .owner = acquiring_owner(name, what.owner),
                                         .ttl = long_ttl,
                                         .kind = what.kind});
        if (reply.result == outcome::granted) {
            return "granted " + token(name, what.owner, reply.first_token);
        }
        return reply.result == outcome::busy ? "busy" : "failed" + error(reply.error);
    }
    std::string renewed(const operation& what) {
        using outcome = engines::renew_reply::outcome;
        const auto name = name_of(what);
        const auto reply = store_of(what.owner)
                               .renew({{.name = name,
                                        .mode = what.mode,
                                        .owner = owner_of(name, what.owner),
                                        .ttl = long_ttl,
                                        .kind = what.kind}})
                               .front();
        return (reply.result == outcome::renewed ? "renewed"
                : reply.result == outcome::gone  ? "gone"
                                                 : "failed") +
               error(reply.error);
    }
    std::string released(const operation& what, std::chrono::milliseconds linger) {
        using outcome = engines::release_reply::outcome;
        const auto name = name_of(what);
        const auto reply = store_of(what.owner)
                               .release({.name = name,
                                         .mode = what.mode,
                                         .owner = owner_of(name, what.owner),
                                         .linger = linger,
                                         .kind = what.kind});
        if (reply.result != outcome::failed) {
            ended_.insert({name, what.owner});
        }
        return reply.result == outcome::released ? "released"
               : reply.result == outcome::gone   ? "gone"
                                                 : "failed" + error(reply.error);
    }
    std::string revoked(const operation& what) {
        using outcome = engines::revoke_reply::outcome;
        const auto name = name_of(what);
        const auto reply = store_of(what.owner)
                               .revoke({.name = name,
                                        .owner = owner_of(name, what.owner),
                                        .token = tokens_[{name, what.owner}],
                                        .actor = "test",
                                        .reason = "differential"});
        if (reply.result == outcome::revoked) {
            ended_.insert({name, what.owner});
        }
        return (reply.result == outcome::revoked ? "revoked"
                : reply.result == outcome::gone  ? "gone"
                                                 : "failed") +
               error(reply.error);
    }
    std::string inspected(const operation& what) {
        const auto name = name_of(what);
        const auto reply = store_of(what.owner).inspect(name);
        std::vector<std::string> holders;
        for (const auto& each : reply.info.holders) {
            const auto known = std::find_if(owners_.begin(), owners_.end(), [&](const auto& entry) {
                return entry.second == each.owner;
            });
            const auto index =
                known == owners_.end() ? clients * owners_of_a_client : known->first.second;
            holders.push_back(" owner " + std::to_string(index) + " " +
                              std::string{text_of(each.mode)} + " × " + std::to_string(each.permits) +
                              (each.lingering ? " lingers" : "") +
                              (each.token == tokens_[{name, index}] ? "" : " with another token"));
        }
        std::sort(holders.begin(), holders.end());
        std::string text = "held by" + error(reply.error);
        for (const auto& each : holders) {
            text += each;
        }
        if (reply.info.last_revocation) {
            text += " last revoked: " + reply.info.last_revocation->reason;
        }
        return text;
    }
    std::string counted(const operation& what) {
        auto request = clients_.front().identity().client;
        request.sequence = (std::int64_t{run_} << 8) + 1'000'000 + what.request;
        const auto reply = store_of(what.owner)
                               .latch({.what = what.latch,
                                       .name = name_of(what),
                                       .count = what.count,
                                       .lifetime = long_ttl,
                                       .request = request});
        return "counts " + std::to_string(reply.count) + (reply.applied ? " applied" : "") +
               (reply.known ? " known" : "") + error(reply.error);
    }

    std::array<contender, clients> clients_;
    int run_{};
    std::map<place, owner_id> owners_;
    std::set<place> ended_;
    std::map<place, fencing_token> tokens_;
    std::map<std::string, fencing_token> largest_;
};

struct difference {
    std::size_t at{};
    std::string one;
    std::string other;
};

/// Where the answers part, if they do.
template <class One, class Other>
std::optional<difference> compare(One& one, Other& other, const sequence& all) {
    one.begin();
    other.begin();
    for (std::size_t index = 0; index < all.size(); ++index) {
        if (!other.offers(all[index])) {
            continue;
        }
        auto first = one.answer(all[index]);
        auto second = other.answer(all[index]);
        if (first != second) {
            return difference{index, std::move(first), std::move(second)};
        }
    }
    return std::nullopt;
}

/// What is left when nothing more can be left out. The last request is the one answered differently.
template <class One, class Other>
sequence minimise(One& one, Other& other, sequence all) {
    for (std::size_t index = all.size(); index-- > 0;) {
        auto shorter = all;
        shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(index));
        if (const auto found = compare(one, other, shorter)) {
            shorter.resize(found->at + 1);
            all = std::move(shorter);
            index = std::min(index, all.size());
        }
    }
    return all;
}

template <class One, class Other>
std::string report(One& one, Other& other, const sequence& all) {
    const auto least = minimise(one, other, all);
    std::ostringstream text;
    for (const auto& each : least) {
        text << "  " << text_of(each) << '\n';
    }
    const auto found = compare(one, other, least);
    text << "memory: says \"" << (found ? found->one : "") << "\", the store says \""
         << (found ? found->other : "") << '"';
    return text.str();
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Differential, answers_are_those_of_the_store_in_memory) {
    subject memory{"memory:differential"};
    subject store{deployed().address()};
    const auto first = number_from("HOLDFAST_DIFFERENTIAL_SEED", 1);
    const auto runs = number_from("HOLDFAST_DIFFERENTIAL_RUNS", 150);
    for (auto seed = first; seed < first + runs; ++seed) {
        const auto all = author{seed}.write(40);
        ASSERT_FALSE(compare(memory, store, all)) << "seed " << seed << ":\n"
                                                  << report(memory, store, all);
    }
}

/// Releases only what was taken in the mode that is named, as Redis once did.
class releases_by_mode : public subject {
public:
    using subject::subject;

    void begin() {
        subject::begin();
        modes_.clear();
    }
    std::string answer(const operation& what) {
        using enum operation::verb;
        const std::pair claim{static_cast<int>(what.kind) * 10 + static_cast<int>(what.name),
                              what.owner};
        const auto taken = modes_.find(claim);
        if (what.what == release && taken != modes_.end() && taken->second != what.mode) {
            return "gone";
        }
        auto said = subject::answer(what);
        if (what.what == acquire && said.starts_with("granted")) {
            modes_[claim] = what.mode;
        } else if (said == "released" || said == "revoked") {
            modes_.erase(claim);
        }
        return said;
    }

private:
    std::map<std::pair<int, std::size_t>, claim_mode> modes_;
};

TEST(Differential, a_store_that_releases_by_mode_is_found_and_two_requests_are_left) {
    subject memory{"memory:differential-one"};
    releases_by_mode store{"memory:differential-other"};
    for (std::uint64_t seed = 1; seed < 100; ++seed) {
        const auto all = author{seed}.write(40);
        if (compare(memory, store, all)) {
            const auto least = minimise(memory, store, all);
            EXPECT_LE(least.size(), 2U) << report(memory, store, all);
            return;
        }
    }
    FAIL() << "nobody noticed";
}

}  // namespace

}  // namespace holdfast::testing
