"""What the sale is meant to show, in figures of one and the same run. They are told, never judged: a
busy machine must not turn a sale that was exact into a failure."""

from dataclasses import dataclass

#: (the faster, the slower, how many times as fast, the share of the other's p99 or None)
GOALS = [("holdfast", "spin", 3.0, 1 / 3), ("segmented", "holdfast", 3.0, None)]


@dataclass(frozen=True)
class Comparison:
    buyers: int
    fast: str
    slow: str
    speed: float
    #: Of the slower one's 99th percentile.
    tail: float
    wanted_speed: float
    wanted_tail: float | None

    @property
    def met(self):
        return self.speed >= self.wanted_speed and (
            self.wanted_tail is None or self.tail <= self.wanted_tail)

    @property
    def goal(self):
        tail = "" if self.wanted_tail is None else f" and p99 at most {self.wanted_tail:.2f}"
        return f"goal: {self.wanted_speed:g} times{tail}, {'met' if self.met else 'missed'}"

    def __str__(self):
        return (f"{self.buyers:4d} buyers: {self.fast} sold {self.speed:.1f} times as fast as "
                f"{self.slow}, its p99 is {self.tail:.2f} of the other's ({self.goal})")


def compared(results):
    """A comparison for each goal and crowd that were played; of repeated rounds the last."""
    found = {(one.load.buyers, one.strategy.name): one for one in results}
    pairs = []
    for buyers in sorted({buyers for buyers, _ in found}):
        for fast, slow, speed, tail in GOALS:
            here, there = found.get((buyers, fast)), found.get((buyers, slow))
            if here and there and there.rate and there.latencies:
                pairs.append(Comparison(buyers, fast, slow, here.rate / there.rate,
                                        here.percentile(0.99) / there.percentile(0.99), speed, tail))
    return pairs
