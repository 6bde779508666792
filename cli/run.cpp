#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <holdfast/observer.hpp>

#include "background_writer.hpp"
#include "child.hpp"
#include "claim.hpp"
#include "commands.hpp"
#include "duration.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "once_per.hpp"
#include "run_report.hpp"
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

/// With `--verbose`: what happens to the lease while the command runs.
class narrator : public observer {
public:
    explicit narrator(const messages& out) : out_{out} {}

    void on_event(const event& what) noexcept override {
        if (what.kind == event_kind::renewed) {
            return;
        }
        out_.detail(fmt::format("\"{}\" {}{}{}", what.name, to_string(what.kind),
                                what.error ? ": " : "", what.error.detail));
    }

private:
    messages out_;
};

/// One `holdfast run`, step by step. Every step fills in its part of the report.
class run_command {
public:
    run_command(const run_arguments& arguments, const messages& out, run_report& report)
        : arguments_{arguments},
          out_{out},
          report_{report},
          ending_{make_ending_terms(arguments.ttl, arguments.grace, arguments.max_hold)} {
        open();
    }

    void execute() {
        refuse_to_wait_for_ourselves();
        auto held = acquire();
        if (!held || ran_recently()) {
            return;
        }
        held->check();
        const terminal tty;
        started_at_ = clock::now();
        const auto environment = merge_environment(environment_for(*held), withheld());
        const auto child = spawn({arguments_.command, environment, signals_, tty});
        if (child.exec_error != 0) {
            report_not_started(child.exec_error);
            report_.released = held->release();
            return;
        }
        supervisor watch{*held,    child.id, {arguments_.on_lost, ending_, hold_end()},
                         signals_, tty,      out_};
        report_.command = watch.run();
        report_.held = since(acquired_at_);
        conclude(*held);
    }

private:
    void open() {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        const auto& program = arguments_.command.front();
        appearance look{program.substr(program.rfind('/') + 1), arguments_.label, {}};
        if (out_.verbose()) {
            look.events = std::make_shared<narrator>(out_);
        }
        store_ = open_store(arguments_.store, look);
        report_.store = store_->store();
        mention_limits(arguments_.store, *store_, out_);
        if (arguments_.once_per) {
            once_.emplace(*store_, arguments_.name, *arguments_.once_per);
        }
    }

    /// A run inside a run of the same lock would wait until the outer one ends, which waits for it.
    void refuse_to_wait_for_ourselves() {
        const char* outer_name = std::getenv("HOLDFAST_NAME");
        const char* outer_owner = std::getenv("HOLDFAST_OWNER");
        const bool nested =
            outer_owner != nullptr && outer_name != nullptr && arguments_.name == outer_name;
        if (!nested || arguments_.wait) {
            return;
        }
        for (const auto& holder : store_->inspect(arguments_.name).holders) {
            if (holder.owner.text() == outer_owner && holder.mode != claim_mode::permit &&
                !(arguments_.shared && holder.mode == claim_mode::shared)) {
                throw stop_program{
                    exit_code::usage,
                    fmt::format("this command already runs under \"{}\", so it would wait for itself",
                                arguments_.name)};
            }
        }
    }

    [[nodiscard]] std::optional<lease> acquire() {
        const auto began = clock::now();
        auto claimed = claim(*store_, arguments_, signals_);
        acquired_at_ = clock::now();
        report_.waited = since(began);
        if (claimed.cancelled_by != 0) {
            report_.outcome = run_outcome::cancelled;
            report_.status = status_of_signal(claimed.cancelled_by);
            report_.message = fmt::format("stopped waiting for \"{}\"", arguments_.name);
        } else if (!claimed.held) {
            report_.outcome = run_outcome::not_acquired;
            report_.status = to_status(exit_code::not_acquired);
            report_.message = describe_holders();
        } else {
            report_.token = claimed.held->token();
            report_.owner = claimed.held->owner();
        }
        return std::move(claimed.held);
    }

    [[nodiscard]] std::string describe_holders() {
        try {
            report_.busy = store_->inspect(arguments_.name);
            return describe_busy(*report_.busy, system_clock::now());
        } catch (const std::system_error& error) {
            return fmt::format("\"{}\" is held by somebody else (who, cannot be told: {})",
                               arguments_.name, error.what());
        }
    }

    [[nodiscard]] bool ran_recently() {
        const auto earlier = once_ ? once_->earlier_run() : std::nullopt;
        if (!earlier) {
            return false;
        }
        report_.outcome = run_outcome::skipped;
        report_.status = to_status(exit_code::success);
        report_.message = fmt::format("\"{}\" already ran in the last {}, last by {}; next run in {}",
                                      arguments_.name, format_duration(*arguments_.once_per),
                                      describe_holder(*earlier), format_duration(earlier->remaining));
        return true;
    }

    [[nodiscard]] std::vector<std::string> environment_for(const lease& held) const {
        const auto left = std::chrono::floor<milliseconds>(held.remaining());
        return {
            "HOLDFAST_NAME=" + held.name(),
            fmt::format("HOLDFAST_TOKEN={}", held.token().value),
            "HOLDFAST_OWNER=" + held.owner().text(),
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

    [[nodiscard]] clock::time_point hold_end() const {
        return arguments_.max_hold ? acquired_at_ + *arguments_.max_hold : clock::time_point::max();
    }

    void report_not_started(int error) {
        const bool missing = error == ENOENT || error == ENOTDIR;
        report_.outcome = run_outcome::not_started;
        report_.status = to_status(missing ? exit_code::not_found : exit_code::not_executable);
        report_.message =
            fmt::format("cannot execute {}: {}", arguments_.command.front(), std::strerror(error));
    }

    void conclude(lease& held) {
        const auto& command = *report_.command;
        const int status = command.wait_status;
        const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (once_ && succeeded && !command.lost) {
            remember_run(held);
        }
        give_back(held);
        const bool lost = command.lost && arguments_.on_lost != loss_policy::ignore;
        report_.outcome = command.lost ? run_outcome::lost : run_outcome::completed;
        report_.status = WIFSIGNALED(status) ? status_of_signal(WTERMSIG(status)) : WEXITSTATUS(status);
        if (lost) {
            report_.status = to_status(exit_code::lost);
        }
        describe_end();
    }

    /// The lock may be gone without our knowledge: the next renewal would have told. A run that lost
    /// its lock does not count, so the store is asked first.
    void remember_run(const lease& held) {
        try {
            const auto lock = store_->inspect(arguments_.name);
            const bool ours =
                std::any_of(lock.holders.begin(), lock.holders.end(),
                            [&](const holder_info& holder) { return holder.owner == held.owner(); });
            if (!ours || once_->remember(started_at_)) {
                return;  // `give_back` reports the loss
            }
        } catch (const std::system_error&) {
            // the run itself was a success, and stays one
        }
        out_.say("the store did not confirm the --once-per marker; it may run again sooner");
    }

    /// On loss too: the lease is over for the command, but perhaps not yet for the store.
    void give_back(lease& held) {
        auto& command = *report_.command;
        const auto rest = arguments_.min_hold.value_or(milliseconds{0}) - since(acquired_at_);
        report_.released =
            rest > milliseconds{0} && !command.lost ? held.release_after(rest) : held.release();
        // The deadline may pass between the end of the command and the release, which does no harm.
        // But if the store no longer knew a lease that had time left, it was taken from the command.
        if (*report_.released == release_outcome::already_lost && !command.lost &&
            clock::now() < command.lease_end) {
            command.lost = true;
            command.loss_reason = errc::lost;
        }
    }

    void describe_end() {
        const auto& command = *report_.command;
        if (command.lost) {
            report_.message = fmt::format("\"{}\" was lost while the command ran ({})", arguments_.name,
                                          describe_loss(command.loss_reason));
            if (command.left_behind > 0 && arguments_.on_lost != loss_policy::ignore) {
                report_.message +=
                    fmt::format("; {} of its processes could not be killed", command.left_behind);
            }
        } else if (command.left_behind > 0) {
            out_.detail(fmt::format("the command left {} processes in the background, without the lock",
                                    command.left_behind));
        } else if (*report_.released == release_outcome::unknown) {
            out_.say(fmt::format(
                "the store did not confirm the release of \"{}\"; it frees itself within {}",
                arguments_.name, format_duration(arguments_.ttl)));
        }
    }

    const run_arguments& arguments_;
    const messages& out_;
    run_report& report_;
    ending_terms ending_;
    signal_source signals_;
    std::unique_ptr<client> store_;
    std::optional<once_per> once_;
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
    try {
        run_command{arguments, out, report}.execute();
    } catch (...) {
        const auto what = describe_current_exception();
        report.outcome = run_outcome::failed;
        report.status = to_status(what.code);
        report.message = what.message;
    }
    print_report(arguments, report, out);
    standard_error.finish();
    if (const int signal = signal_from_terminal(report)) {
        die_with_group_of(signal);
    }
    return report.status;
}

}  // namespace holdfast::cli
