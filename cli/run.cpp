#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <holdfast/engine.hpp>
#include <holdfast/error.hpp>
#include <system_error>

#include "background_writer.hpp"
#include "cancellation.hpp"
#include "child.hpp"
#include "commands.hpp"
#include "conclusion.hpp"
#include "duration.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "lock_wait.hpp"
#include "run_report.hpp"
#include "run_session.hpp"
#include "store.hpp"
#include "supervisor.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

/// One `holdfast run`, step by step.
class run_command {
public:
    run_command(const run_arguments& arguments, const messages& out, run_report& report)
        : run_{arguments, out, report},
          ending_{make_ending_terms(arguments.ttl, arguments.grace, arguments.max_hold)} {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }

    void execute() {
        using confirmation = conclusion::confirmation;
        try {
            acquire();
            if (run_.held && !ran_recently()) {
                run_under(*run_.held);
            }
        } catch (const std::system_error& error) {
            end_.give_back_unused(is_passing(error.code()) ? confirmation::not_awaited
                                                           : confirmation::awaited);
            throw;
        } catch (...) {
            end_.give_back_unused(confirmation::awaited);
            throw;
        }
        end_.give_back_unused(confirmation::awaited);
    }

private:
    void acquire() {
        cancellation_watch watch{run_.signals};
        wait_.take(watch.token());
        auto& report = run_.report;
        const auto& name = run_.arguments.name;
        report.waited = since(wait_.began());
        if (const int signal = watch.finish()) {
            // The lock may have been granted at the last moment.
            end_.give_back_unused(conclusion::confirmation::not_awaited);
            report.outcome = run_outcome::cancelled;
            report.status = status_of_signal(signal);
            report.message = fmt::format("stopped waiting for \"{}\"", name);
        } else if (!run_.held) {
            report.outcome = run_outcome::not_acquired;
            report.status = to_status(exit_code::not_acquired);
            report.message = wait_.describe_holders();
        } else {
            report.token = run_.held->token();
            report.owner = run_.held->owner();
        }
    }

    [[nodiscard]] bool ran_recently() {
        const auto& earlier = wait_.earlier_run();
        if (!earlier) {
            return false;
        }
        run_.report.outcome = run_outcome::skipped;
        run_.report.status = to_status(exit_code::success);
        run_.report.message = fmt::format(
            "\"{}\" already ran in the last {}, last by {}; next run in {}, now with --again",
            run_.arguments.name, format_duration(*run_.arguments.once_per), describe_holder(*earlier),
            format_duration(earlier->remaining));
        return true;
    }

    void run_under(lease& held) {
        held.check();
        const terminal tty;
        const auto started_at = clock::now();
        const auto environment = merge_environment(environment_for(held), withheld());
        supervisor watch{held, terms_of_supervision(), run_.signals, tty, run_.out};
        auto child = spawn({run_.arguments.command, environment, run_.signals, tty});
        if (child.exec_error != 0) {
            report_not_started(child.exec_error);
            return;
        }
        run_.report.command = watch.run(std::move(child));
        run_.report.held = since(run_.acquired_at);
        end_.conclude(started_at);
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
            "HOLDFAST_STORE=" +
                address_for_child(run_.arguments.store, *run_.store, run_.arguments.pass_store),
        };
    }

    /// The store's password is for this program. The command gets it only with `--pass-store`.
    [[nodiscard]] std::vector<std::string_view> withheld() const {
        return run_.arguments.pass_store == store_passing::without_password
                   ? std::vector<std::string_view>{"HOLDFAST_REDIS_USER", "HOLDFAST_REDIS_PASSWORD"}
                   : std::vector<std::string_view>{};
    }

    [[nodiscard]] supervision_terms terms_of_supervision() const {
        const auto end = run_.arguments.max_hold ? run_.acquired_at + *run_.arguments.max_hold
                                                 : clock::time_point::max();
        return {run_.arguments.on_lost, ending_, end, run_.arguments.max_hold.value_or(milliseconds{0}),
                [news = run_.news] { return news->renewal_trouble(); }};
    }

    void report_not_started(int error) {
        const bool missing = error == ENOENT || error == ENOTDIR;
        run_.report.outcome = run_outcome::not_started;
        run_.report.status = to_status(missing ? exit_code::not_found : exit_code::not_executable);
        run_.report.message = fmt::format("cannot execute \"{}\": {}", run_.arguments.command.front(),
                                          std::strerror(error));
    }

    run_session run_;
    const ending_terms ending_;
    lock_wait wait_{run_};
    conclusion end_{run_};
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
        const auto reason = describe_current_exception();
        if (!report.owner) {
            report.waited = since(began);
        }
        report.outcome = run_outcome::failed;
        report.status = to_status(reason.code);
        report.message = reason.message;
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
