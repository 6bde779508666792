#include "command_table.hpp"

#include <algorithm>
#include <array>

namespace holdfast::cli {

namespace {

constexpr std::string_view all_commands = "run list inspect release check doctor";
constexpr std::string_view other_commands = "list inspect release check doctor";
constexpr std::string_view periods = "1s 30s 5m 15m 1h 1d";

constexpr std::array options{
    option_entry{"--no-wait", "", "", "run", "WAITING",
                 "give up at once when somebody else holds the lock; with 75"},
    option_entry{"--wait", "", "DURATION", "run", "WAITING",
                 "give up after that long, counted from the start; with 75, or with 69 if the store "
                 "could not be "
                 "reached until then (default: wait without limit)",
                 "", periods},

    option_entry{"--shared", "", "", "run", "WHAT TO TAKE",
                 "hold the lock together with others that ask for --shared"},
    option_entry{
        "--permits", "", "N", "run", "WHAT TO TAKE",
        "take one of N permits; all users of NAME must agree on N (1 to 1000000), and use it for "
        "permits only"},

    option_entry{"--ttl", "", "DURATION", "run", "HOW LONG TO HOLD",
                 "how long the store keeps the lock if it hears nothing from us; that is, if this host "
                 "dies (default: 30s)",
                 "", "30s 1m 5m"},
    option_entry{
        "--max-hold", "", "DURATION", "run", "HOW LONG TO HOLD",
        "end the command before it has held the lock that long; TERM comes the grace period and "
        "a little more (a tenth of the ttl, a quarter of --max-hold or 1s, whichever is least) before, "
        "so that the command is gone in time",
        "", periods},
    option_entry{"--min-hold", "", "DURATION", "run", "HOW LONG TO HOLD",
                 "keep the lock taken at least that long; even if the command ends sooner. The program "
                 "does not wait for it",
                 "", periods},
    option_entry{"--once-per", "", "DURATION", "run", "HOW LONG TO HOLD",
                 "skip the command after a recent success; exits with 0 without running it if a "
                 "successful run started less than 90 % of that time ago (a tenth is left for "
                 "schedulers that are not exact). holdfast inspect NAME shows what it waits for",
                 "", "15m 1h 1d"},
    option_entry{"--again", "", "", "run", "HOW LONG TO HOLD",
                 "run although --once-per would skip; a success starts the period anew"},

    option_entry{"--on-lost", "", "ACTION", "run", "WHEN THE LOCK IS LOST",
                 "what happens to the command when the lock is lost; term: TERM, then KILL after the "
                 "grace period (default). kill: KILL only, at the last moment. ignore: warn, let the "
                 "command go on, pass its exit status on",
                 "term kill ignore"},
    option_entry{"--grace", "", "DURATION", "run", "WHEN THE LOCK IS LOST",
                 "time between TERM and KILL (default: a quarter of the ttl or of --max-hold, at most "
                 "10s; it must fit into less than half of the ttl)",
                 "", "1s 5s 10s"},

    option_entry{"--pass-store", "", "", "run", "OTHER OPTIONS",
                 "give the command the store's password, too; in HOLDFAST_STORE, HOLDFAST_REDIS_USER "
                 "and HOLDFAST_REDIS_PASSWORD. Everything that the command starts gets it as well"},
    option_entry{"--label", "", "TEXT", "run", "OTHER OPTIONS",
                 "words of your own, shown to whoever asks who holds the lock"},
    option_entry{"--json", "", "", "run", "OTHER OPTIONS",
                 "the outcome as one JSON object; the last line on standard error, as standard output "
                 "is the command's alone"},

    option_entry{"--force", "", "", "release", "", "do not ask"},
    option_entry{"--reason", "", "TEXT", "release", "",
                 "why the lock is taken away; its holder is told, and holdfast inspect shows it"},
    option_entry{"--owner", "", "OWNER", "release", "", "which holder, if there are several"},
    option_entry{"--token", "", "N", "release", "",
                 "only if that is still the first token of the holder"},
    option_entry{"--token", "", "N", "check", "", "the fencing token (default: HOLDFAST_TOKEN)"},
    option_entry{"--owner", "", "OWNER", "check", "", "the owner (default: HOLDFAST_OWNER)"},
    option_entry{"--json", "", "", other_commands, "",
                 "one JSON object on standard output; also when the command fails"},
    option_entry{"--timeout", "", "DURATION", other_commands, "",
                 "give up after that long; with 69 (default: 2s for each request to the store)", "",
                 "1s 5s 30s"},

    option_entry{"--verbose", "-v", "", "run", "OTHER OPTIONS", "say what happens"},
    option_entry{"--quiet", "-q", "", "run", "OTHER OPTIONS",
                 "say nothing about normal outcomes (busy, skipped, cancelled)"},
    option_entry{"--verbose", "-v", "", "check", "", "also say so if the lock is held"},
    option_entry{"--quiet", "-q", "", "check", "", "only the exit status"},

    option_entry{"--store", "", "ADDRESS", all_commands, "COMMON OPTIONS",
                 "where the locks are; see STORES in holdfast --help (default: HOLDFAST_STORE, or else "
                 "local:). Several times: a quorum of these stores",
                 "", "", true},
    option_entry{"--require", "", "SCOPE", all_commands, "COMMON OPTIONS",
                 "refuse a store that excludes less than fleet, host or process; with 78 (default: "
                 "HOLDFAST_REQUIRE)",
                 "fleet host process"},
    option_entry{"--help", "-h", "", all_commands, "COMMON OPTIONS", "show help"},
};

constexpr std::array stores{
    store_entry{"local:",
                "this host and user, in the user's state directory; locks of processes that died are "
                "free at once"},
    store_entry{"local:/PATH", "this host, in that directory"},
    store_entry{"memory:", "one process; for trying things out"},
    store_entry{"redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]",
                "every host that uses this Redis or Valkey server"},
    store_entry{"rediss://...", "the same, with TLS"},
    store_entry{"redis+unix:///PATH", "a Redis server on this host, by its socket"},
    store_entry{"redis+sentinel://HOST[:PORT],HOST[:PORT].../SERVICE",
                "the master that these sentinels name"},
    store_entry{"rediss+sentinel://...", "the same, with TLS"},
    store_entry{"redis+cluster://HOST[:PORT],HOST[:PORT]...", "a Redis cluster, by some of its nodes"},
    store_entry{"rediss+cluster://...", "the same, with TLS"},
    store_entry{"quorum:[?OPTION=VALUE&...] A B C",
                "more than half of these stores together, as with --store A --store B --store C. "
                "Options: member_timeout, drift, restart_grace. There are no permits on a quorum"},
};

constexpr std::array exits{
    exit_entry{exit_code::success, "done; for run: also when --once-per skipped the command"},
    exit_entry{exit_code::usage, "wrong usage"},
    exit_entry{exit_code::unavailable, "the store is unreachable, or did not answer in time"},
    exit_entry{exit_code::internal, "something unexpected happened"},
    exit_entry{exit_code::resources, "this host has too few file descriptors, processes or memory"},
    exit_entry{exit_code::store_error,
               "the store is damaged, was deleted while in use, or answered with an error"},
    exit_entry{exit_code::output, "standard output could not be written (a full disk)"},
    exit_entry{exit_code::not_acquired,
               "the lock was not acquired; for release: nothing was taken away"},
    exit_entry{exit_code::lost, "the lock was lost; for check: it is not held any more"},
    exit_entry{exit_code::unauthorised, "not authorised"},
    exit_entry{exit_code::configuration,
               "bad configuration, also in an environment variable, or the store does not give a "
               "required guarantee"},
    exit_entry{exit_code::not_executable, "for run: the command cannot be executed"},
    exit_entry{exit_code::not_found, "for run: the command was not found"},
};

constexpr std::array overview_sections{
    section{"ENVIRONMENT",
            R"(- HOLDFAST_STORE | the store's address; the right place for one with a password,
since command lines can be read by everybody. Set but empty, it is refused.
- HOLDFAST_REDIS_USER, HOLDFAST_REDIS_PASSWORD | for an address without them
- HOLDFAST_REQUIRE | as --require)"},
};

constexpr std::array run_sections{
    section{"DURATIONS",
            R"(250ms, 30s, 15m, 2h, 1d, or sums like 1h30m; at most 366d. A number without a unit is
refused.)"},
    section{"ENVIRONMENT OF THE COMMAND",
            R"(- HOLDFAST_NAME | the lock
- HOLDFAST_TOKEN | the fencing token: larger for every later holder
- HOLDFAST_OWNER | who holds it
- HOLDFAST_OWNERS | the same of all runs around the command, so that none waits for itself
- HOLDFAST_DEADLINE | until when the lease was good when the command started, in ms since 1970;
renewals move it on, so ask holdfast check later
- HOLDFAST_STORE | the store's address, for holdfast check, without its password. Where there is
one, holdfast in the command needs --pass-store out here, or password_file=FILE in the address.
HOLDFAST_REDIS_USER and HOLDFAST_REDIS_PASSWORD are not passed on either.)"},
    section{"OUTPUT",
            R"(Nothing waits for whoever reads standard error: not the end of the command, not the
release of the lock. What is not read within two seconds of the end is lost.)"},
    section{"WHEN THE STORE IS GONE AT THE END",
            R"(The command's status stays the program's. A store that cannot be reached is not waited
for, one that hangs for a second. A line on standard error, also with --quiet, and release_error with
--json say that the lock could not be released, why, and when it ends by itself. A permission that is
missing by then is named.

The same holds for what --once-per leaves in the store: if that fails, the command may run again
sooner than asked for. marker with --json is then missing or unknown.)"},
    section{"LIMITS",
            R"(If this program is killed with KILL, the command and its process group are killed, too,
but not what left that group (setsid, jobs of interactive shells); the lock is free when the ttl is
over, and at once in a local: store. A second process of holdfast in that group does this. A program
that is stopped (STOP) cannot end its command in time; it does so first thing when it goes on.

Ctrl-Z stops the command and holdfast together, and with them the renewals; a command whose lease
ended meanwhile is killed rather than continued. A command that gets more rights than holdfast has,
like sudo, survives both the death of holdfast and its signals.

Where that is not good enough, pass HOLDFAST_TOKEN along with everything that is written, and refuse
tokens smaller than the largest seen.)"},
};

constexpr std::array list_sections{
    section{"COLUMNS",
            R"(- NAME | the lock
- MODE | exclusive, shared, or permit TAKEN/LIMIT
- HOLDER | host:pid program "label"
- SINCE | when it was taken
- TTL-LEFT | how long it lasts if it is not renewed any more
- TOKEN | its fencing token, or their range
- WAITERS | how many wait for it, if the store counts them
- STATUS | alive, dead or unknown (is the holder's process there?), or lingering (given up, but kept
on purpose for TTL-LEFT))"},
};

constexpr std::array commands{
    command_entry{
        "", "run commands under distributed locks, and look after the locks", "COMMAND --help",
        R"(A lock has a name and lives in a store. Whoever holds it has a lease, which the program
renews for as long as its command runs. If the lease cannot be renewed, the command is ended before
the lease is, and only then can somebody else get the lock. LIMITS in holdfast run --help says what
is not covered.

A name is UTF-8 text without control characters; spaces are allowed.)",
        R"(holdfast run passes the command's own status on; see holdfast run --help.)",
        R"(    holdfast run nightly-backup -- ./backup.sh
    holdfast list
    holdfast inspect nightly-backup)",
        overview_sections},
    command_entry{
        "run", "run a command while holding a lock", "NAME [OPTIONS] -- COMMAND [ARGUMENT...]",
        R"(Takes the lock NAME, runs COMMAND, gives the lock back, and exits with the command's exit
status. COMMAND is executed directly, without a shell; write -- sh -c '...' for one. It has standard
input, output and error, and the terminal, as if it had been called alone.

While the command runs its lease is renewed. If that fails for too long, or the lock is taken away,
the command and all its descendants are sent TERM, and KILL after a grace period: they are gone
before the lease ends, and the exit status is 76.

HUP, INT, QUIT, TERM, USR1, USR2, WINCH, TSTP and CONT are passed on to the process group of the
command. While waiting for the lock HUP, INT, QUIT and TERM end the wait. A signal that was ignored
when holdfast was started, as by nohup, stays ignored.)",
        R"(The command's own, 128+n if signal n ended the command or the wait for the lock, or one
of those below. A command may use these numbers, too; --json tells them apart.)",
        R"(On ten hosts, from cron; one of them does it, the others skip:

    */15 * * * * holdfast run rollup --once-per 15m --max-hold 14m -- rollup

Do it once more, although it was done a minute ago:

    holdfast run rollup --once-per 15m --again -- rollup

At most three downloads at a time:

    holdfast run download --permits 3 -- curl -O https://example.org/file

In the command, before a step that cannot be undone:

    holdfast check || exit 1)",
        run_sections},
    command_entry{"list", "show who holds what", "[PREFIX] [OPTIONS]",
                  R"(One line for every holder of every lock whose name starts with PREFIX. If the
list cannot be completed (a server of a cluster is silent, or --timeout is over), what was found is
shown, and standard error says what is missing.)",
                  R"(0 also if nothing is held; 69 also if the list is not complete; 64, 70, 71, 72, 77,
78 as in holdfast --help.)",
                  R"(    holdfast list
    holdfast list billing: --json | jq -r '.locks[].name')",
                  list_sections},
    command_entry{
        "inspect", "show everything about one lock", "NAME [OPTIONS]",
        R"(Shows whom the store excludes, every holder with its process, label, owner and token, how
soon others get the lock should the holder die, until when --once-per keeps the command from running
and who ran it last, and the last time the lock was taken away by hand.

A name that nobody holds is free, or says what it is in use as: on Redis the name of a semaphore (run
--permits) or of a latch stays one.)",
        R"(0, also if nobody holds it; 78 also if the name is that of something else, which no
lock can have; 64, 69, 70, 71, 72, 77 as in holdfast --help.)",
        R"(    holdfast inspect nightly-backup)"},
    command_entry{
        "release", "take a lock away from its holder", "NAME [OPTIONS]",
        R"(Shows the holder and takes the lock from it: from that holder only. If the lock changes
hands in between, the new holder keeps it.

A holder that still runs is told that it lost the lock (holdfast run then ends its command), but it
may need a moment: what it writes in that moment is only kept out by its fencing token. So a holder
not known to be dead is asked about on the terminal, and needs --force without one.)",
        R"(0 released; 75 nothing was taken away: it was free, changed hands, you did not say yes,
or nobody could be asked; 64, 69, 70, 71, 72, 77, 78 as in holdfast --help.)",
        R"(    holdfast release nightly-backup --reason 'host web7 is on fire')"},
    command_entry{
        "check", "inside a command: do we still hold the lock?", "[NAME] [OPTIONS]",
        R"(Asks the store whether the lock is still held by that owner with that token. Inside a
command started by holdfast run nothing needs to be given: name, token, owner and store are in the
environment.

The answer is true when it is given, not a moment later. Where that is not good enough, pass
HOLDFAST_TOKEN to whatever you write to, and let it refuse tokens smaller than the largest it has
seen.)",
        R"(0 still held; 76 no longer; 69 the store is unreachable, so nobody knows; 64, 70, 71, 72, 77,
78 as in holdfast --help.)",
        R"(    holdfast check || exit 1)"},
    command_entry{
        "doctor", "say what of the store's set-up endangers locks", "[OPTIONS]",
        R"(Asks the store, or every member of a quorum, how it is set up: whether it may evict or
forget a lock that is held, since when it has been up, whether two members are one, whether its user
lacks a permission, whether a cluster serves all its slots and none is left in the middle of a move,
whether sentinels answer and can agree on a new master.
Changes nothing. ADVICE could be better and does not count; UNKNOWN could not be looked at.)",
        R"(0 nothing endangers locks; 78 something does, and is marked WARNING; 77 also if the user
lacks a permission without which the store cannot be opened, which is named; 64, 69, 70, 71, 72 as
in holdfast --help.)",
        R"(    holdfast doctor --store redis://10.0.0.5)"},
    command_entry{"version", "print the version", "", "", "", ""},
};

constexpr std::array manual{
    section{"LOSS OF A LOCK",
            R"(A lease is lost when it could not be renewed in time, when somebody took the lock
away (holdfast release), or when --max-hold is reached.

If renewals fail, TERM is sent when the grace period and a little more are left of the lease, and
KILL when the grace period is over. The command and all its descendants, also those that left its
process group or session, are gone and reaped before the lease ends. If the lock was taken away,
TERM is sent at once.)"},
    section{"JSON OUTPUT",
            R"(With --json every command writes one object, also when it fails: run as the last line
on standard error, the others on standard output, with a line for people on standard error unless
the exit status is 0. status is the exit status. After a failure error is one of usage,
unavailable, internal, resources, store_error, output, not_acquired, lost, unauthorised,
configuration, not_executable and not_found, and message says more. The outcome of run is one of
completed, skipped, not_acquired, cancelled, not_started, lost and failed, whatever exit status the
command chose. Keys that end in _ms are milliseconds, as durations or since 1970. docs/json.md
lists all fields; later versions only add to them.)"},
};

}  // namespace

std::span<const command_entry> command_entries() noexcept {
    return commands;
}

std::span<const option_entry> option_entries() noexcept {
    return options;
}

std::span<const store_entry> store_entries() noexcept {
    return stores;
}

std::span<const exit_entry> exit_entries() noexcept {
    return exits;
}

std::span<const section> manual_sections() noexcept {
    return manual;
}

const command_entry* find_command(std::string_view name) noexcept {
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const command_entry& one) { return one.name == name; });
    return found == commands.end() ? nullptr : &*found;
}

const option_entry* find_option(std::string_view command, std::string_view name) noexcept {
    const auto found = std::find_if(options.begin(), options.end(), [&](const option_entry& one) {
        return one.name == name && takes(command, one);
    });
    return found == options.end() ? nullptr : &*found;
}

bool takes(std::string_view command, const option_entry& option) noexcept {
    return contains_word(option.commands, command);
}

bool contains_word(std::string_view list, std::string_view word) noexcept {
    while (!list.empty()) {
        const auto end = std::min(list.find(' '), list.size());
        if (list.substr(0, end) == word) {
            return true;
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

}  // namespace holdfast::cli
