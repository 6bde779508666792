#include "lock_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <holdfast/error.hpp>
#include <mutex>
#include <utility>

#include "claim.hpp"
#include "command_table.hpp"
#include "exit_code.hpp"
#include "opening.hpp"
#include "store.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// How long one call keeps trying a store that cannot be reached. Then the trouble is told, and the
/// call is made again.
constexpr std::chrono::seconds outage_patience{2};
constexpr clock::duration shortest_pause = milliseconds{50};
constexpr clock::duration longest_pause = std::chrono::seconds{1};
/// How far a wait may overrun to find out who has the lock.
constexpr milliseconds time_to_tell{300};

/// Returns after `pause`, or at once when `stop` comes.
void sleep_for(clock::duration pause, const std::stop_token& stop) {
    std::mutex guard;
    std::condition_variable_any never;
    std::unique_lock lock{guard};
    never.wait_for(lock, stop, pause, [] { return false; });
}

}  // namespace

std::string_view outer_owners() noexcept {
    const char* owners = std::getenv("HOLDFAST_OWNERS");
    return owners == nullptr ? std::string_view{} : std::string_view{owners};
}

lock_wait::lock_wait(run_session& run)
    : run_{run},
      deadline_{run.arguments.wait ? began_ + *run.arguments.wait : clock::time_point::max()} {}

void lock_wait::take(const std::stop_token& stop) {
    const auto& arguments = run_.arguments;
    auto& held = run_.held;
    for (clock::duration pause = shortest_pause;; pause = std::min(2 * pause, longest_pause)) {
        try {
            if (!run_.store) {
                open(stop);
            }
            if (stop.stop_requested()) {
                return;
            }
            if (held && !*held) {
                held.reset();  // lost before the command could run
            }
            if (!held) {
                refuse_to_wait_for_ourselves();
                held = claim(*run_.store, arguments, deadline_, stop);
                run_.acquired_at = clock::now();
            }
            if (held && run_.once && !arguments.again) {
                earlier_ = run_.once->marker(time_to_look());
            }
            if (!held || *held || clock::now() >= deadline_) {
                return;
            }
        } catch (const std::system_error& error) {
            run_.report.waited = since(began_);
            last_trouble_ = error.what();
            if (!is_passing(error.code()) || clock::now() >= deadline_) {
                throw;
            }
            tell_trouble(error);
        }
        sleep_for(std::min<clock::duration>(pause, deadline_ - clock::now()), stop);
    }
}

/// Opens nothing if `stop` comes first. The first attempt always has the full time that the store
/// allows for a connection.
void lock_wait::open(const std::stop_token& stop) {
    const auto& arguments = run_.arguments;
    const auto& program = arguments.command.front();
    const appearance look{program.substr(program.rfind('/') + 1), arguments.label, run_.news, false,
                          outage_patience};
    const auto until = std::exchange(tried_, true) ? deadline_ : clock::time_point::max();
    auto opened =
        open_until([store = arguments.store, look] { return open_store(store, look); }, until, stop);
    run_.report.unfinished_opening = opened.unfinished;
    if (!opened.store) {
        if (stop.stop_requested()) {
            return;
        }
        give_up_opening();
    }
    run_.store = std::move(opened.store);
    run_.report.store = run_.store->store();
    mention_limits(arguments.store, *run_.store, run_.out);
    if (arguments.once_per) {
        run_.once.emplace(*run_.store, arguments.name, *arguments.once_per);
    }
}

void lock_wait::give_up_opening() const {
    const auto context = "cannot use the store " + run_.report.store;
    const auto repeated = last_trouble_.starts_with(context + ": ") ? context.size() + 2 : 0;
    const auto cause =
        last_trouble_.empty() ? "" : "; the last attempt: " + last_trouble_.substr(repeated);
    failure{errc::store_unavailable, "no answer until the end of --wait" + cause}.raise(context);
}

/// A run inside a run of the same lock, however deep, would wait for the outer run, which waits for its
/// command.
void lock_wait::refuse_to_wait_for_ourselves() const {
    const auto& arguments = run_.arguments;
    const auto outer = outer_owners();
    if (outer.empty() || arguments.wait) {
        return;
    }
    const auto lock = run_.store->inspect(arguments.name);
    std::uint32_t permits = 0;
    bool in_the_way = false;
    for (const auto& holder : lock.holders) {
        if (!contains_word(outer, holder.owner.text())) {
            continue;
        }
        permits += holder.permits;
        in_the_way = in_the_way || (holder.mode != claim_mode::permit &&
                                    !(arguments.shared && holder.mode == claim_mode::shared));
    }
    if (in_the_way || (lock.limit > 0 && permits >= lock.limit)) {
        throw stop_program{
            exit_code::usage,
            fmt::format("this command already runs under \"{}\", so it would wait for itself",
                        arguments.name)};
    }
}

/// For a question asked while the lock is held: it may overrun the wait by a little only.
std::optional<milliseconds> lock_wait::time_to_look() const {
    const auto left = deadline_ - clock::now();
    if (deadline_ == began_ || left > outage_patience) {
        return std::nullopt;
    }
    return std::max(std::chrono::ceil<milliseconds>(left), time_to_tell);
}

/// Tells trouble only when it lasts, and then once a minute.
void lock_wait::tell_trouble(const std::system_error& error) {
    const auto now = clock::now();
    const bool lasts = run_.store != nullptr || now - began_ >= std::chrono::seconds{1};
    if (lasts && now >= tell_again_at_) {
        run_.out.say(fmt::format("{}; trying again {}", error.what(),
                                 run_.arguments.wait ? "until --wait is over" : "until it is there"));
        tell_again_at_ = now + std::chrono::minutes{1};
    }
}

std::string lock_wait::describe_holders() {
    const auto& name = run_.arguments.name;
    const bool waited = deadline_ > began_;
    try {
        run_.report.busy = run_.store->inspect(
            name, waited ? std::optional<milliseconds>{time_to_tell} : std::nullopt);
        return describe_busy(*run_.report.busy, std::chrono::system_clock::now());
    } catch (const std::system_error& error) {
        return fmt::format("\"{}\" is held by somebody else (who, cannot be told: {})", name,
                           error.what());
    }
}

}  // namespace holdfast::cli
