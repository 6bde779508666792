#include <functional>
#include <future>

#include "stores.hpp"

/// One thing goes wrong, and then another: every pair of faults on the way to a lock and back, for
/// every kind of lock, on real stores. Whatever the caller was told, afterwards nothing is left behind,
/// long before the ttl would have cleared it away, and tokens have risen.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

struct fault {
    std::string name;
    std::function<void(fault_plan&)> plant;
};

[[nodiscard]] std::vector<fault> all_faults() {
    std::vector<fault> all;
    const std::vector<std::pair<std::string, call_kind>> calls{{"acquire", call_kind::acquire},
                                                               {"release", call_kind::release}};
    for (const auto& [call, kind] : calls) {
        const auto what = kind;
        all.push_back({call + " does not arrive", [what](fault_plan& plan) {
                           plan.fail_next(what, 1, {errc::store_unavailable, "planted"});
                       }});
        all.push_back({"the answer to " + call + " is lost",
                       [what](fault_plan& plan) { plan.lose_replies_of_next(what); }});
        all.push_back({"the answer to " + call + " is late",
                       [what](fault_plan& plan) { plan.delay_replies_of_next(what); }});
    }
    // A release that is refused is over: asking again changes nothing, see core/release.hpp.
    all.push_back({"acquire is refused", [](fault_plan& plan) {
                       plan.fail_next(call_kind::acquire, 1, {errc::store_error, "planted"});
                   }});
    all.push_back(
        {"release arrives late", [](fault_plan& plan) { plan.delay_next(call_kind::release); }});
    return all;
}

/// What was got, of whatever kind.
struct taken {
    std::uint64_t token{};
    std::function<bool()> valid;
    std::function<void()> give_back;
};

template <class Lease>
[[nodiscard]] std::optional<taken> as_taken(std::optional<Lease> got, std::uint64_t token) {
    if (!got) {
        return std::nullopt;
    }
    const auto held = std::make_shared<Lease>(*std::move(got));
    return taken{token, [held] { return static_cast<bool>(*held); }, [held] { held->release(); }};
}

[[nodiscard]] std::optional<taken> as_taken(std::optional<lease> got) {
    const auto token = got ? got->token().value : 0;
    return as_taken(std::move(got), token);
}

constexpr lease_options terms{.ttl = 60s, .release_timeout = 50ms};

using try_lock =
    std::function<std::optional<taken>(client&, const std::string&, std::chrono::milliseconds wait)>;

struct kind_of_lock {
    std::string name;
    /// One side takes a share, the other all of it, where there is a difference.
    try_lock some;
    try_lock all;
};

[[nodiscard]] std::vector<kind_of_lock> kinds_of_locks() {
    const try_lock plain = [](client& where, const std::string& name, auto wait) {
        return as_taken(mutex{where, name, terms}.try_acquire_for(wait));
    };
    const try_lock reader = [](client& where, const std::string& name, auto wait) {
        return as_taken(shared_mutex{where, name, terms}.try_acquire_shared_for(wait));
    };
    const try_lock writer = [](client& where, const std::string& name, auto wait) {
        return as_taken(shared_mutex{where, name, terms}.try_acquire_for(wait));
    };
    const try_lock permit = [](client& where, const std::string& name, auto wait) {
        return as_taken(semaphore{where, name, 1, terms}.try_acquire_for(wait));
    };
    const try_lock several = [](client& where, const std::string& name, auto wait) {
        auto got = multi_lock{where, {name, name + ":2"}, terms}.try_acquire_for(wait);
        const auto token = got ? got->token(name + ":2").value : 0;
        return as_taken(std::move(got), token);
    };
    return {{"mutex", plain, plain},
            {"shared_mutex", reader, writer},
            {"semaphore", permit, permit},
            {"multi_lock", several, several}};
}

class second_fault : public ::testing::TestWithParam<std::string> {
protected:
    /// Says what is wrong; empty when nothing is.
    [[nodiscard]] std::string trouble_after(const kind_of_lock& kind, const fault& first,
                                            const fault& second, const std::string& name) {
        const auto plan = std::make_shared<fault_plan>();
        const auto identity = engines::make_identity();
        client unlucky{std::make_unique<fault_engine>(engines::open(store_.address(), identity), plan),
                       identity,
                       {.request_timeout = 60ms}};
        client other{store_.address()};
        first.plant(*plan);
        second.plant(*plan);
        std::uint64_t before = 0;
        try {
            if (const auto held = kind.some(unlucky, name, 2s)) {
                before = held->token;
                const auto rival = kind.all(other, name, 0ms);
                if (rival && held->valid()) {
                    return "two hold it";
                }
                held->give_back();
            }
        } catch (const std::system_error&) {
            // What it was told is its own affair; what matters is what is left.
        }
        plan->let_go();
        const auto next = kind.all(other, name, patience);
        if (!next) {
            return "it is not free again";
        }
        if (next->token <= before) {
            return "the token fell from " + std::to_string(before) + " to " +
                   std::to_string(next->token);
        }
        next->give_back();
        // A busy machine takes longer than `release_timeout`; the rest is done in the background.
        return eventually([&] { return other.inspect(name).holders.empty(); }) ? ""
                                                                               : "something is left";
    }

    any_store store_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(stores, second_fault, ::testing::ValuesIn(tested_schemes()),
                         [](const auto& one) { return one.param; });

TEST_P(second_fault, leaves_nothing_behind) {
    const auto faults = all_faults();
    const auto kinds = kinds_of_locks();
    // They mostly wait: many at a time.
    constexpr std::size_t at_once = 12;
    std::atomic<std::size_t> number{0};
    const auto work = [&] {
        for (auto mine = number++; mine < kinds.size() * faults.size() * faults.size();
             mine = number++) {
            const auto& kind = kinds[mine % kinds.size()];
            const auto& first = faults[mine / kinds.size() % faults.size()];
            const auto& second = faults[mine / kinds.size() / faults.size()];
            std::string wrong;
            try {
                wrong = trouble_after(kind, first, second, "stock:" + std::to_string(mine));
            } catch (const std::exception& error) {
                wrong = error.what();
            }
            EXPECT_EQ(wrong, "") << kind.name << ": " << first.name << ", then " << second.name;
        }
    };
    std::vector<std::future<void>> crew;
    for (std::size_t one = 0; one < at_once; ++one) {
        crew.push_back(std::async(std::launch::async, work));
    }
}

}  // namespace

}  // namespace holdfast::testing
