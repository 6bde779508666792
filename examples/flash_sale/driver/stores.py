"""The stock, seen from outside: filled before a sale, counted after it. What the load tool believes to
have bought does not matter here."""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True)
class Count:
    """What the store says."""
    orders: int
    units_left: int
    #: Orders beyond the first of the same request.
    duplicates: int = 0


def spread(units, segments):
    """As even as it gets."""
    return [units // segments + (1 if index < units % segments else 0) for index in range(segments)]


class SqliteStock:
    def __init__(self, file):
        self.database = sqlite3.connect(file, timeout=30, isolation_level=None)

    def fill(self, units, segments):
        run = self.database.execute
        run("BEGIN IMMEDIATE")
        for table in ("orders", "stock", "holdfast_fence", "holdfast_once"):
            run(f"DELETE FROM {table}")
        for index, part in enumerate(spread(units, segments)):
            run("INSERT INTO stock (segment, units) VALUES (?, ?)", (str(index), part))
        run("COMMIT")
        run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def glance(self):
        row = self.database.execute(
            "SELECT (SELECT COUNT(*) FROM orders), (SELECT TOTAL(units) FROM stock)").fetchone()
        return Count(int(row[0]), int(row[1]))

    def count(self):
        seen = self.glance()
        requests = self.database.execute("SELECT COUNT(DISTINCT request) FROM orders").fetchone()[0]
        return Count(seen.orders, seen.units_left, seen.orders - requests)


class DatabaseStock:
    """In a server that its own command line is asked about."""

    def __init__(self, server):
        self.server = server

    def fill(self, units, segments):
        rows = ", ".join(f"('{index}', {part})" for index, part in enumerate(spread(units, segments)))
        tables = ("orders", "stock", "holdfast_fence", "holdfast_once")
        self.server.ask(*(f"TRUNCATE TABLE {table}" for table in tables),
                        f"INSERT INTO stock (segment, units) VALUES {rows}", "SELECT 1")

    def glance(self):
        orders, left = self.server.ask(
            "SELECT (SELECT COUNT(*) FROM orders), (SELECT COALESCE(SUM(units), 0) FROM stock)")
        return Count(int(orders), int(left))

    def count(self):
        seen = self.glance()
        requests = self.server.ask("SELECT COUNT(DISTINCT request) FROM orders")[0]
        return Count(seen.orders, seen.units_left, seen.orders - int(requests))


class RedisStock:
    #: units and lease_seq; all other fields are orders.
    FIXED_FIELDS = 2

    def __init__(self, server):
        self.server = server
        self.segments = 1

    def key(self, index):
        return f"inventory001:{index}"

    def fill(self, units, segments):
        self.segments = segments
        self.server.ask("FLUSHALL")
        for index, part in enumerate(spread(units, segments)):
            self.server.ask("HSET", self.key(index), "units", part, "lease_seq", 0)

    def glance(self):
        orders = left = 0
        for index in range(self.segments):
            orders += self.server.ask("HLEN", self.key(index)) - self.FIXED_FIELDS
            left += int(self.server.ask("HGET", self.key(index), "units") or 0)
        return Count(orders, left)

    def count(self):
        requests, orders, left = set(), 0, 0
        for index in range(self.segments):
            flat = self.server.ask("HGETALL", self.key(index))
            fields = dict(zip(flat[::2], flat[1::2]))
            left += int(fields.get("units", 0))
            taken = [request for name, request in fields.items() if name.startswith("order:")]
            orders += len(taken)
            requests.update(taken)
        return Count(orders, left, orders - len(requests))
