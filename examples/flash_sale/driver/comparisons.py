"""The ratios that the sale is about, in figures of one and the same run. They are told, never judged:
what they come to depends on the machine."""

from dataclasses import dataclass

#: (the faster, the slower)
PAIRS = [("holdfast", "spin"), ("segmented", "holdfast")]


@dataclass(frozen=True)
class Comparison:
    buyers: int
    fast: str
    slow: str
    speed: float
    #: Of the slower one's 99th percentile.
    tail: float

    def __str__(self):
        return (f"{self.buyers:4d} buyers: {self.fast} sold {self.speed:.1f} times as fast as "
                f"{self.slow}, its p99 is {self.tail:.2f} of the other's")


def compared(results):
    """A comparison for each pair and crowd that were played; of repeated rounds the last."""
    found = {(one.load.buyers, one.strategy.name): one for one in results}
    all_pairs = []
    for buyers in sorted({buyers for buyers, _ in found}):
        for fast, slow in PAIRS:
            here, there = found.get((buyers, fast)), found.get((buyers, slow))
            if here and there and there.rate and there.latencies:
                all_pairs.append(Comparison(buyers, fast, slow, here.rate / there.rate,
                                            here.percentile(0.99) / there.percentile(0.99)))
    return all_pairs
