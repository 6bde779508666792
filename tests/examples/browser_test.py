"""Holds a small sale and opens its report in a real browser:
browser_test.py DRIVER BINARIES CHROMIUM."""

import html.parser
import json
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

sys.path.insert(0, sys.argv[1])
BINARIES, CHROMIUM = sys.argv[2:4]

import catalogue  # noqa: E402
import report  # noqa: E402
import sale  # noqa: E402
from market import Market  # noqa: E402
from png import Image  # noqa: E402
from rounds import play  # noqa: E402

STRATEGIES = ["none", "holdfast", "conditional"]
SMALL = sale.LOADS[0]
PATIENCE = 60
WINDOW = (720, 2600)
WHITE = (255, 255, 255)
#: Colours of the report's style sheet, by daylight; most of them are laid thinly over a white card.
PROTECTED, WRONG, LINES = (0x2f, 0x6f, 0xb3), (0xc2, 0x26, 0x1d), (0x1d, 0x24, 0x30)
CROWD, STOCK = (0x7f, 0xb0, 0xdf), (0xdb, 0xe7, 0xf3)
#: Says where the plots are, in the page's own words. The report itself has no script.
MEASURE = """<script>document.body.dataset.boxes = JSON.stringify([...document.querySelectorAll("svg")]
.map(plot => plot.getBoundingClientRect()).map(box => [box.left, box.top, box.right, box.bottom]));
</script></body>"""


def over_white(colour, opacity):
    return tuple(round(opacity * part + (1 - opacity) * 255) for part in colour)


def own_count(file):
    """(orders, units left), asked of the store without the driver's help."""
    with closing(sqlite3.connect(file)) as store:
        return (store.execute("SELECT COUNT(*) FROM orders").fetchone()[0],
                store.execute("SELECT SUM(units) FROM stock").fetchone()[0])


class Cells(html.parser.HTMLParser):
    """The numbers of the accounts' table, row by row, and the boxes of the plots."""

    def __init__(self):
        super().__init__()
        self.rows, self.boxes, self.depth = [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag == "body":
            self.boxes = json.loads(dict(attributes).get("data-boxes") or "[]")
        elif tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
            self.depth = 1

    def handle_endtag(self, tag):
        if tag == "td":
            self.depth = 0

    def handle_data(self, data):
        if self.depth:
            self.rows[-1][-1] += data


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.files.cleanup)
        cls.directory = Path(cls.files.name)
        settings = sale.arguments(["--binaries", BINARIES])
        cls.results, cls.counted = [], []
        market = Market(cls.directory, settings)
        cls.addClassCleanup(market.close)
        market.open()
        for strategy in catalogue.named(STRATEGIES):
            cls.results.append(play(market, strategy, SMALL, strategy.name, strategy.name))
            cls.counted.append(own_count(cls.directory / "stock.sqlite"))
        page = report.page(cls.results, settings)
        (cls.directory / "report.html").write_text(page)
        (cls.directory / "measured.html").write_text(page.replace("</body>", MEASURE))
        cls.seen = Cells()
        cls.seen.feed(cls.browse("measured.html", "--dump-dom"))
        cls.browse("report.html", f"--screenshot={cls.directory / 'report.png'}")
        cls.picture = Image((cls.directory / "report.png").read_bytes())

    @classmethod
    def browse(cls, name, action):
        return subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--force-device-scale-factor=1",
             f"--user-data-dir={cls.directory / 'profile'}", "--window-size={},{}".format(*WINDOW),
             action, (cls.directory / name).as_uri()],
            check=True, timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True).stdout

    def assert_drawn(self, plot, colour, at_least):
        left, top, right, bottom = (round(edge) for edge in self.seen.boxes[plot])
        self.assertLess(bottom, self.picture.height, "the plot is not in the picture")
        found = self.picture.colours(left, top, right, bottom)
        # Colours are rounded on their way; a neighbour in each channel is the same to the eye.
        drawn = sum(count for seen, count in found.items()
                    if all(abs(one - other) <= 2 for one, other in zip(seen, colour)))
        self.assertGreaterEqual(drawn, at_least, f"plot {plot} has no {colour}")

    def test_the_numbers_on_the_page_are_the_stores(self):
        shown = []
        for row in self.seen.rows[1:]:
            numbers = [int(text.replace(",", "")) for text in row[1:6]]
            shown.append(dict(zip(("buyers", "units", "sold", "oversold", "left"), numbers)))
        self.assertEqual([(row["sold"], row["left"]) for row in shown], self.counted)
        for row in shown:
            self.assertEqual((row["buyers"], row["units"]), (SMALL.buyers, SMALL.units))
            self.assertEqual(row["oversold"], max(0, row["sold"] - SMALL.units))

    def test_there_are_three_plots(self):
        self.assertEqual(len(self.seen.boxes), 3)

    def test_throughput_has_a_bar_for_right_and_wrong(self):
        self.assert_drawn(0, CROWD, 300)
        self.assert_drawn(0, over_white(WRONG, 0.35), 300)

    def test_latency_has_its_ridges(self):
        self.assert_drawn(1, over_white(PROTECTED, 0.6), 300)
        self.assert_drawn(1, over_white(WRONG, 0.45), 300)

    def test_stock_over_time_has_areas_and_lines(self):
        self.assert_drawn(2, STOCK, 300)
        self.assert_drawn(2, LINES, 30)
        self.assert_drawn(2, WRONG, 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
