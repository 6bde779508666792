#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "isolation.hpp"
#include "stepping.hpp"

/// Two sessions go through every pair of guard operations. The first one is stopped before each of its
/// statements in turn, the second one runs until it is done or in the way of the first one, then the
/// first one goes on. Whatever the isolation level, what both are told and what is left in the table
/// must be what one of the two orders, one after the other, would have given. A session that is told
/// `busy` rolls back and starts again when the other one is done, as docs/guards.md asks for.
namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;

enum class ending : std::uint8_t { autocommit, commit, rollback };

/// What was told to whom, with names for the random texts.
struct told {
    std::string verdict;
    std::string claimant;
};

struct operation {
    std::string name;
    /// Whether it may be called inside a transaction, and outside of one.
    bool inside{true};
    bool outside{true};
    /// Whether what it says comes from a plain SELECT.
    bool plain_read{};
    std::function<told(database&)> perform;
};

/// One kind of guard: its operations, what may be there before, and how the rest looks afterwards.
struct guard_kind {
    std::string name;
    std::string table;
    std::vector<std::pair<std::string, std::function<void()>>> beginnings{};
    std::vector<operation> operations{};
    std::function<std::string(const std::map<std::string, std::string>& names)> picture{};
};

[[nodiscard]] std::chrono::milliseconds wall_clock() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

[[noreturn]] void start_again() {
    failure{errc::busy, "what was read is old"}.raise("test");
}

class isolation : public sql_guards {
protected:
    static constexpr std::string_view ours = "pay:1";
    static constexpr lease_columns stock_row{.table = "product_stock", .key = "id"};

    struct side {
        const operation* what;
        ending end;
    };

    /// A whole session: what it asks for, in a transaction or not, and again when it is busy.
    [[nodiscard]] told play(std::size_t player, database& connection, const side& one, referee& turns) {
        while (true) {
            try {
                if (one.end == ending::autocommit) {
                    return one.what->perform(connection);
                }
                connection.run(begin_, {});
                // Where a transaction has a snapshot, it is taken here.
                connection.run("SELECT 1 FROM " + table_, {});
                auto result = one.what->perform(connection);
                connection.run(one.end == ending::commit ? "COMMIT" : "ROLLBACK", {});
                return result;
            } catch (const std::system_error& error) {
                if (error.code() != errc::busy) {
                    throw;
                }
                // Some have rolled back already, and say so.
                static_cast<void>(error_of([&] { return connection.run("ROLLBACK", {}); }));
                turns.wait_for_turn(player);
            }
        }
    }

    [[nodiscard]] std::string summary(const guard_kind& kind, const side& first, const told& by_first,
                                      const told& by_second) const {
        const bool kept = first.end != ending::rollback;
        std::map<std::string, std::string> names{{ticket_.claimant, "X"}};
        names[by_first.claimant] = "A";
        names[by_second.claimant] = "B";
        names[""] = "";
        return "first told " + (kept ? by_first.verdict : "whatever") + ", second told " +
               by_second.verdict + ", left: " + kind.picture(names);
    }

    /// One after the other, in both orders; a first one that rolls back does not count.
    [[nodiscard]] std::set<std::string> serial_outcomes(const guard_kind& kind,
                                                        const std::function<void()>& beginning,
                                                        const side& first, const side& second) {
        std::set<std::string> outcomes;
        for (const bool swapped : {false, true}) {
            beginning();
            referee turns;
            turns.tell(0, referee::state::done);
            turns.tell(1, referee::state::done);
            told by_first;
            told by_second;
            if (swapped) {
                by_second = play(1, fresh_db(), second, turns);
            }
            by_first = play(0, old_db(), first, turns);
            if (!swapped) {
                by_second = play(1, fresh_db(), second, turns);
            }
            outcomes.insert(summary(kind, first, by_first, by_second));
        }
        return outcomes;
    }

    /// Empty: the first one was done before it came to that statement.
    [[nodiscard]] std::string stepped_outcome(const guard_kind& kind,
                                              const std::function<void()>& beginning, const side& first,
                                              const side& second, std::size_t stop_before) {
        beginning();
        gate steps;
        steps.stop_before(stop_before);
        stepped_database stepped{old_db(), steps};
        referee turns;
        auto by_first = std::async(std::launch::async, [&] {
            auto result = play(0, stepped, first, turns);
            turns.tell(0, referee::state::done);
            steps.end();
            return result;
        });
        if (!steps.wait_until_stopped()) {
            static_cast<void>(by_first.get());
            return {};
        }
        auto by_second = std::async(std::launch::async, [&] {
            auto result = play(1, fresh_db(), second, turns);
            turns.tell(1, referee::state::done);
            return result;
        });
        while (!turns.stops_within(1, 1ms) && !somebody_waits(*observer_)) {
        }
        steps.open();
        const auto said_to_first = by_first.get();
        return summary(kind, first, said_to_first, by_second.get());
    }

    void check_pair(const guard_kind& kind, const std::string& state,
                    const std::function<void()>& beginning, const operation& first,
                    const operation& second) {
        const side other{&second, second.outside ? ending::autocommit : ending::commit};
        for (const auto end : {ending::autocommit, ending::commit, ending::rollback}) {
            const bool alone = end == ending::autocommit;
            if (alone ? !first.outside : !first.inside) {
                continue;
            }
            const side one{&first, end};
            const auto& expected = serial_[{state, first.name, second.name, end}].empty()
                                       ? serial_[{state, first.name, second.name, end}] =
                                             serial_outcomes(kind, beginning, one, other)
                                       : serial_[{state, first.name, second.name, end}];
            // Before the first statement nothing has begun; in a transaction, before the snapshot. What
            // is rolled back matters only once it has been done.
            const std::size_t first_stop = alone ? 1 : end == ending::commit ? 2 : 3;
            for (auto stop = first_stop;; ++stop) {
                const auto seen = stepped_outcome(kind, beginning, one, other, stop);
                if (seen.empty()) {
                    break;
                }
                ++schedules_;
                EXPECT_TRUE(expected.contains(seen))
                    << kind.name << ", " << level_ << ", at first " << state << ": " << first.name
                    << (alone                   ? ""
                        : end == ending::commit ? ", committed"
                                                : ", rolled back")
                    << ", stopped before statement " << stop << " for " << second.name
                    << "\n  seen: " << seen << "\n  one of: " << ::testing::PrintToString(expected);
            }
        }
    }

    void check_all_pairs(const guard_kind& kind) {
        table_ = kind.table;
        for (const auto& level : isolation_levels()) {
            level_ = level.name;
            begin_ = level.begin;
            for (const auto& statement : level.setup) {
                old_->execute(statement);
                fresh_->execute(statement);
            }
            for (const auto& [state, beginning] : kind.beginnings) {
                for (const auto& first : kind.operations) {
                    for (const auto& second : kind.operations) {
                        if (level.dirty_reads && (first.plain_read || second.plain_read)) {
                            continue;
                        }
                        check_pair(kind, state, beginning, first, second);
                    }
                }
            }
        }
        EXPECT_GT(schedules_, kind.operations.size() * kind.beginnings.size());
    }

    [[nodiscard]] guard_kind fences();
    [[nodiscard]] guard_kind leases(const std::string& name, std::string table,
                                    std::function<storage_lease(database&)> make);
    [[nodiscard]] guard_kind operations_that_happen_once();

    std::unique_ptr<sql_session> observer_{open_session()};
    once_ticket ticket_;
    std::string table_;
    std::string level_;
    std::string begin_;
    std::size_t schedules_{};
    std::map<std::tuple<std::string, std::string, std::string, ending>, std::set<std::string>> serial_;
};

guard_kind isolation::fences() {
    guard_kind kind{.name = "fence", .table = "holdfast_fence"};
    const auto seen = [this](std::uint64_t token) {
        return [this, token] {
            observer_->execute("DELETE FROM holdfast_fence");
            if (token > 0) {
                ASSERT_EQ(fence{observer_->guarded()}.announce("stock", {token}), admission::admitted);
            }
        };
    };
    kind.beginnings = {{"nobody seen", seen(0)}, {"33 seen", seen(33)}, {"34 seen", seen(34)}};
    for (const std::uint64_t token : {33U, 34U}) {
        const auto number = " " + std::to_string(token);
        kind.operations.push_back(
            {.name = "admit" + number, .outside = false, .perform = [token](database& connection) {
                 return told{std::string{to_string(fence{connection}.admit("stock", {token}))}, ""};
             }});
        kind.operations.push_back(
            {.name = "announce" + number, .inside = false, .perform = [token](database& connection) {
                 return told{std::string{to_string(fence{connection}.announce("stock", {token}))}, ""};
             }});
    }
    kind.operations.push_back(
        {.name = "newest", .plain_read = true, .perform = [](database& connection) {
             return told{std::to_string(fence{connection}.newest("stock").value), ""};
         }});
    kind.picture = [this](const auto&) {
        return std::to_string(fence{observer_->guarded()}.newest("stock").value);
    };
    return kind;
}

guard_kind isolation::leases(const std::string& name, std::string table,
                             std::function<storage_lease(database&)> make) {
    guard_kind kind{.name = name, .table = std::move(table)};
    const auto at = [this, make](std::int64_t sequence) {
        return [this, make, sequence] {
            observer_->execute("DELETE FROM holdfast_lease");
            observer_->execute("UPDATE product_stock SET lease_seq = 0");
            for (std::int64_t number = 0; number < sequence; ++number) {
                observer_->execute("BEGIN");
                ASSERT_EQ(make(observer_->guarded()).advance("1", {number}), contest::won);
                observer_->execute("COMMIT");
            }
        };
    };
    kind.beginnings = {{"nothing advanced", at(0)}, {"advanced once", at(1)}};
    for (const std::int64_t number : {0, 1}) {
        kind.operations.push_back(
            {.name = "advance " + std::to_string(number),
             .outside = false,
             .perform = [make, number](database& connection) {
                 return told{std::string{to_string(make(connection).advance("1", {number}))}, ""};
             }});
    }
    kind.operations.push_back(
        {.name = "read", .plain_read = true, .perform = [make](database& connection) {
             return told{std::to_string(make(connection).read("1")->value), ""};
         }});
    kind.operations.push_back({.name = "read and advance",
                               .outside = false,
                               .plain_read = true,
                               .perform = [make](database& connection) {
                                   const auto seen = make(connection).read("1");
                                   if (make(connection).advance("1", *seen) == contest::lost) {
                                       start_again();
                                   }
                                   return told{"won after " + std::to_string(seen->value), ""};
                               }});
    kind.picture = [this, make](const auto&) {
        return std::to_string(make(observer_->guarded()).read("1")->value);
    };
    return kind;
}

guard_kind isolation::operations_that_happen_once() {
    guard_kind kind{.name = "once", .table = "holdfast_once"};
    ticket_ = {.operation = std::string{ours}, .claimant = "X", .attempt = 1};
    const auto begin_with = [this](const std::string& finished_and_outcome,
                                   std::chrono::milliseconds until) {
        return [this, finished_and_outcome, until] {
            observer_->execute("DELETE FROM holdfast_once");
            observer_->execute(
                "INSERT INTO holdfast_once (operation, attempt, claimant, finished, outcome,"
                " taken_until) VALUES ('" +
                ticket_.operation + "', 1, 'X', " + finished_and_outcome + ", " +
                std::to_string(until.count()) + ")");
        };
    };
    const auto later = wall_clock() + 1h;
    constexpr auto long_ago = 1ms;
    kind.beginnings = {
        {"nothing", [this] { observer_->execute("DELETE FROM holdfast_once"); }},
        {"claimed", begin_with("0, NULL", later)},
        {"claim ended", begin_with("0, NULL", long_ago)},
        {"done", begin_with("1, 'paid'", later)},
        {"done long ago", begin_with("1, 'paid'", long_ago)},
    };
    const auto settled = [this](auto call) {
        return [this, call](database& connection) {
            once terms{connection};
            return told{std::string{to_string(call(terms, ticket_))}, ""};
        };
    };
    kind.operations.push_back({.name = "claim", .perform = [](database& connection) {
                                   const auto reply = once{connection}.claim(ours);
                                   const auto attempt = std::to_string(reply.ticket.attempt);
                                   return told{std::string{to_string(reply.result)} + " " + attempt +
                                                   " " + reply.outcome,
                                               reply.ticket.claimant};
                               }});
    kind.operations.push_back(
        {.name = "complete", .perform = settled([](once& terms, const auto& ticket) {
                                 return terms.complete(ticket, "paid");
                             })});
    kind.operations.push_back(
        {.name = "extend",
         .perform = settled([](once& terms, const auto& ticket) { return terms.extend(ticket); })});
    kind.operations.push_back(
        {.name = "abandon",
         .perform = settled([](once& terms, const auto& ticket) { return terms.abandon(ticket); })});
    kind.operations.push_back({.name = "forget", .perform = [](database& connection) {
                                   return told{std::to_string(once{connection}.forget()), ""};
                               }});
    kind.picture = [this](const auto& names) {
        const auto row = observer_->guarded().run(
            "SELECT attempt, claimant, finished, outcome, taken_until FROM holdfast_once", {});
        if (row.row.empty()) {
            return std::string{"nothing"};
        }
        return "attempt " + *row.row[0] + " of " + names.at(*row.row[1]) + ", finished " + *row.row[2] +
               " " + row.row[3].value_or("") +
               (row.number(4) > (wall_clock() + 1s).count() ? ", live" : ", over");
    };
    return kind;
}

TEST_F(isolation, every_pair_of_fence_operations_is_as_if_one_after_the_other) {
    check_all_pairs(fences());
}

TEST_F(isolation, every_pair_of_lease_operations_is_as_if_one_after_the_other) {
    check_all_pairs(leases("storage_lease", "holdfast_lease",
                           [](database& connection) { return storage_lease{connection}; }));
}

TEST_F(isolation, every_pair_of_operations_on_a_row_of_the_users_is_as_if_one_after_the_other) {
    check_all_pairs(leases("storage_lease of the user's", "product_stock", [](database& connection) {
        return storage_lease{connection, stock_row};
    }));
}

TEST_F(isolation, every_pair_of_once_operations_is_as_if_one_after_the_other) {
    check_all_pairs(operations_that_happen_once());
}

}  // namespace

}  // namespace holdfast::guard::testing
