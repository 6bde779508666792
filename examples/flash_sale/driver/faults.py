"""Bad luck on demand. Each fault strikes once in a sale, when a random share of the stock is sold, and
is over by itself; the accounting afterwards is the same as without.

A fault is a generator that says how many seconds it wants to be left alone: no thread of its own,
because servers are tied to the thread that started them."""

import random
import signal
import time

from servers import PATIENCE

KINDS = ["kill-instance", "stop-holder", "kill-redis", "failover"]


class Fault:
    def __init__(self, kind, market, strategy):
        self.market, self.strategy = market, strategy
        self.steps = getattr(self, kind.replace("-", "_"))()
        self.share = random.uniform(0.1, 0.6)
        self.due = None
        self.told = ""
        self.sale_is_over = False

    def advance(self, share_sold):
        """Called again and again while the sale goes on. Whether there is more to come."""
        if self.due is None and share_sold < self.share:
            return True
        if self.due is not None and time.monotonic() < self.due:
            return True
        pause = next(self.steps, None)
        self.due = time.monotonic() + (pause or 0.0)
        return pause is not None

    def finish(self):
        """The sale is over. Makes everything run again, and tells what happened: a fault that the sale
        was too fast for has shown nothing."""
        if self.due is None:
            return "no fault: it came too late"
        in_time = bool(self.told)
        self.sale_is_over = True
        while self.advance(1.0):
            time.sleep(0.01)
        return self.told if in_time else f"{self.told}, too late"

    def until(self, what, condition, patience=PATIENCE):
        end = time.monotonic() + patience
        while not holds(condition):
            if time.monotonic() > end:
                said = "".join(f"\n{one.name}:\n{one.log.read_text()[-1500:]}"
                               for one in self.market.sentinels)
                raise RuntimeError(f"waited {patience:.0f} s in vain: {what}{said}")
            yield 0.02

    def kill_instance(self):
        victim = random.choice(self.market.instances)
        self.told = f"instance {victim.port} killed, back after 0.5 s"
        victim.kill()
        yield 0.5
        victim.start()

    def stop_holder(self):
        """Where everybody needs one lock, the sale stands still only when its holder does."""
        one_lock = self.strategy.locked and self.strategy.segments == 1
        stock = self.market.stock_of(self.strategy)
        for _ in range(20):
            victim = random.choice(self.market.instances)
            victim.send(signal.SIGSTOP)
            before = stock.glance()
            yield 0.05
            if not one_lock or stock.glance() == before:
                break
            victim.send(signal.SIGCONT)
            yield 0.02
        victim.send(signal.SIGSTOP)
        pause = self.market.ttl + 1.0
        self.told = f"instance {victim.port} stopped for {pause:.0f} s"
        if stock.glance().units_left <= 0:
            self.told += ", too late"
        yield pause
        victim.send(signal.SIGCONT)

    def kill_redis(self):
        if self.strategy.name == "script":
            victim = self.market.stock_redis
        elif self.strategy.name == "redlock":
            victim = random.choice(self.market.members)
        else:
            victim = self.market.locks
        self.told = f"Redis ({victim.name}) killed, back after 1 s"
        victim.kill()
        yield 1.0
        victim.start()

    def failover(self):
        if self.strategy.name == "redlock":
            yield from self.kill_redis()
            return
        victim = self.market.master()
        self.told = f"master {victim.port} killed, a replica promoted"
        victim.kill()
        # A sentinel that was kept from running for two seconds decides nothing for thirty.
        yield from self.until("another master", lambda: self.market.master() is not victim, 60)
        # Comes back as what it was, and takes writes again from those who do not ask the sentinels.
        victim.start()
        while not self.sale_is_over:
            yield 0.05
        # The sentinels would do this ten seconds later.
        victim.ask("REPLICAOF", "127.0.0.1", self.market.master().port)
        yield from self.until("the old master follows the new one", self.market.well, 60)


def holds(condition):
    """A server that does not answer yet does not fulfil anything."""
    try:
        return condition()
    except (OSError, RuntimeError):
        return False


def concerns(kind, strategy):
    """Whether this fault can do anything to the strategy, and whether it promises to bear it."""
    if strategy.faultless_only or not strategy.exact:
        return False
    if kind in ("kill-instance", "stop-holder"):
        return True
    if kind == "kill-redis":
        return strategy.locked or strategy.name == "script"
    return strategy.locked
