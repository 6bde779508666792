"""One round of the sale: a strategy and a crowd, from a full store to the accounts."""

import subprocess
import sys
import time
from dataclasses import dataclass, field

from faults import Fault

PATH = "/redis/distributed/lock/inventory/sale/"
GLANCE = 0.04
#: The fastest strategies are done in a fifth of a second.
GLANCE_FOR_A_FAULT = 0.005
DEADLINE = 90


@dataclass(frozen=True)
class Load:
    buyers: int
    tries: int
    units: int

    @property
    def purchases(self):
        return self.buyers * self.tries


@dataclass
class Round:
    strategy: object
    load: Load
    #: From the store, after the round.
    sold: int = 0
    left: int = 0
    duplicates: int = 0
    #: From the buyers: seconds.
    latencies: list = field(default_factory=list)
    seconds: float = 0.0
    errors: int = 0
    failed: int = 0
    #: (seconds, orders, units left), as it went.
    course: list = field(default_factory=list)
    fault: str = ""
    #: For the order, of all Redis servers together; not known when one of them was down.
    redis_commands: float = 0.0

    @property
    def oversold(self):
        return max(0, self.sold - self.load.units)

    @property
    def rate(self):
        return self.sold / self.seconds if self.seconds else 0.0

    def percentile(self, share):
        if not self.latencies:
            return 0.0
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]

    @property
    def as_expected(self):
        if not self.strategy.exact:
            return self.oversold > 0
        twice = self.duplicates if self.strategy.idempotent else 0
        return self.sold == self.load.units and self.left == 0 and twice == 0

    @property
    def verdict(self):
        if self.oversold:
            return "OVERSOLD"
        if self.sold < self.load.units or self.left:
            return "UNITS LEFT"
        if self.strategy.idempotent and self.duplicates:
            return "SOLD TWICE"
        return "exact"


def read_purchases(file, into):
    last_sale = 0
    for line in file.read_text().splitlines():
        begin, took, end, failures = line.split()
        into.errors += int(failures)
        if end == "failed":
            continue
        into.latencies.append(int(took) / 1e6)
        if end == "sold":
            last_sale = max(last_sale, int(begin) + int(took))
    # Whoever is not in the list did not even get a refusal by the deadline.
    into.failed = into.load.purchases - len(into.latencies)
    into.latencies.sort()
    into.seconds = last_sale / 1e6


class Progress:
    """A line that is written over on a terminal, and not at all elsewhere."""

    def __init__(self, label):
        self.label, self.live = label, sys.stderr.isatty()

    def show(self, orders, units):
        if self.live:
            share = min(1.0, orders / units)
            bar = ("█" * int(share * 30)).ljust(30, "░")
            sys.stderr.write(f"\r{self.label} {bar} {orders:5d} of {units}")
            sys.stderr.flush()

    def clear(self):
        if self.live:
            sys.stderr.write("\r\033[K")


def play(market, strategy, load, tag, label, kind=None):
    """Fills the store, lets the crowd in, watches, and counts. The tag makes requests of this round
    different from all others."""
    stock = market.stock_of(strategy)
    stock.fill(load.units, strategy.segments)
    result = Round(strategy, load)
    fault = Fault(kind, market, strategy) if kind else None
    before = 0 if kind else market.redis_commands()
    output = market.directory / "purchases"
    command = [market.settings.binaries / "flash_sale_buyers", "--port", market.nginx.port,
               "--path", PATH + strategy.name, "--buyers", load.buyers, "--tries", load.tries,
               "--tag", tag, "--deadline", DEADLINE, "--output", output]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as crowd:
        if crowd.stdout.readline().strip() != "go":
            raise RuntimeError("the buyers did not get to the shop")
        watch(crowd, stock, result, fault, Progress(label))
        if crowd.wait() != 0:
            raise RuntimeError("the buyers gave up")
    if fault:
        result.fault = fault.finish()
    market.settle()
    if not kind:
        result.redis_commands = (market.redis_commands() - before) / load.purchases
    seen = stock.count()
    result.sold, result.left, result.duplicates = seen.orders, seen.units_left, seen.duplicates
    read_purchases(output, result)
    return result


def watch(crowd, stock, result, fault, progress):
    units = result.load.units
    opened = time.monotonic()
    share_sold = 0.0
    while crowd.poll() is None:
        try:
            seen = stock.glance()
            result.course.append((time.monotonic() - opened, seen.orders, seen.units_left))
            progress.show(seen.orders, units)
            share_sold = seen.orders / units
        except (OSError, RuntimeError):
            # Its server is down at the moment, which is what the fault is about.
            pass
        if fault:
            fault.advance(share_sold)
        try:
            crowd.wait(GLANCE_FOR_A_FAULT if fault else GLANCE)
        except subprocess.TimeoutExpired:
            pass
    progress.clear()
