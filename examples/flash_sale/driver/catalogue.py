"""The strategies of the sale, and what is expected of each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Strategy:
    name: str
    title: str
    about: str
    #: Sells every unit once; otherwise it is here to be seen failing.
    exact: bool = True
    #: Where the stock must be: "redis", or "sql", which is SQLite unless the sale has a server for it.
    #: Empty: wherever the sale keeps it.
    store: str = ""
    segments: int = 1
    #: Holdfast's lock is in the way of every sale; faults of its store concern it.
    locked: bool = True
    #: Makes no promise when something breaks, so it is not judged then.
    faultless_only: bool = False
    #: Sells to each request once, however often it is repeated.
    idempotent: bool = False


STRATEGIES = [
    Strategy("none", "no protection", "look, work, write what was seen minus one", exact=False,
             locked=False),
    Strategy("local", "a mutex in each process", "right for one process; there are two", exact=False,
             locked=False),
    Strategy("spin", "a home-made lock", "SETNX in Redis, and 20 ms of sleep after each refusal",
             locked=False, faultless_only=True),
    Strategy("holdfast", "holdfast mutex", "a lock in one Redis; the stock checks its tokens"),
    Strategy("redlock", "holdfast, 3 members", "the same over a quorum of three Redis servers"),
    Strategy("shared", "holdfast shared mutex", "all look as readers, those who find something write"),
    Strategy("once", "lock + idempotency", "a request that is repeated gets the order it has",
             idempotent=True),
    Strategy("lease_seq", "lock + lease_seq", "the stock's own sequence has the last word"),
    Strategy("segmented", "5 segments", "five locks on a fifth of the stock each", segments=5),
    Strategy("batched", "keyed batches", "those who wait together share lock, work and commit"),
    Strategy("conditional", "conditional UPDATE", "no lock: UPDATE … WHERE units > 0", store="sql",
             locked=False),
    Strategy("script", "Redis script", "no lock: a script in Redis takes a unit", store="redis",
             locked=False),
]


def named(names):
    """The strategies of these names, in the order of the catalogue; all of them for no names."""
    unknown = set(names) - {strategy.name for strategy in STRATEGIES}
    if unknown:
        known = ", ".join(strategy.name for strategy in STRATEGIES)
        raise SystemExit(f"no strategy is called {', '.join(sorted(unknown))}; there are {known}")
    return [strategy for strategy in STRATEGIES if not names or strategy.name in names]
