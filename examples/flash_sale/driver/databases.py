"""Database servers for the stock. Their own command lines are the way to ask them, because Python has
no module for either without installing more."""

import os
import pwd
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from servers import PATIENCE, Process, free_port

#: Beside the instances' connections: ours, and some that are about to end.
MORE_CONNECTIONS = 20


class Console:
    """A command line that stays open. Answers are rows of one line, columns divided by a tab."""

    def __init__(self, command, log):
        self.log, self.rest = log, b""
        with open(log, "ab") as errors:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=errors)

    def ask(self, *statements):
        """The columns of the one row that the last statement answers; the others answer nothing."""
        self.child.stdin.write("".join(f"{one};\n" for one in statements).encode())
        self.child.stdin.flush()
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            if not select.select([self.child.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                raise RuntimeError(f"no answer in {PATIENCE:.0f} s: {statements[-1]}")
            more = os.read(self.child.stdout.fileno(), 65536)
            if not more:
                raise RuntimeError(f"the console ended:\n{self.log.read_text()[-2000:]}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode().split("\t")

    def close(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()


class Database(Process):
    """A server with its files in the sale's directory, made when it is started for the first time."""

    package = ""
    #: Said to the server once, when it runs for the first time.
    first_words = ()

    def __init__(self, name, directory, connections):
        self.port, self.files = free_port(), directory / name
        self.connections = connections + MORE_CONNECTIONS
        self.console = None
        super().__init__(name, self.server_command(), directory)

    def program(self, name, elsewhere=()):
        places = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", *map(str, elsewhere)]
        found = shutil.which(name, path=os.pathsep.join(places))
        if not found:
            raise SystemExit(f"{name} is not installed (Debian: {self.package})")
        return found

    def start(self):
        if not self.files.exists():
            self.make_files()
        super().start()
        self.console = Console(self.console_command(), self.log)
        self.ask(*self.first_words, "SELECT 1")

    def run(self, command):
        with open(self.log, "ab") as log:
            done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                  cwd=self.directory, check=False, **self.identity)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{self.log.read_text()[-2000:]}")

    def ready(self):
        asked = subprocess.run(self.console_command(), input=b"SELECT 1;\n", check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return asked.returncode == 0

    def ask(self, *statements):
        return self.console.ask(*statements)

    def stop(self, number=signal.SIGTERM, patience=PATIENCE):
        if self.console:
            self.console.close()
            self.console = None
        super().stop(number, patience)


class MariaDb(Database):
    package = "mariadb-server"
    first_words = ("CREATE DATABASE IF NOT EXISTS sale", "USE sale")

    def options(self):
        # The server refuses to be root unless that is asked for by name. Without synchronisation it
        # survives the end of the process, not that of the machine: the same as SQLite here.
        return ["--no-defaults", f"--user={pwd.getpwuid(os.geteuid()).pw_name}",
                f"--datadir={self.files}", "--skip-name-resolve", "--innodb-flush-method=nosync",
                "--skip-sync-frm", "--innodb-flush-log-at-trx-commit=2"]

    def server_command(self):
        return [self.program("mariadbd"), *self.options(), f"--port={self.port}",
                "--bind-address=127.0.0.1", f"--socket={self.files}.sock",
                f"--pid-file={self.files}.pid", f"--max-connections={self.connections}",
                "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
                "--performance-schema=OFF"]

    def make_files(self):
        self.run([self.program("mariadb-install-db"), *self.options(), "--skip-test-db",
                  "--auth-root-authentication-method=normal"])

    def console_command(self):
        return [self.program("mariadb"), "--no-defaults", "--batch", "--skip-column-names",
                "--unbuffered", "--host=127.0.0.1", f"--port={self.port}", "--user=root"]

    @property
    def address(self):
        return f"mariadb://root@127.0.0.1:{self.port}/sale"


class PostgreSql(Database):
    package = "postgresql"

    def __init__(self, name, directory, connections):
        super().__init__(name, directory, connections)
        if os.geteuid() == 0:
            # It refuses to be root, and must get to its files below a directory of root's.
            self.identity = {"user": "postgres", "group": "postgres", "extra_groups": []}
            directory.chmod(0o711)

    def program(self, name, elsewhere=()):
        # Debian keeps those of each version out of the way.
        return super().program(name, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))

    def server_command(self):
        # Without fsync it survives the end of the process, not that of the machine: as SQLite here.
        settings = {"listen_addresses": "127.0.0.1", "max_connections": self.connections,
                    "fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [self.program("postgres"), "-D", self.files, "-p", self.port, "-k", "", *words]

    def make_files(self):
        self.files.mkdir()
        if self.identity:
            shutil.chown(self.files, self.identity["user"], self.identity["group"])
        self.run([self.program("initdb"), "-D", self.files, "-U", "postgres", "-A", "trust",
                  "--no-sync", "--locale=C", "-E", "UTF8"])

    def console_command(self):
        return [self.program("psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "postgres"]

    def stop(self, number=signal.SIGINT, patience=PATIENCE):
        # The fast stop, which does not wait for its clients.
        super().stop(number, patience)

    @property
    def address(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


KINDS = {"mariadb": MariaDb, "postgresql": PostgreSql}
