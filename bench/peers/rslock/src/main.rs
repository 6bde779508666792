//! rslock, as its README shows it. See ../../README.md for the protocol.

use rslock::LockManager;
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Duration;

fn now() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

async fn work(
    locks: LockManager,
    name: String,
    hold: Duration,
    most: i64,
    begin: i64,
    end: i64,
) -> Vec<[i64; 4]> {
    let mut pairs = Vec::new();
    let mut taken = 0;
    while most == 0 || taken < most {
        taken += 1;
        let asked = now();
        if asked >= end {
            return pairs;
        }
        // It gives up after three tries.
        let lock = loop {
            match locks.lock(name.as_bytes(), Duration::from_secs(30)).await {
                Ok(lock) => break lock,
                Err(_) if now() >= end => return pairs,
                Err(_) => {}
            }
        };
        let got = now();
        if !hold.is_zero() {
            tokio::time::sleep(hold).await;
        }
        let released = now();
        locks.unlock(&lock).await;
        let done = now();
        if begin <= asked && done <= end {
            pairs.push([asked, got, released, done]);
        }
    }
    pairs
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let locks = LockManager::new(vec![format!("redis://127.0.0.1:{port}/")]);
    println!("ready rslock 0.10.0");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let order: HashMap<&str, &str> =
            line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let number = |key: &str| order[key].parse::<i64>().expect("a number");
        let begin = now() + number("warm_ms") * 1_000_000;
        let end = begin + number("ms") * 1_000_000;
        let hold = Duration::from_micros(number("hold_us") as u64);
        let tasks: Vec<_> = (0..number("tasks"))
            .map(|task| {
                let name = match order["mode"] {
                    "one" => order["name"].to_string(),
                    _ => format!("{}:{task}", order["name"]),
                };
                tokio::spawn(work(locks.clone(), name, hold, number("pairs"), begin, end))
            })
            .collect();
        let mut out = std::io::BufWriter::new(std::fs::File::create(order["out"]).expect("a file"));
        for (task, result) in tasks.into_iter().enumerate() {
            for [asked, got, released, done] in result.await.expect("a result") {
                writeln!(out, "{task} {asked} {got} {released} {done}").expect("room");
            }
        }
        out.flush().expect("room");
        println!("done");
    }
}
