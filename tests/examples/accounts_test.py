"""Tests of the flash sale's accounts and of its report: accounts_test.py DRIVER."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

DRIVER = sys.argv[1]
sys.path.insert(0, DRIVER)

import catalogue  # noqa: E402
import faults  # noqa: E402
import comparisons  # noqa: E402
import report  # noqa: E402
import sale  # noqa: E402
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


class Beginning(unittest.TestCase):
    """What somebody sees who has nothing but the script."""

    def check(self, path, *words):
        return subprocess.run([sys.executable, "-B", f"{DRIVER}/sale.py", "--check", *words], text=True,
                              capture_output=True, env={"PATH": path}, check=False)

    def test_servers_that_are_missing_are_named_in_one_line(self):
        told = self.check("/nowhere")
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr,
                         r"\Asale: not installed: redis-server[^\n]*please install[^\n]*\n\Z")

    def test_nothing_is_said_when_all_are_there(self):
        told = self.check(os.environ["PATH"])
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "", ""))

    def test_programs_that_were_not_built_are_one_line(self):
        with tempfile.TemporaryDirectory() as empty:
            command = [sys.executable, "-B", f"{DRIVER}/sale.py", "none", "--binaries", empty]
            told = subprocess.run(command, text=True, capture_output=True, check=False)
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, r"\Asale: [^\n]*flash_sale[^\n]*scripts/demo[^\n]*\n\Z")

    def test_who_may_not_install_is_told_what_is_missing(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            for program, text in (("dpkg-query", "exit 1"), ("apt-get", "exit 1"), ("sudo", "exit 1")):
                file = Path(directory) / program
                file.write_text(f"#!/bin/sh\n{text}\n")
                file.chmod(0o755)
            script = Path(shutil.copy(f"{DRIVER}/../../../scripts/bootstrap", directory))
            script.chmod(0o755)
            told = subprocess.run(["bash", script, "demo"], text=True, capture_output=True, check=False,
                                  env={"PATH": f"{directory}:/usr/bin:/bin"}, cwd="/", **nobody)
        self.assertEqual(told.returncode, 77)
        self.assertRegex(told.stderr, r"\Ascripts/bootstrap: not root[^\n]*install: [^\n]*redis-server")

    def test_the_legend_explains_every_column_and_the_strategies_of_this_run(self):
        text = sale.legend(catalogue.named(["spin", "none"]))
        columns = re.findall(r"\S+", sale.HEAD.replace(" ms", ""))
        for word in [*columns[1:], "none", "spin", "exact", "OVERSOLD"]:
            with self.subTest(word=word):
                self.assertRegex(text, rf"(?m)(^  |, |word +|\. ){re.escape(word)}\b")
        self.assertNotIn("redlock", text)


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


class Comparisons(unittest.TestCase):
    def test_speed_and_tail_are_told_as_ratios_and_not_judged(self):
        """A lock against the tutorial's, which takes 3 s and lets its last buyer wait as long."""
        slow, fast = played("spin", 30, 0), played("holdfast", 30, 0)
        slow.seconds, slow.latencies = 3.0, [3.0]
        fast.seconds, fast.latencies = 1.5, [0.6]
        (told,) = map(str, comparisons.compared([slow, fast]))
        self.assertIn("holdfast sold 2.0 times as fast as spin, its p99 is 0.20 of the other's", told)
        self.assertNotIn("goal", told)

    def test_what_was_not_played_is_not_compared(self):
        self.assertEqual(comparisons.compared([played("holdfast", 30, 0), played("none", 40, 22)]), [])


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

    def test_it_compares_and_names_no_goals(self):
        page = report.page([played("spin", 30, 0), played("holdfast", 30, 0)], SETTINGS)
        self.assertIn("times as fast as <b>spin</b>", page)
        self.assertNotIn("missed", page)

    def test_it_says_when_no_lock_is_the_better_answer(self):
        self.assertIn("When no lock is the better answer", self.page)

    def test_it_says_when_something_went_wrong(self):
        page = report.page([played("holdfast", 31, 0)], SETTINGS)
        self.assertIn("Not as it should be", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
