#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <holdfast/engine.hpp>
#include <holdfast/error.hpp>
#include <mutex>
#include <utility>

#include "background_writer.hpp"
#include "cancellation.hpp"
#include "child.hpp"
#include "claim.hpp"
#include "command_table.hpp"
#include "commands.hpp"
#include "duration.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "lease_news.hpp"
#include "once_per.hpp"
#include "opening.hpp"
#include "run_report.hpp"
#include "secrets.hpp"
#include "store.hpp"
#include "supervisor.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

[[nodiscard]] milliseconds since(clock::time_point start) {
    return std::chrono::floor<milliseconds>(clock::now() - start);
}

/// Whether trying again may help: the store cannot be reached, or did not answer.
[[nodiscard]] bool is_passing(const std::error_code& error) {
    return error == errc::store_unavailable || error == errc::outcome_unknown;
}

/// Returns after `pause`, or at once when `stop` comes.
void sleep_for(clock::duration pause, const std::stop_token& stop) {
    std::mutex guard;
    std::condition_variable_any never;
    std::unique_lock lock{guard};
    never.wait_for(lock, stop, pause, [] { return false; });
}

/// The owners of the runs that this one is inside of, from the outermost on.
[[nodiscard]] std::string_view outer_owners() noexcept {
    const char* owners = std::getenv("HOLDFAST_OWNERS");
    return owners == nullptr ? std::string_view{} : std::string_view{owners};
}

/// One `holdfast run`, step by step. Every step fills in its part of the report.
class run_command {
public:
    run_command(const run_arguments& arguments, const messages& out, run_report& report)
        : arguments_{arguments},
          out_{out},
          report_{report},
          ending_{make_ending_terms(arguments.ttl, arguments.grace, arguments.max_hold)},
          deadline_{arguments.wait ? began_ + *arguments.wait : clock::time_point::max()} {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    run_command(const run_command&) = delete;
    run_command& operator=(const run_command&) = delete;
    /// A store that is silent holds up neither the end of the wait nor a signal.
    ~run_command() { leave_store(); }

    void execute() {
        try {
            acquire();
            if (held_ && !ran_recently()) {
                run_under(*held_);
            }
        } catch (const std::system_error& error) {
            give_back_unused(is_passing(error.code()) ? confirmation::not_awaited
                                                      : confirmation::awaited);
            throw;
        } catch (...) {
            give_back_unused(confirmation::awaited);
            throw;
        }
        give_back_unused(confirmation::awaited);
    }

private:
    /// Of a release, by the store: for as long as a release may take, or for `last_moment` only.
    enum class confirmation : std::uint8_t { awaited, not_awaited };

    void run_under(lease& held) {
        held.check();
        const terminal tty;
        started_at_ = clock::now();
        const auto environment = merge_environment(environment_for(held), withheld());
        supervisor watch{held, terms_of_supervision(), signals_, tty, out_};
        auto child = spawn({arguments_.command, environment, signals_, tty});
        if (child.exec_error != 0) {
            report_not_started(child.exec_error);
            return;
        }
        report_.command = watch.run(std::move(child));
        report_.held = since(acquired_at_);
        conclude(held);
    }

    /// How long a call bears with a store that cannot be reached before it is told, and made again.
    static constexpr std::chrono::seconds outage_patience{2};
    static constexpr clock::duration shortest_pause = milliseconds{50};
    static constexpr clock::duration longest_pause = std::chrono::seconds{1};
    /// How long a store that has been silent gets to confirm what is given back at last.
    static constexpr milliseconds last_moment{100};
    /// How far a wait may overrun for the answer to who has the lock.
    static constexpr milliseconds time_to_tell{300};

    /// Nothing is opened when `stop` comes first. The first attempt always has the time that the store
    /// allows for a connection.
    void open(const std::stop_token& stop) {
        const auto& program = arguments_.command.front();
        appearance look{program.substr(program.rfind('/') + 1), arguments_.label, news_, false,
                        outage_patience};
        const auto until = std::exchange(tried_, true) ? deadline_ : clock::time_point::max();
        auto opened = open_until([store = arguments_.store, look] { return open_store(store, look); },
                                 until, stop);
        report_.unfinished_opening = opened.unfinished;
        if (!opened.store) {
            if (stop.stop_requested()) {
                return;
            }
            const auto store = "cannot use the store " + report_.store;
            const auto repeated = last_trouble_.starts_with(store + ": ") ? store.size() + 2 : 0;
            const auto cause =
                last_trouble_.empty() ? "" : "; the last attempt: " + last_trouble_.substr(repeated);
            failure{errc::store_unavailable, "no answer until the end of --wait" + cause}.raise(store);
        }
        store_ = std::move(opened.store);
        report_.store = store_->store();
        mention_limits(arguments_.store, *store_, out_);
        if (arguments_.once_per) {
            once_.emplace(*store_, arguments_.name, *arguments_.once_per);
        }
    }

    /// A run inside a run of the same lock, however deep, would wait until the outer one ends, which
    /// waits for it.
    void refuse_to_wait_for_ourselves() {
        const auto outer = outer_owners();
        if (outer.empty() || arguments_.wait) {
            return;
        }
        const auto lock = store_->inspect(arguments_.name);
        std::uint32_t permits = 0;
        bool in_the_way = false;
        for (const auto& holder : lock.holders) {
            if (!contains_word(outer, holder.owner.text())) {
                continue;
            }
            permits += holder.permits;
            in_the_way = in_the_way || (holder.mode != claim_mode::permit &&
                                        !(arguments_.shared && holder.mode == claim_mode::shared));
        }
        if (in_the_way || (lock.limit > 0 && permits >= lock.limit)) {
            throw stop_program{
                exit_code::usage,
                fmt::format("this command already runs under \"{}\", so it would wait for itself",
                            arguments_.name)};
        }
    }

    void acquire() {
        cancellation_watch watch{signals_};
        wait_for_lock(watch.token());
        report_.waited = since(began_);
        if (const int signal = watch.finish()) {
            give_back_unused(confirmation::not_awaited);  // granted at the last moment, perhaps
            report_.outcome = run_outcome::cancelled;
            report_.status = status_of_signal(signal);
            report_.message = fmt::format("stopped waiting for \"{}\"", arguments_.name);
        } else if (!held_) {
            report_.outcome = run_outcome::not_acquired;
            report_.status = to_status(exit_code::not_acquired);
            report_.message = describe_holders();
        } else {
            report_.token = held_->token();
            report_.owner = held_->owner();
        }
    }

    /// The wait covers everything from the start: opening the store, its outages, others' holds, and
    /// the look for an earlier run. A refusal ends it at once.
    void wait_for_lock(const std::stop_token& stop) {
        for (clock::duration pause = shortest_pause;; pause = std::min(2 * pause, longest_pause)) {
            try {
                if (!store_) {
                    open(stop);
                }
                if (stop.stop_requested()) {
                    return;
                }
                if (held_ && !*held_) {
                    held_.reset();  // lost before the command could run
                }
                if (!held_) {
                    refuse_to_wait_for_ourselves();
                    held_ = claim(*store_, arguments_, deadline_, stop);
                    acquired_at_ = clock::now();
                }
                if (held_ && once_ && !arguments_.again) {
                    earlier_ = once_->marker(time_to_look());
                }
                if (!held_ || *held_ || clock::now() >= deadline_) {
                    return;
                }
            } catch (const std::system_error& error) {
                report_.waited = since(began_);
                last_trouble_ = error.what();
                if (!is_passing(error.code()) || clock::now() >= deadline_) {
                    throw;
                }
                tell_trouble(error);
            }
            sleep_for(std::min<clock::duration>(pause, deadline_ - clock::now()), stop);
        }
    }

    /// For a question under the lock: it may overrun a wait by a little only.
    [[nodiscard]] std::optional<milliseconds> time_to_look() const {
        const auto left = deadline_ - clock::now();
        if (deadline_ == began_ || left > outage_patience) {
            return std::nullopt;
        }
        return std::max(std::chrono::ceil<milliseconds>(left), time_to_tell);
    }

    /// Once it lasts, and then rarely.
    void tell_trouble(const std::system_error& error) {
        const auto now = clock::now();
        const bool lasts = store_ != nullptr || now - began_ >= std::chrono::seconds{1};
        if (lasts && now >= tell_again_at_) {
            out_.say(fmt::format("{}; trying again {}", error.what(),
                                 arguments_.wait ? "until --wait is over" : "until it is there"));
            tell_again_at_ = now + std::chrono::minutes{1};
        }
    }

    [[nodiscard]] std::string describe_holders() {
        const bool waited = deadline_ > began_;
        try {
            report_.busy = store_->inspect(
                arguments_.name, waited ? std::optional<milliseconds>{time_to_tell} : std::nullopt);
            return describe_busy(*report_.busy, system_clock::now());
        } catch (const std::system_error& error) {
            return fmt::format("\"{}\" is held by somebody else (who, cannot be told: {})",
                               arguments_.name, error.what());
        }
    }

    [[nodiscard]] bool ran_recently() {
        if (!earlier_) {
            return false;
        }
        report_.outcome = run_outcome::skipped;
        report_.status = to_status(exit_code::success);
        report_.message = fmt::format(
            "\"{}\" already ran in the last {}, last by {}; next run in {}, now with --again",
            arguments_.name, format_duration(*arguments_.once_per), describe_holder(*earlier_),
            format_duration(earlier_->remaining));
        return true;
    }

    [[nodiscard]] std::vector<std::string> environment_for(const lease& held) const {
        const auto left = std::chrono::floor<milliseconds>(held.remaining());
        return {
            "HOLDFAST_NAME=" + held.name(),
            fmt::format("HOLDFAST_TOKEN={}", held.token().value),
            "HOLDFAST_OWNER=" + held.owner().text(),
            fmt::format("HOLDFAST_OWNERS={}{}{}", outer_owners(), outer_owners().empty() ? "" : " ",
                        held.owner().text()),
            fmt::format("HOLDFAST_DEADLINE={}", epoch_milliseconds(system_clock::now() + left)),
            "HOLDFAST_STORE=" + address_for_child(arguments_.store, *store_, arguments_.pass_store),
        };
    }

    /// The store's password is for this program. The command gets it only with `--pass-store`.
    [[nodiscard]] std::vector<std::string_view> withheld() const {
        return arguments_.pass_store == store_passing::without_password
                   ? std::vector<std::string_view>{"HOLDFAST_REDIS_USER", "HOLDFAST_REDIS_PASSWORD"}
                   : std::vector<std::string_view>{};
    }

    [[nodiscard]] supervision_terms terms_of_supervision() const {
        const auto end =
            arguments_.max_hold ? acquired_at_ + *arguments_.max_hold : clock::time_point::max();
        return {arguments_.on_lost, ending_, end, arguments_.max_hold.value_or(milliseconds{0}),
                [news = news_] { return news->renewal_trouble(); }};
    }

    void report_not_started(int error) {
        const bool missing = error == ENOENT || error == ENOTDIR;
        report_.outcome = run_outcome::not_started;
        report_.status = to_status(missing ? exit_code::not_found : exit_code::not_executable);
        report_.message =
            fmt::format("cannot execute \"{}\": {}", arguments_.command.front(), std::strerror(error));
    }

    void conclude(lease& held) {
        const auto& command = *report_.command;
        const int status = command.wait_status;
        const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        const auto rest_of_lease = held.remaining();
        auto last_seen = look_at_lock(held);
        if (once_ && succeeded && !command.lost && once_->counts(started_at_)) {
            remember_run(held, last_seen);
        }
        give_back(held, last_seen);
        find_reasons();
        const bool lost = command.lost && arguments_.on_lost != loss_policy::ignore;
        report_.outcome = command.lost ? run_outcome::lost : run_outcome::completed;
        report_.status = WIFSIGNALED(status) ? status_of_signal(WTERMSIG(status)) : WEXITSTATUS(status);
        if (lost) {
            report_.status = to_status(exit_code::lost);
        }
        describe_end(rest_of_lease);
    }

    /// What the store says of the lock when the command has ended.
    struct sighting {
        /// No error: it answered.
        failure problem;
        /// Among the holders.
        bool ours{};
        /// Who took it from us, if somebody did.
        std::string revocation;

        [[nodiscard]] bool silent() const {
            return problem && is_passing(make_error_code(problem.code));
        }
    };

    /// A store that cannot be reached says so at once, and a request to release would be tried again
    /// and again. After a loss for lack of answers it is not asked.
    [[nodiscard]] sighting look_at_lock(const lease& held) {
        const auto& command = *report_.command;
        sighting seen;
        if (command.lost && command.loss_reason == errc::lost) {
            seen.problem = {errc::store_unavailable, command.loss_detail};
            return seen;
        }
        try {
            const auto lock = store_->inspect(arguments_.name, release_patience);
            seen.ours =
                std::any_of(lock.holders.begin(), lock.holders.end(),
                            [&](const holder_info& holder) { return holder.owner == held.owner(); });
            if (const auto& last = lock.last_revocation; last && last->owner == held.owner()) {
                seen.revocation = fmt::format("revoked by {}", last->actor) +
                                  (last->reason.empty() ? "" : ": " + last->reason);
            }
        } catch (const std::system_error& error) {
            const bool known = error.code().category() == error_category();
            seen.problem = {known ? static_cast<errc>(error.code().value()) : errc::outcome_unknown,
                            error.what()};
        }
        return seen;
    }

    /// Other signals (the end of a process that the command left behind, a window that was resized)
    /// are taken and forgotten.
    [[nodiscard]] bool told_to_end() const {
        bool told = false;
        for (auto signal = signals_.next(); signal; signal = signals_.next()) {
            told = told || ends_waiting(*signal);
        }
        return told;
    }

    /// Leaves the marker. A store that does not answer (a fail-over, a restart), or refuses for a while
    /// (a slot that moves), is waited for: while we have the lock nobody else runs the command, and
    /// then the marker must be there.
    void remember_run(const lease& held, sighting& last_seen) {
        keep_trying_to_leave_marker(held, last_seen);
        if (report_.marker_problem && *report_.marker_problem && !once_->counts(started_at_)) {
            report_.marker_problem.reset();  // the period is over: others may run the command anyway
        }
    }

    void keep_trying_to_leave_marker(const lease& held, sighting& last_seen) {
        constexpr std::chrono::seconds patience{10};
        constexpr int pause_ms = 200;
        const auto until = clock::now() + patience;
        for (bool told = false; once_->counts(started_at_); last_seen = look_at_lock(held)) {
            report_.marker_problem = leave_marker(last_seen);
            if (told && !report_.marker_problem) {
                report_.marker_problem =
                    failure{errc::lost, "the lock ended before the marker could be left"};
            }
            const bool passing = report_.marker_problem && *report_.marker_problem &&
                                 is_passing(make_error_code(report_.marker_problem->code));
            if (!passing || !held || clock::now() >= until) {
                return;
            }
            if (!std::exchange(told, true)) {
                out_.say(
                    fmt::format("the --once-per marker of \"{}\" cannot be left yet ({}); trying again "
                                "for up to {}",
                                arguments_.name, describe_problem(*report_.marker_problem),
                                format_duration(patience)));
            }
            ::pollfd signals{signals_.readable(), POLLIN, 0};
            static_cast<void>(::poll(&signals, 1, pause_ms));
            if (told_to_end()) {
                return;
            }
        }
    }

    /// The lock may be gone without our knowledge: the next renewal would have told. A run that lost
    /// its lock does not count. One that may not look counts.
    [[nodiscard]] std::optional<failure> leave_marker(const sighting& last_seen) {
        if (last_seen.problem.code == errc::outcome_unknown) {
            return failure{errc::store_unavailable, last_seen.problem.detail};
        }
        if (!last_seen.problem && !last_seen.ours) {
            return std::nullopt;
        }
        // The slot of the lock may be on the move; that of the marker is another one.
        auto problem = once_->remember(
            started_at_, last_seen.silent() ? once_per::patience::none : once_per::patience::some);
        if (problem && problem.detail.empty()) {
            // A store that has refused it is not asked again.
            const auto told = news_->next_release_trouble(once_->marker_name());
            problem = told ? told : problem;
        }
        return problem;
    }

    /// On loss too: the lease is over for the command, but perhaps not yet for the store. A store that
    /// is silent is not waited for once more.
    void give_back(lease& held, const sighting& last_seen) {
        auto& command = *report_.command;
        const auto rest = arguments_.min_hold.value_or(milliseconds{0}) - since(acquired_at_);
        const bool lingers = rest > milliseconds{0} && !command.lost;
        if (last_seen.silent() && !lingers) {
            report_.released = leave_store_with(held);
            return;
        }
        report_.released = lingers ? held.release_after(rest) : held.release();
        // The deadline may pass between the end of the command and the release, which does no harm.
        // But if the store no longer knew a lease that had time left, it was taken from the command.
        if (*report_.released == release_outcome::already_lost && !command.lost &&
            clock::now() < command.lease_end) {
            command.lost = true;
            command.loss_reason = last_seen.revocation.empty() ? errc::lost : errc::revoked;
            command.loss_detail =
                last_seen.revocation.empty() ? std::string{gone_from_store} : last_seen.revocation;
        }
    }

    /// Gives back a lock that is held, but not for a command that has run: that is concluded.
    void give_back_unused(confirmation wanted) {
        if (!held_ || report_.command) {
            return;
        }
        const auto rest_of_lease = held_->remaining();
        report_.token = held_->token();
        report_.owner = held_->owner();
        report_.released =
            wanted == confirmation::awaited ? held_->release() : leave_store_with(*held_);
        held_.reset();
        find_reasons();
        warn_of_unreleased(rest_of_lease);
    }

    [[nodiscard]] release_outcome leave_store_with(const lease& held) {
        const bool over = !held;
        leave_store();
        return over                       ? release_outcome::already_lost
               : is_left(arguments_.name) ? release_outcome::unknown
                                          : release_outcome::released;
    }

    /// The client knows why the store did not do what was asked.
    void find_reasons() {
        auto& marker = report_.marker_problem;
        const bool marker_unexplained = marker && *marker && marker->detail.empty();
        if (*report_.released != release_outcome::unknown && !marker_unexplained) {
            return;
        }
        leave_store();
        report_.release_problem = reason_left(arguments_.name);
        if (marker_unexplained) {
            const auto reason = reason_left(once_->marker_name());
            *marker = reason ? reason : *marker;
        }
    }

    /// Why the release of this lock was not confirmed. No error: the store did not answer.
    [[nodiscard]] failure reason_left(const std::string& name) const {
        if (auto told = news_->release_trouble(name)) {
            return told;
        }
        const auto found = std::find_if(left_.begin(), left_.end(),
                                        [&](const unreleased& one) { return one.name == name; });
        return found == left_.end() ? failure{} : found->error;
    }

    [[nodiscard]] bool is_left(const std::string& name) const {
        return std::any_of(left_.begin(), left_.end(),
                           [&](const unreleased& one) { return one.name == name; });
    }

    /// Ends the client, so that nothing waits for the store any more. It has a moment to confirm what
    /// it is given back.
    void leave_store() noexcept {
        if (!store_ || std::exchange(left_store_, true)) {
            return;
        }
        try {
            left_ = store_->shutdown(last_moment);
        } catch (const std::exception&) {
            left_.clear();  // no memory for the list of what is left
        }
    }

    void describe_end(std::chrono::nanoseconds rest_of_lease) {
        const auto& command = *report_.command;
        if (command.lost) {
            report_.message = describe_lost();
            if (command.left_behind > 0 && arguments_.on_lost != loss_policy::ignore) {
                report_.message +=
                    fmt::format("; {} of its processes could not be killed", command.left_behind);
            }
        } else if (command.left_behind > 0) {
            out_.detail(fmt::format("the command left {} processes in the background, without the lock",
                                    command.left_behind));
        }
        if (const auto& marker = report_.marker_problem; marker && *marker) {
            report_.warnings.push_back(
                fmt::format("the --once-per marker of \"{}\" {} ({}): the command may run again sooner",
                            arguments_.name,
                            marker->code == errc::outcome_unknown ? "was not confirmed" : "is missing",
                            describe_problem(*marker)));
        }
        if (!command.lost) {
            warn_of_unreleased(rest_of_lease);
        }
    }

    void warn_of_unreleased(std::chrono::nanoseconds rest_of_lease) {
        if (*report_.released == release_outcome::unknown) {
            const auto rest = std::chrono::ceil<std::chrono::seconds>(rest_of_lease);
            report_.warnings.push_back(
                fmt::format("\"{}\" could not be released ({}); it ends by itself within {}",
                            arguments_.name, describe_problem(report_.release_problem),
                            format_duration(std::min<milliseconds>(rest + std::chrono::seconds{1},
                                                                   arguments_.ttl))));
        }
    }

    [[nodiscard]] std::string describe_lost() const {
        const auto& command = *report_.command;
        if (command.loss_reason == errc::max_hold_exceeded &&
            arguments_.on_lost != loss_policy::ignore) {
            return describe_max_hold(arguments_.name, *arguments_.max_hold, report_.held) +
                   ": the command was ended";
        }
        return fmt::format("\"{}\" was lost while the command ran ({})", arguments_.name,
                           describe_loss(command.loss_reason, command.loss_detail));
    }

    [[nodiscard]] static std::string describe_problem(const failure& problem) {
        if (problem.detail.empty()) {
            return "the store did not answer";
        }
        return (problem.code == errc::unauthorised ? "a permission is missing: " : "") + problem.detail;
    }

    const run_arguments& arguments_;
    const messages& out_;
    run_report& report_;
    ending_terms ending_;
    const clock::time_point began_{clock::now()};
    /// Of the wait.
    const clock::time_point deadline_;
    clock::time_point tell_again_at_{};
    bool tried_{};
    signal_source signals_;
    const std::shared_ptr<lease_news> news_{std::make_shared<lease_news>(arguments_.name, out_)};
    std::unique_ptr<client> store_;
    std::optional<lease> held_;
    bool left_store_{};
    /// What the store did not confirm at the end.
    std::vector<unreleased> left_;
    /// The last error while it waited.
    std::string last_trouble_;
    std::optional<once_per> once_;
    /// The run that keeps this one from running.
    std::optional<holder_info> earlier_;
    clock::time_point acquired_at_;
    clock::time_point started_at_;
};

/// Whether the terminal sent this signal to the command, and would have sent it to us and to the
/// script around us had it not been lent to the command.
[[nodiscard]] int signal_from_terminal(const run_report& report) {
    if (report.outcome != run_outcome::completed || !report.command->had_terminal ||
        !WIFSIGNALED(report.command->wait_status)) {
        return 0;
    }
    const int signal = WTERMSIG(report.command->wait_status);
    return signal == SIGINT ? signal : 0;
}

}  // namespace

int run(const run_arguments& arguments) {
    background_writer standard_error{STDERR_FILENO};
    const messages out{arguments.level, standard_error};
    run_report report;
    report.store = engines::summarise_address(arguments.store.address).shown;
    const auto began = clock::now();
    try {
        run_command{arguments, out, report}.execute();
    } catch (...) {
        const auto what = describe_current_exception();
        if (!report.owner) {
            report.waited = since(began);
        }
        report.outcome = run_outcome::failed;
        report.status = to_status(what.code);
        report.message = what.message;
    }
    print_report(arguments, report, out);
    standard_error.finish();
    if (report.unfinished_opening) {
        _exit(report.status);
    }
    if (const int signal = signal_from_terminal(report)) {
        die_with_group_of(signal);
    }
    return report.status;
}

}  // namespace holdfast::cli
