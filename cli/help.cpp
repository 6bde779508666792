#include "help.hpp"

#include <array>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::string_view overview = R"(NAME
  holdfast - run commands under distributed locks, and look after the locks

SYNOPSIS
  holdfast run NAME [OPTIONS] -- COMMAND [ARGUMENT...]
  holdfast list [PREFIX]
  holdfast inspect NAME
  holdfast release NAME
  holdfast check [NAME]
  holdfast doctor
  holdfast version
  holdfast COMMAND --help

DESCRIPTION
  A lock has a name and lives in a store. Whoever holds it has a lease, which
  the program renews for as long as its command runs. If the lease cannot be
  renewed, the command is ended before the lease is, and only then can somebody
  else get the lock. LIMITS in holdfast run --help says what is not covered.

COMMANDS
  run       run a command while holding a lock
  list      show who holds what
  inspect   show everything about one lock
  release   take a lock away from its holder
  check     inside a command: do we still hold the lock?
  doctor    say what of the store's set-up endangers locks
  version   print the version

COMMON OPTIONS
  --store ADDRESS     where the locks are (default: HOLDFAST_STORE, or else
                      local:, the embedded store of this host and user);
                      several times: a quorum of these stores
  --require SCOPE     refuse a store that excludes less than fleet, host or
                      process (default: HOLDFAST_REQUIRE)
  -h, --help          help for a command

STORES
  local:              this host and user, in the user's state directory
  local:/path         this host, in that directory
  memory:             one process; for trying things out
  quorum:A B C        more than half of these stores together, as with
                      --store A --store B --store C

EXIT STATUS
   0   done                       75   the lock was not acquired
  64   wrong usage                76   the lock was lost
  69   the store is unreachable   77   not authorised
  70   something unexpected       78   bad configuration, or the store does
                                       not give a required guarantee
  holdfast run passes the command's own status on; see holdfast run --help.

ENVIRONMENT
  HOLDFAST_STORE      the store's address; the right place for one with a
                      password, since command lines can be read by everybody
  HOLDFAST_REQUIRE    as --require

EXAMPLES
  holdfast run nightly-backup -- ./backup.sh
  holdfast list
  holdfast inspect nightly-backup

SEE ALSO
  man holdfast
)";

constexpr std::string_view run_usage = R"(NAME
  holdfast run - run a command while holding a lock

SYNOPSIS
  holdfast run NAME [OPTIONS] -- COMMAND [ARGUMENT...]

DESCRIPTION
  Takes the lock NAME, runs COMMAND, gives the lock back, and exits with the
  command's exit status. COMMAND is executed directly, without a shell; write
  -- sh -c '...' for one. It has standard input, output and error, and the
  terminal, as if it had been called alone.

  While the command runs its lease is renewed. If that fails for too long, or
  the lock is taken away, the command and all its descendants are sent TERM,
  and KILL after a grace period: they are gone before the lease ends, and the
  exit status is 76.

  HUP, INT, QUIT, TERM, USR1, USR2, WINCH, TSTP and CONT are passed on to the
  command. While waiting for the lock HUP, INT, QUIT and TERM end the wait.

WAITING
  --no-wait           give up at once (75) when somebody else holds the lock
  --wait DURATION     give up after that long (default: wait without limit)

WHAT TO TAKE
  --shared            together with others that ask for --shared
  --permits N         one of N permits; all users of NAME must agree on N

HOW LONG TO HOLD
  --ttl DURATION      how long the store keeps the lock if it hears nothing
                      from us, that is, if this host dies (default: 30s)
  --max-hold DURATION end the command before it has held the lock that long
  --min-hold DURATION keep the lock taken at least that long, even if the
                      command ends sooner; the program does not wait for it
  --once-per DURATION skip (exit 0) if a successful run started less than
                      that long ago; a tenth less, as schedulers are not exact

WHEN THE LOCK IS LOST
  --on-lost term      TERM, then KILL after the grace period (default)
  --on-lost kill      KILL only, at the last moment
  --on-lost ignore    warn, let the command go on, pass its exit status on
  --grace DURATION    time between TERM and KILL (default: a quarter of the
                      ttl, at most 10s; must fit into less than half of it)

OTHER OPTIONS
  --store ADDRESS     where the lock is (default: HOLDFAST_STORE, or local:);
                      several times: a quorum of these stores
  --require SCOPE     fleet, host or process: refuse (78) a store whose locks
                      exclude less (default: HOLDFAST_REQUIRE)
  --pass-store        give the command the store's password, too
  --label TEXT        shown to whoever asks who holds the lock
  --json              the outcome as one JSON object, the last line on
                      standard error; standard output is the command's alone
  -v, --verbose       say what happens
  -q, --quiet         say nothing about normal outcomes (busy, skipped)

  Durations are 250ms, 30s, 15m, 2h, 1d, or sums like 1h30m.

EXIT STATUS
  The command's own, 128+n if signal n ended it, or:
  64 wrong usage   69 store unreachable   70 something unexpected
  75 not acquired  76 lost  77 not authorised  78 bad configuration
  126 the command cannot be executed  127 it was not found
  128+n signal n ended the wait for the lock
  A command may use these numbers, too; --json tells them apart.

ENVIRONMENT OF THE COMMAND
  HOLDFAST_NAME       the lock
  HOLDFAST_TOKEN      the fencing token: larger for every later holder
  HOLDFAST_OWNER      who holds it
  HOLDFAST_DEADLINE   until when the lease was good when the command started,
                      in ms since 1970; renewals move it on, so ask
                      holdfast check later
  HOLDFAST_STORE      the store's address, for holdfast check, without its
                      password. Where there is one, holdfast in the command
                      needs --pass-store out here, or password_file=FILE in
                      the address. HOLDFAST_REDIS_USER and
                      HOLDFAST_REDIS_PASSWORD are not passed on either.

OUTPUT
  Nothing waits for whoever reads standard error: not the end of the command,
  not the release of the lock. What is not read within two seconds of the end
  is lost.

LIMITS
  If this program is killed with KILL, the kernel kills the command too, but
  not what the command started; the lock is free when the ttl is over, and at
  once in a local: store. A program that is stopped (STOP) cannot end its
  command in time; it does so first thing when it goes on.

EXAMPLES
  On ten hosts, from cron; one of them does it, the others skip:
    */15 * * * * holdfast run rollup --once-per 15m --max-hold 14m -- rollup
  At most three downloads at a time:
    holdfast run download --permits 3 -- curl -O https://example.org/file
  In the command, before a step that cannot be undone:
    holdfast check || exit 1
)";

constexpr std::string_view list_usage = R"(NAME
  holdfast list - show who holds what

SYNOPSIS
  holdfast list [PREFIX] [--store ADDRESS] [--json]

DESCRIPTION
  One line for every holder of every lock whose name starts with PREFIX.

  NAME      the lock
  MODE      exclusive, shared, or permit TAKEN/LIMIT
  HOLDER    host:pid program
  SINCE     when it was taken
  TTL-LEFT  how long it lasts if it is not renewed any more
  TOKEN     its fencing token, or their range
  WAITERS   how many wait for it, if the store counts them
  STATUS    alive, dead or unknown (is the holder's process there?), or
            lingering (given up, but kept on purpose for TTL-LEFT)

OPTIONS
  --store ADDRESS     where the locks are (default: HOLDFAST_STORE, or local:);
                      several times: a quorum of these stores
  --require SCOPE     refuse a store that excludes less (fleet, host, process)
  --json              one JSON object with store and locks

EXIT STATUS
  0 also if nothing is held; 64, 69, 70, 77, 78 as in holdfast --help.

EXAMPLES
  holdfast list
  holdfast list billing: --json | jq -r '.locks[].name'
)";

constexpr std::string_view inspect_usage = R"(NAME
  holdfast inspect - show everything about one lock

SYNOPSIS
  holdfast inspect NAME [--store ADDRESS] [--json]

DESCRIPTION
  Shows whom the store excludes, every holder with its process, owner and
  token, how soon others get the lock should the holder die, and the last
  time the lock was taken away by hand.

OPTIONS
  --store ADDRESS     where the lock is (default: HOLDFAST_STORE, or local:);
                      several times: a quorum of these stores
  --require SCOPE     refuse a store that excludes less (fleet, host, process)
  --json              one JSON object

EXIT STATUS
  0, also if the lock is free; 64, 69, 70, 77, 78 as in holdfast --help.

EXAMPLES
  holdfast inspect nightly-backup
)";

constexpr std::string_view release_usage = R"(NAME
  holdfast release - take a lock away from its holder

SYNOPSIS
  holdfast release NAME [OPTIONS]

DESCRIPTION
  Shows the holder and takes the lock from it: from that holder only. If the
  lock changes hands in between, the new holder keeps it.

  A holder that still runs is told that it lost the lock (holdfast run then
  ends its command), but it may need a moment: what it writes in that moment
  is only kept out by its fencing token. So a holder not known to be dead is
  asked about on the terminal, and needs --force without one.

OPTIONS
  --force             do not ask
  --reason TEXT       why; holdfast inspect shows it afterwards
  --owner OWNER       which holder, if there are several
  --token N           only if that is (still) the first token of the holder
  --store ADDRESS     where the lock is (default: HOLDFAST_STORE, or local:);
                      several times: a quorum of these stores
  --require SCOPE     refuse a store that excludes less (fleet, host, process)
  --json              the outcome as one JSON object

EXIT STATUS
  0 released; 75 it was free, changed hands, or you did not say yes;
  64, 69, 70, 77, 78 as in holdfast --help.

EXAMPLES
  holdfast release nightly-backup --reason 'host web7 is on fire'
)";

constexpr std::string_view doctor_usage = R"(NAME
  holdfast doctor - say what of the store's set-up endangers locks

SYNOPSIS
  holdfast doctor [--store ADDRESS]... [--json]

DESCRIPTION
  Asks the store, or every member of a quorum, how it is set up: whether it
  may evict or forget a lock that is held, since when it has been up, whether
  two members are one. Changes nothing.

OPTIONS
  --store ADDRESS     where the locks are; several times: a quorum
  --json              one object with all findings
  -h, --help          this text

EXIT STATUS
  0   nothing endangers locks
 78   something does, and is marked WARNING
 69   the store is unreachable

EXAMPLES
  holdfast doctor --store redis://10.0.0.5
)";

constexpr std::string_view check_usage = R"(NAME
  holdfast check - do we still hold the lock?

SYNOPSIS
  holdfast check [NAME] [--token N] [--owner OWNER]

DESCRIPTION
  Asks the store whether the lock is still held by that owner with that token.
  Inside a command started by holdfast run nothing needs to be given: name,
  token, owner and store are in the environment.

  The answer is true when it is given, not a moment later. Where that is not
  good enough, pass HOLDFAST_TOKEN to whatever you write to, and let it refuse
  tokens smaller than the largest it has seen.

OPTIONS
  --token N           the fencing token (default: HOLDFAST_TOKEN)
  --owner OWNER       the owner (default: HOLDFAST_OWNER)
  --store ADDRESS     where the lock is (default: HOLDFAST_STORE, or local:);
                      several times: a quorum of these stores
  --require SCOPE     refuse a store that excludes less (fleet, host, process)
  -q, --quiet         only the exit status
  -v, --verbose       also say so if it is held

EXIT STATUS
  0 still held; 76 no longer; 69 the store is unreachable, so nobody knows;
  64, 70, 77, 78 as in holdfast --help.

EXAMPLES
  holdfast check || exit 1
)";

constexpr std::string_view version_usage = R"(NAME
  holdfast version - print the version

SYNOPSIS
  holdfast version
)";

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> texts{{
    {"", overview},
    {"run", run_usage},
    {"list", list_usage},
    {"inspect", inspect_usage},
    {"release", release_usage},
    {"check", check_usage},
    {"doctor", doctor_usage},
    {"version", version_usage},
}};

}  // namespace

std::string_view help_text(std::string_view command) noexcept {
    for (const auto& [name, text] : texts) {
        if (name == command) {
            return text;
        }
    }
    return {};
}

}  // namespace holdfast::cli
