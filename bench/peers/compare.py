#!/usr/bin/env python3
"""Measures holdfast beside other lock libraries for Redis. See README.md.

usage: compare.py [--quick] [--peers A,B] [--rows TEXT] [--rounds N] [--out DIRECTORY]
  --quick     one short round of every row: three minutes
  --peers     only these, and always holdfast and bare
  --rows      only rows with this text in their name
  --out       where results.json, the plots and index.html go (default: build/peers/results)
"""

import argparse
import json
import os
import pathlib
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import page

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "peers"
TICKS = os.sysconf("SC_CLK_TCK")


class Peer:
    """How to make and start a driver."""

    def __init__(self, name, tools, prepare, command):
        self.name, self.tools, self.prepare, self.command = name, tools, prepare, command
        self.directory = HERE / name
        self.version = ""


def go(name):
    return Peer(name, ["go"], [["go", "build", "-o", str(BUILD / name), "."]], [str(BUILD / name)])


RELEASE = ROOT / "build" / "release" / "bin"
PEERS = [
    Peer("holdfast", [], [], [str(RELEASE / "holdfast_peer_holdfast")]),
    Peer("bare", [], [], [str(RELEASE / "holdfast_peer_bare")]),
    Peer("redisson", ["mvn", "java"],
         [["mvn", "-q", "-B", "package", f"-Ddriver.output={BUILD / 'redisson'}"]],
         ["java", "-cp", f"{BUILD / 'redisson'}/driver.jar:{BUILD / 'redisson'}/lib/*", "Driver"]),
    go("redsync"),
    go("rueidislock"),
    Peer("rslock", ["cargo"],
         [["cargo", "build", "--release", "-q", "--target-dir", str(BUILD / "rslock")]],
         [str(BUILD / "rslock" / "release" / "rslock-driver")]),
    Peer("node_redlock", ["node", "npm"],
         [["npm", "install", "--prefix", str(BUILD / "node_redlock"), "--no-package-lock", "--silent"]],
         ["node", str(BUILD / "node_redlock" / "driver.js")]),
    Peer("redis_py", ["python3"],
         [["python3", "-m", "venv", str(BUILD / "redis_py")],
          [str(BUILD / "redis_py" / "bin" / "pip"), "install", "-q", "-r", "requirements.txt"]],
         [str(BUILD / "redis_py" / "bin" / "python"), str(HERE / "redis_py" / "driver.py")]),
]

# name, processes, tasks of each, mode, hold in µs
ROWS = [
    ("1 task, own lock", 1, 1, "own", 0),
    ("8 tasks, own locks", 1, 8, "own", 0),
    ("64 tasks, own locks", 1, 64, "own", 0),
    ("64 tasks, one lock", 1, 64, "one", 0),
    ("8 processes of 8 tasks, one lock", 8, 8, "one", 0),
    ("hand-over between two processes", 2, 1, "one", 1000),
]


def build(peer):
    """Makes a peer's driver; says why it cannot be had."""
    for tool in peer.tools:
        if not shutil.which(tool):
            return f"{tool} is not installed"
    source = peer.directory
    if peer.name == "node_redlock":
        # Modules are looked for beside the program.
        source = BUILD / peer.name
        source.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "driver.js"):
            shutil.copy(peer.directory / name, source / name)
    for command in peer.prepare:
        done = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            lines = done.stdout.strip().splitlines() or [f"{command[0]} failed"]
            return f"{' '.join(command[:2])}: {lines[-1][:200]}"
    return ""


class Server:
    """A Redis server of our own that saves nothing, in a session of its own, as servers have."""

    def __init__(self):
        with socket.socket() as probe:
            for port in range(21000, 32000):
                try:
                    probe.bind(("127.0.0.1", port))
                    break
                except OSError:
                    continue
        self.port = port
        self.directory = tempfile.TemporaryDirectory(prefix="holdfast-peers-")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
             "no", "--dir", self.directory.name], stdout=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 10
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", port), timeout=30)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        self.stream = self.connection.makefile("rb")

    def ask(self, *words):
        """One command whose answer is a line or a text."""
        self.connection.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in (w.encode() for w in words)))
        first = self.stream.readline().strip()
        return self.stream.read(int(first[1:]) + 2).decode() if first[:1] == b"$" else first.decode()

    def version(self):
        return next(line.split(":")[1] for line in self.ask("INFO", "server").split("\r\n")
                    if line.startswith("redis_version"))

    def commands(self):
        """How many so far, with those inside scripts, and without ours."""
        calls = 0
        for line in self.ask("INFO", "commandstats").split("\r\n"):
            name, _, rest = line.partition(":")
            if name.startswith("cmdstat_") and name not in ("cmdstat_info", "cmdstat_flushall"):
                calls += int(rest.split("calls=")[1].split(",")[0])
        return calls

    def processor_seconds(self):
        return processor_seconds(self.process.pid)

    def stop(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Driver:
    """A running driver."""

    def __init__(self, peer, port):
        self.peer, self.port = peer, port
        self.start()

    def start(self):
        peer, port = self.peer, self.port
        self.process = subprocess.Popen([*peer.command, str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ready":
            raise RuntimeError(f"{peer.name}: the driver does not start")
        peer.version = words[-1]

    def begin(self, **order):
        self.process.stdin.write(" ".join(f"{key}={value}" for key, value in order.items()) + "\n")
        self.process.stdin.flush()

    def finish(self, patience):
        """Whether it did what it was told. One that hangs is started again."""
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        if ready and self.process.stdout.readline().strip() == "done":
            return True
        print(f"{self.peer.name}: no answer in {patience:g} s; started again", file=sys.stderr)
        self.process.kill()
        self.process.wait()
        self.start()
        return False

    def processor_seconds(self):
        return processor_seconds(self.process.pid)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(drivers, server, row, seconds):
    """One round of one row by one peer."""
    _, processes, tasks, mode, hold = row
    server.ask("FLUSHALL")
    used = drivers[:processes]
    with tempfile.TemporaryDirectory(prefix="holdfast-peers-") as results:
        outs = [f"{results}/{number}" for number in range(processes)]
        clients = sum(driver.processor_seconds() for driver in used)
        its = server.processor_seconds()
        commands = server.commands()
        for driver, out in zip(used, outs):
            driver.begin(mode=mode, name=f"peer-{processes}-{tasks}", tasks=tasks, warm_ms=300,
                         ms=int(seconds * 1000), hold_us=hold, pairs=0, out=out)
        if not all([driver.finish(seconds + 20) for driver in used]):
            return None
        clients = sum(driver.processor_seconds() for driver in used) - clients
        its = server.processor_seconds() - its
        commands = server.commands() - commands
        pairs = []
        for process, out in enumerate(outs):
            with open(out, encoding="ascii") as lines:
                pairs += [(process, *map(int, line.split())) for line in lines]
    if not pairs:
        return None
    waits = sorted((got - asked) / 1000 for _, _, asked, got, _, _ in pairs)
    whole = sorted((done - asked) / 1000 for _, _, asked, _, _, done in pairs)
    # Processor time and commands are those of the warm-up as well.
    all_pairs = len(pairs) * (seconds + 0.3) / seconds
    served = len({(process, task) for process, task, *_ in pairs})
    result = {
        "pairs_per_second": len(pairs) / seconds,
        "wait_p50": percentile(waits, 0.5), "wait_p99": percentile(waits, 0.99), "wait_max": waits[-1],
        "pair_p50": percentile(whole, 0.5), "pair_p99": percentile(whole, 0.99),
        "starved": processes * tasks - served,
        "client_us": clients / all_pairs * 1e6, "server_us": its / all_pairs * 1e6,
        "commands": commands / all_pairs,
    }
    if hold:
        result["handover_p50"] = handover(pairs)
    return result


def handover(pairs):
    """From the release of one process to the grant of the other, which was waiting then."""
    order = sorted(pairs, key=lambda pair: pair[3])
    times = [(after[3] - before[4]) / 1000 for before, after in zip(order, order[1:])
             if before[0] != after[0] and after[2] < before[4] <= after[3]]
    return statistics.median(times) if times else None


def median_of(rounds):
    rounds = [one for one in rounds if one]
    if not rounds:
        return None
    result = {}
    for key in rounds[0]:
        values = [one[key] for one in rounds if one.get(key) is not None]
        if values:
            result[key] = statistics.median(values)
            if key == "pairs_per_second":
                result["spread"] = [min(values), max(values)]
    return result


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--peers", default="")
    arguments.add_argument("--rows", default="")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--out", default=str(BUILD / "results"))
    options = arguments.parse_args()
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, 2.0)
    wanted = options.peers.split(",") if options.peers else [peer.name for peer in PEERS]
    rows = [row for row in ROWS if options.rows in row[0]]

    left_out, peers = {}, []
    for peer in PEERS:
        if peer.name not in wanted and peer.name not in ("holdfast", "bare"):
            continue
        print(f"making {peer.name}", file=sys.stderr, flush=True)
        if reason := build(peer):
            left_out[peer.name] = reason
            print(f"without {peer.name}: {reason}", file=sys.stderr)
        else:
            peers.append(peer)

    server = Server()
    found = {row[0]: {peer.name: [] for peer in peers} for row in rows}
    running = {}
    try:
        most = max(row[1] for row in rows)
        for peer in peers:
            running[peer.name] = [Driver(peer, server.port)
                                  for _ in range(1 if peer.name == "bare" else most)]
        for turn in range(rounds):
            for row in rows:
                for peer in peers:
                    if peer.name == "bare" and row[3] == "one":
                        continue
                    print(f"round {turn + 1} of {rounds}: {row[0]}: {peer.name}", file=sys.stderr,
                          flush=True)
                    found[row[0]][peer.name].append(
                        measure(running[peer.name], server, row, seconds))
        report = {
            "redis": server.version(), "rounds": rounds, "seconds": seconds,
            "processors": os.cpu_count(),
            "versions": {peer.name: peer.version for peer in peers}, "left_out": left_out,
            "rows": {name: {peer: median_of(results) for peer, results in columns.items() if results}
                     for name, columns in found.items()},
        }
    finally:
        for drivers in running.values():
            for driver in drivers:
                driver.stop()
        server.stop()

    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    page.write(report, out)
    print(page.table(report))
    print(f"\nJSON, plots and page: {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
