"""Tests of the flash sale's service on a database server: database_test.py DRIVER PROGRAM KIND."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, sys.argv[1])
PROGRAM, KIND = str(Path(sys.argv[2]).resolve()), sys.argv[3]

import databases  # noqa: E402
from servers import Instance, Redis, free_port, wait_until  # noqa: E402
from stores import DatabaseStock  # noqa: E402

CONNECTIONS = 2


class OnADatabase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory()
        directory = Path(cls.files.name)
        cls.locks = Redis("locks", directory)
        cls.database = databases.KINDS[KIND](KIND, directory, CONNECTIONS)
        cls.shop = Instance(PROGRAM, free_port(), directory, {
            "stock": KIND, KIND: cls.database.address, "locks": cls.locks.address, "work": 0,
            "connections": CONNECTIONS})
        for process in (cls.locks, cls.database, cls.shop):
            process.start()
        cls.stock = DatabaseStock(cls.database)

    @classmethod
    def tearDownClass(cls):
        for process in (cls.shop, cls.database, cls.locks):
            process.stop()
        cls.files.cleanup()

    def buy(self, strategy, request):
        path = f"/redis/distributed/lock/inventory/sale/{strategy}?request={request}"
        return json.loads(self.shop.get(path))

    def test_every_strategy_sells_the_last_unit_and_no_more(self):
        for name in ("none", "holdfast", "shared", "once", "lease_seq", "segmented", "batched",
                     "conditional"):
            with self.subTest(name):
                self.stock.fill(1, 5 if name == "segmented" else 1)
                first, second = self.buy(name, f"{name}-1"), self.buy(name, f"{name}-2")
                self.assertEqual((first["outcome"], first["remaining"]), ("sold", 0))
                self.assertEqual(second["outcome"], "sold_out")
                self.assertEqual(self.stock.count().orders, 1)

    def test_a_request_that_is_repeated_gets_the_order_it_has(self):
        self.stock.fill(5, 1)
        first, again = self.buy("once", "same"), self.buy("once", "same")
        self.assertEqual(first["order"], again["order"])
        self.assertEqual(self.stock.count().units_left, 4)

    def test_it_sells_again_after_the_database_was_away(self):
        self.stock.fill(5, 1)
        self.assertEqual(self.buy("holdfast", "before")["outcome"], "sold")
        self.database.stop()
        self.assertEqual(self.buy("holdfast", "meanwhile")["outcome"], "failed")
        self.database.start()
        wait_until("it sells", lambda: self.buy("holdfast", "after")["outcome"] == "sold")
        self.assertEqual(self.stock.count().units_left, 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
