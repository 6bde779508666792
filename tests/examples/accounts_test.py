"""Tests of the flash sale's accounts and of its report: accounts_test.py DRIVER."""

import sys
import types
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, sys.argv[1])

import catalogue  # noqa: E402
import faults  # noqa: E402
import goals  # noqa: E402
import report  # noqa: E402
import stores  # noqa: E402
from rounds import Load, Round  # noqa: E402

SMALL = Load(buyers=20, tries=2, units=30)
SETTINGS = types.SimpleNamespace(fault=None, threads=4, connections=2, stock="sqlite", work=1000)


def played(name, sold, left):
    strategy = catalogue.named([name])[0]
    course = [(0.1, sold // 2, SMALL.units - sold // 2), (0.2, sold, left)]
    return Round(strategy, SMALL, sold=sold, left=left, seconds=0.25, course=course,
                 latencies=[0.001 * (number + 1) for number in range(SMALL.purchases)])


class Victim:
    name = "locks"

    def __init__(self):
        self.calls = []

    def kill(self):
        self.calls.append("kill")

    def start(self):
        self.calls.append("start")


def plots_of(page):
    return [ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>")
            for part in page.split("<svg")[1:]]


class Accounts(unittest.TestCase):
    def test_a_lock_that_sells_every_unit_is_as_expected(self):
        self.assertTrue(played("holdfast", sold=30, left=0).as_expected)

    def test_a_lock_that_oversells_is_not(self):
        self.assertFalse(played("holdfast", sold=31, left=0).as_expected)

    def test_a_lock_that_leaves_a_unit_is_not(self):
        self.assertFalse(played("holdfast", sold=29, left=1).as_expected)

    def test_an_order_that_took_no_unit_is_not(self):
        self.assertFalse(played("holdfast", sold=30, left=1).as_expected)

    def test_idempotency_that_sells_twice_to_one_request_is_not(self):
        result = played("once", sold=30, left=0)
        self.assertTrue(result.as_expected)
        result.duplicates = 1
        self.assertFalse(result.as_expected)

    def test_without_a_lock_overselling_is_expected(self):
        self.assertTrue(played("none", sold=40, left=22).as_expected)
        self.assertFalse(played("none", sold=30, left=0).as_expected)

    def test_segments_get_all_units(self):
        self.assertEqual(stores.spread(12, 5), [3, 3, 2, 2, 2])

    def test_an_unknown_strategy_is_refused(self):
        with self.assertRaises(SystemExit):
            catalogue.named(["hope"])

    def test_faults_are_for_those_who_promise_to_bear_them(self):
        bearing = {one.name for one in catalogue.STRATEGIES if faults.concerns("failover", one)}
        self.assertTrue({"holdfast", "segmented"} <= bearing)
        self.assertFalse({"none", "local", "spin", "script"} & bearing)


class Goals(unittest.TestCase):
    def compared(self, seconds, tail):
        """A lock against the tutorial's, which takes 3 s and lets its last buyer wait as long."""
        slow, fast = played("spin", 30, 0), played("holdfast", 30, 0)
        slow.seconds, slow.latencies = 3.0, [3.0]
        fast.seconds, fast.latencies = seconds, [tail]
        return goals.compared([slow, fast])[0]

    def test_three_times_the_speed_with_a_third_of_the_tail_is_the_goal(self):
        self.assertTrue(self.compared(seconds=1.0, tail=1.0).met)

    def test_less_speed_misses_it(self):
        self.assertIn("missed", str(self.compared(seconds=1.1, tail=1.0)))

    def test_a_longer_tail_misses_it(self):
        self.assertIn("missed", str(self.compared(seconds=1.0, tail=1.1)))

    def test_what_was_not_played_is_not_compared(self):
        self.assertEqual(goals.compared([played("holdfast", 30, 0), played("none", 40, 22)]), [])


class Faults(unittest.TestCase):
    def struck(self, *shares):
        market = types.SimpleNamespace(locks=Victim(), members=[Victim()])
        fault = faults.Fault("kill-redis", market, catalogue.named(["holdfast"])[0])
        for share in shares:
            fault.advance(share)
        return fault

    def test_a_fault_waits_for_its_share_of_the_stock(self):
        fault = self.struck(0.0, 0.09)
        self.assertEqual(fault.market.locks.calls, [])
        self.assertIn("too late", fault.finish())
        self.assertEqual(fault.market.locks.calls, [])

    def test_a_fault_in_time_is_told_when_it_is_over(self):
        fault = self.struck(0.0, 0.61)
        self.assertNotIn("too late", fault.finish())
        self.assertEqual(fault.market.locks.calls, ["kill", "start"])


class Report(unittest.TestCase):
    def setUp(self):
        self.page = report.page([played("none", 40, 22), played("holdfast", 30, 0)], SETTINGS)

    def test_its_plots_are_well_formed_and_drawn(self):
        plots = plots_of(self.page)
        self.assertEqual(len(plots), 3)
        shapes = {"rect", "polygon", "polyline"}
        for plot in plots:
            drawn = [part for part in plot.iter() if part.tag in shapes]
            self.assertGreaterEqual(len(drawn), 2)

    def test_it_has_the_accounts_figures(self):
        self.assertIn("OVERSOLD".lower(), self.page)
        self.assertIn("10 units were sold that nobody had", self.page)

    def test_it_needs_nothing_from_elsewhere(self):
        for word in ("http:", "https:", "src=", "@import", "<script"):
            self.assertNotIn(word, self.page)

    def test_it_says_which_goals_were_missed(self):
        page = report.page([played("spin", 30, 0), played("holdfast", 30, 0)], SETTINGS)
        self.assertIn("missed", page)

    def test_it_says_when_no_lock_is_the_better_answer(self):
        self.assertIn("When no lock is the better answer", self.page)

    def test_it_says_when_something_went_wrong(self):
        page = report.page([played("holdfast", 31, 0)], SETTINGS)
        self.assertIn("Not as it should be", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
