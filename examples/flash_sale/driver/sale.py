"""The flash sale: two instances of a shop behind nginx, a crowd of buyers, a strategy at a time; then
the accounts, from the store. Exit code 0: what should oversell did, what should not did not, and every
unit was sold. (`scripts/demo` first tells a short story about a counter, which must come true as
well.)"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import catalogue
import comparisons
import databases
import faults
import report
from market import Market
from rounds import Load, play
from servers import path_of, raise_file_limit, wait_until

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
#: A fifth of what is asked for cannot be had: only then overselling shows.
LOADS = [Load(buyers=200, tries=5, units=800), Load(buyers=3000, tries=1, units=2400)]


def arguments(words=None):
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description=__doc__.replace("`", ""),
        epilog="More in docs/flash-sale.md: strategies, faults, and how to read the figures.")
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY",
                        help="only these: " + ", ".join(one.name for one in catalogue.STRATEGIES))
    parser.add_argument("--fault", choices=faults.KINDS, help="something breaks at a random moment")
    parser.add_argument("--seed", type=int, help="of that moment")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="all of it so often")
    parser.add_argument("--work", type=int, default=1000, metavar="US",
                        help="what a sale takes besides the stock, in µs (default 1000)")
    parser.add_argument("--threads", type=int, default=800, metavar="N",
                        help="of each instance: so many buyers are at the lock at a time, the others "
                             "wait in front of the shop (default 800)")
    parser.add_argument("--connections", type=int, default=8, metavar="N",
                        help="of each instance to each store (default 8)")
    parser.add_argument("--stock", choices=["sqlite", "redis", *databases.KINDS], default="sqlite",
                        help="where the units are counted (default sqlite)")
    parser.add_argument("--binaries", type=lambda word: Path(word).resolve(), metavar="DIR",
                        default=ROOT / "build/release/bin",
                        help="where flash_sale and flash_sale_buyers are (default build/release/bin)")
    parser.add_argument("--report", type=Path, default=ROOT / "build/demo/report.html", metavar="FILE",
                        help="where the page with the plots goes (default build/demo/report.html)")
    parser.add_argument("--buyers", type=int, choices=[load.buyers for load in LOADS],
                        help="only this crowd")
    parser.add_argument("--check", action="store_true",
                        help="only look whether these words make sense and all servers are installed")
    settings = parser.parse_args(words)
    settings.strategies = catalogue.named(settings.strategies)
    return settings


def row(result):
    fault = f"  {result.fault}" if result.fault else ""
    return (f"{result.strategy.name:12} {result.load.buyers:6d} {result.load.units:6d} "
            f"{result.sold:6d} {result.oversold:8d} {result.left:5d} {result.errors:6d} "
            f"{result.rate:9.0f} {result.percentile(0.5) * 1000:9.1f} "
            f"{result.percentile(0.99) * 1000:9.1f} {result.redis_commands:7.1f}  "
            f"{result.verdict}{'' if result.as_expected else '  <- not as expected'}{fault}")


def legend(strategies):
    """What is about to be seen, for somebody who has read nothing."""
    protections = "\n".join(f"  {one.name:12} {one.title}: {one.about}" for one in strategies)
    return f"""Two instances of a shop sell one stock. A row is a strategy (what protects the stock) and
a crowd:

{protections}

  buyers, units     200 who buy five times each, or 3000 who buy once; and how much there is for them:
                    a fifth of the purchases must be turned away
  sold, oversold    orders in the store afterwards, and how many of them are more than there was
  left, errors      units that the store still counts (without a lock, buyers overwrite each other's
                    count, so many may be left although too many were sold), and answers that were
                    errors (asked again)
  orders/s          how fast it sold
  p50, p99          how long a buyer waited for the answer: half of them, 99 of 100, no longer than this
  redis             commands that all Redis servers had to carry out for a purchase
  exact             at the row's end: every unit was sold once. OVERSOLD is what a lock prevents

Read it so: first the end of each row, then what being exact costs in orders/s and p99. Rows of one run
can be compared, those of different machines cannot.
"""


HEAD = (f"{'strategy':12} {'buyers':>6} {'units':>6} {'sold':>6} {'oversold':>8} {'left':>5} "
        f"{'errors':>6} {'orders/s':>9} {'p50 ms':>9} {'p99 ms':>9} {'redis':>7}")


def all_rounds(market, settings):
    chosen = settings.strategies
    loads = [load for load in LOADS if settings.buyers in (None, load.buyers)]
    if settings.fault:
        chosen = [one for one in chosen if faults.concerns(settings.fault, one)]
        loads = loads[-1:]
    planned = [(strategy, load) for strategy in chosen for load in loads] * settings.repeat
    for number, (strategy, load) in enumerate(planned, 1):
        wait_until("all servers are well", market.well)
        label = f"{number:3d}/{len(planned)} {strategy.name:12} {load.buyers:4d} buyers"
        yield play(market, strategy, load, f"r{number}", label, settings.fault)


def main():
    settings = arguments()
    programs = ["redis-server", "nginx"]
    if missing := [one for one in programs if not path_of(one)]:
        raise RuntimeError(f"not installed: {', '.join(missing)}; please install "
                           "them (Debian and Ubuntu: packages of the same names), then try again")
    if settings.check:
        return 0
    for program in ("flash_sale", "flash_sale_buyers"):
        if not (settings.binaries / program).exists():
            raise RuntimeError(f"{settings.binaries / program} is not there; scripts/demo builds it")
    seed = settings.seed if settings.seed is not None else random.randrange(1_000_000)
    random.seed(seed)
    raise_file_limit()
    began = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(prefix="holdfast-sale-") as directory:
        market = Market(Path(directory), settings)
        try:
            market.open()
            if settings.fault:
                print(f"fault: {settings.fault}, seed {seed}")
            print(legend(settings.strategies))
            print(HEAD, flush=True)
            for result in all_rounds(market, settings):
                results.append(result)
                print(row(result), flush=True)
        finally:
            market.close()
    if not settings.fault:
        for comparison in comparisons.compared(results):
            print(comparison)
    settings.report.parent.mkdir(parents=True, exist_ok=True)
    settings.report.write_text(report.page(results, settings))
    wrong = [one for one in results if not one.as_expected]
    print(f"{len(results)} rounds in {time.monotonic() - began:.0f} s, {len(wrong)} not as expected\n"
          f"report: {settings.report}")
    return 0 if results and not wrong else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError) as trouble:
        sys.exit(f"sale: {trouble}")
    except KeyboardInterrupt:
        print("\nsale: interrupted; all servers are stopped", file=sys.stderr)
        sys.exit(130)
