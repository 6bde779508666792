"""Tests of the flash sale's service by itself: service_test.py DRIVER PROGRAM."""

import json
import signal
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, sys.argv[1])
PROGRAM = str(Path(sys.argv[2]).resolve())

from servers import Instance, Redis, free_port, wait_until  # noqa: E402
from stores import RedisStock, SqliteStock  # noqa: E402

SALE = "/redis/distributed/lock/inventory/sale"


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory()
        directory = Path(cls.files.name)
        cls.redis = Redis("redis", directory)
        cls.redis.start()
        cls.quorum = [Redis(f"member-{index}", directory) for index in range(3)]
        for member in cls.quorum:
            member.start()
        cls.configuration = directory / "shop.conf"
        cls.configuration.write_text(
            f'sqlite = "{directory / "stock.sqlite"}"\nstock-redis = "{cls.redis.address}"\n'
            f'locks = "{cls.redis.address}"\nspin = "{cls.redis.address}"\nwork = 20000\nthreads = 8\n')
        addresses = " ".join(member.address for member in cls.quorum)
        cls.shop = Instance(PROGRAM, free_port(), directory,
                            {"config": cls.configuration, "quorum": f"quorum:{addresses}"})
        cls.shop.start()
        cls.sqlite = SqliteStock(directory / "stock.sqlite")

    @classmethod
    def tearDownClass(cls):
        for process in (cls.shop, cls.redis, *cls.quorum):
            process.stop()
        cls.files.cleanup()

    def buy(self, strategy="", request="r"):
        name = f"/{strategy}" if strategy else ""
        return json.loads(self.shop.get(f"{SALE}{name}?request={request}"))

    def test_every_strategy_sells_the_last_unit_and_no_more(self):
        for name in ("none", "local", "spin", "holdfast", "redlock", "shared", "once", "lease_seq",
                     "segmented", "batched", "conditional"):
            with self.subTest(name):
                self.sqlite.fill(1, 5 if name == "segmented" else 1)
                first, second = self.buy(name, f"{name}-1"), self.buy(name, f"{name}-2")
                self.assertEqual((first["outcome"], first["remaining"]), ("sold", 0))
                self.assertEqual(first["port"], self.shop.port)
                self.assertTrue(first["order"])
                self.assertEqual(second["outcome"], "sold_out")
                self.assertEqual(self.sqlite.count().orders, 1)

    def test_a_script_in_redis_does_so_too(self):
        stock = RedisStock(self.redis)
        stock.fill(1, 1)
        self.assertEqual(self.buy("script", "s-1")["outcome"], "sold")
        self.assertEqual(self.buy("script", "s-2")["outcome"], "sold_out")
        self.assertEqual(stock.count().orders, 1)

    def test_a_request_that_is_repeated_gets_the_order_it_has(self):
        self.sqlite.fill(5, 1)
        first, again = self.buy("once", "same"), self.buy("once", "same")
        self.assertEqual(first["order"], again["order"])
        self.assertEqual(self.sqlite.count().units_left, 4)

    def test_the_address_of_the_tutorial_sells_with_a_lock(self):
        self.sqlite.fill(2, 1)
        self.assertEqual(self.buy()["outcome"], "sold")
        self.assertIn('strategy="holdfast",outcome="sold"', self.shop.get("/metrics"))

    def test_other_addresses_are_refused(self):
        self.assertIn("no strategy is called hope", self.shop.get(f"{SALE}/hope"))
        self.assertIn("try /redis", self.shop.get("/elsewhere"))

    def test_a_second_one_on_the_same_port_is_not_taken_for_ready(self):
        twin = Instance(PROGRAM, self.shop.port, self.configuration.parent / "twin",
                        {"config": self.configuration})
        twin.directory.mkdir()
        with self.assertRaisesRegex(RuntimeError, "in use"):
            twin.start()

    def test_it_ends_with_its_requests_answered_and_its_lock_given_back(self):
        self.sqlite.fill(10, 1)
        self.redis.ask("SET", "RedisDistributedLock", "somebody else")
        answers = []
        buyer = threading.Thread(target=lambda: answers.append(self.buy("spin", "last")))
        buyer.start()
        wait_until("the request is being worked on", self.shop.in_flight)
        self.shop.send(signal.SIGTERM)
        wait_until("nobody is let in any more", lambda: not self.shop.ready())
        self.redis.ask("DEL", "RedisDistributedLock")
        buyer.join()
        self.assertEqual(self.shop.child.wait(10), 0)
        self.assertEqual(answers[0]["outcome"], "sold")
        self.assertEqual(self.redis.ask("EXISTS", "RedisDistributedLock"), 0)
        self.shop.start()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
