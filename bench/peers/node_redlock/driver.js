// node-redlock over ioredis, as its README shows it. See ../README.md for the protocol.
import { createWriteStream, readFileSync } from "node:fs";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { ExecutionError, default as Redlock } from "redlock";

const client = new Redis(Number(process.argv[2]), "127.0.0.1");
const redlock = new Redlock([client]);
redlock.on("error", () => {}); // A lock that is taken is told here as well.
const now = () => process.hrtime.bigint();

async function acquire(name, end) {
  while (now() < end) {
    try {
      return await redlock.acquire([name], 30000);
    } catch (error) {
      // It gives up after ten tries.
      if (!(error instanceof ExecutionError)) throw error;
    }
  }
  return null;
}

async function run(order) {
  const begin = now() + BigInt(order.warm_ms) * 1000000n;
  const end = begin + BigInt(order.ms) * 1000000n;
  const hold = Number(order.hold_us) / 1000;
  const most = Number(order.pairs) || Infinity;
  const work = async (_, task) => {
    const name = order.mode === "one" ? order.name : `${order.name}:${task}`;
    const pairs = [];
    for (let taken = 0; taken < most; ++taken) {
      const asked = now();
      if (asked >= end) return pairs;
      const lock = await acquire(name, end);
      if (!lock) return pairs;
      const got = now();
      if (hold > 0) await new Promise((resolve) => setTimeout(resolve, hold));
      const released = now();
      await lock.release();
      const done = now();
      if (begin <= asked && done <= end) pairs.push([asked, got, released, done]);
    }
    return pairs;
  };
  return Promise.all(Array.from({ length: Number(order.tasks) }, work));
}

const version = JSON.parse(readFileSync(new URL("node_modules/redlock/package.json", import.meta.url)));
console.log("ready node-redlock", version.version);
for await (const line of createInterface({ input: process.stdin })) {
  const order = Object.fromEntries(line.split(" ").map((word) => word.split("=")));
  const results = await run(order);
  const out = createWriteStream(order.out);
  results.forEach((pairs, task) => pairs.forEach((pair) => out.write(`${task} ${pair.join(" ")}\n`)));
  out.end();
  await once(out, "finish");
  console.log("done");
}
await client.quit();
