"""redis-py's Lock, as its documentation shows it. See ../README.md for the protocol."""

import importlib.metadata
import sys
import threading
import time

import redis

port = int(sys.argv[1])
client = redis.Redis(port=port)


def run(order):
    """Tasks lock and unlock until the time is up; what they do in the warm-up does not count."""
    tasks, hold, most = int(order["tasks"]), int(order["hold_us"]) / 1e6, int(order["pairs"])
    begin = time.monotonic_ns() + int(order["warm_ms"]) * 1_000_000
    end = begin + int(order["ms"]) * 1_000_000
    results = [[] for _ in range(tasks)]

    def work(task):
        name = order["name"] if order["mode"] == "one" else f"{order['name']}:{task}"
        taken = 0
        while (asked := time.monotonic_ns()) < end and (not most or taken < most):
            taken += 1
            lock = client.lock(name, timeout=30)
            lock.acquire()
            got = time.monotonic_ns()
            if hold:
                time.sleep(hold)
            released = time.monotonic_ns()
            lock.release()
            done = time.monotonic_ns()
            if begin <= asked and done <= end:
                results[task].append((asked, got, released, done))

    threads = [threading.Thread(target=work, args=(task,)) for task in range(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


print("ready", "redis-py", importlib.metadata.version("redis"), flush=True)
for line in sys.stdin:
    order = dict(word.split("=", 1) for word in line.split())
    with open(order["out"], "w", encoding="ascii") as out:
        for task, pairs in enumerate(run(order)):
            for asked, got, released, done in pairs:
                out.write(f"{task} {asked} {got} {released} {done}\n")
    print("done", flush=True)
