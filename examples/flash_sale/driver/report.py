"""The report: one page of HTML without anything from elsewhere."""

import os
import platform
import time
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template

import comparisons
import plots

HERE = Path(__file__).resolve().parent


def grouped(results):
    """[(strategy, [rounds])], in the order they were played; of repeated rounds the last."""
    order, found = [], {}
    for one in results:
        if one.strategy.name not in found:
            order.append(one.strategy)
        found.setdefault(one.strategy.name, {})[one.load.buyers] = one
    return [(strategy, list(found[strategy.name].values())) for strategy in order]


HEAD = ["strategy", "buyers", "units", "sold", "oversold", "left", "twice", "errors", "orders/s",
        "p50 ms", "p99 ms", "Redis", ""]


def table(results):
    """Rounds of one strategy that follow each other share its name."""
    rows = ["<tr>" + "".join(f"<th>{word}</th>" for word in HEAD) + "</tr>"]
    for strategy, rounds in groupby(results, key=lambda one: one.strategy):
        rounds = list(rounds)
        name = (f'<td class="name" rowspan="{len(rounds)}">{escape(strategy.title)}'
                f"<small>{escape(strategy.about)}</small></td>")
        for index, one in enumerate(rounds):
            rows.append("<tr>" + ("" if index else name) + cells(one) + "</tr>")
    return "<table>" + "".join(rows) + "</table>"


def cells(one):
    counts = [one.load.buyers, one.load.units, one.sold, one.oversold, one.left, one.duplicates,
              one.errors]
    tag = "good" if one.verdict == "exact" else "bad"
    words = one.verdict.lower() + ("" if one.as_expected else " — not expected")
    said = f'<span class="tag {tag}">{words}</span>'
    if one.fault:
        said += f"<small>{escape(one.fault)}</small>"
    texts = [*(f"{number:,}" for number in counts), f"{one.rate:,.0f}",
             f"{one.percentile(0.5) * 1000:,.1f}", f"{one.percentile(0.99) * 1000:,.1f}",
             f"{one.redis_commands:,.1f}" if one.redis_commands else "–", said]
    return "".join(f"<td>{text}</td>" for text in texts)


def banner(results):
    wrong = [one for one in results if not one.as_expected]
    exact = [one for one in results if one.strategy.exact]
    if wrong:
        names = ", ".join(sorted({one.strategy.name for one in wrong}))
        return f'<div class="banner bad"><b>Not as it should be:</b> {escape(names)}.</div>'
    loose = sum(one.oversold for one in results)
    words = f" Without protection {loose:,} units were sold that nobody had." if loose else ""
    return (
        f'<div class="banner"><b>As it should be.</b> In {len(exact)} rounds with protection '
        f"{sum(one.sold for one in exact):,} units were sold, each of them once, and none was left."
        f"{words}</div>")


def ratios(results):
    """The ratios that the sale is about."""
    lines = []
    for one in comparisons.compared(results):
        lines.append(f"<li>{one.buyers:,} buyers: <b>{escape(one.fast)}</b> sold "
                     f"<b>{one.speed:.1f}</b> times as fast as <b>{escape(one.slow)}</b>; its p99 is "
                     f"{one.tail:.2f} of the other's</li>")
    return f'<ul class="small">{"".join(lines)}</ul>' if lines else ""


def conditions(settings):
    return escape(" · ".join([
        time.strftime("%Y-%m-%d %H:%M"),
        f"{os.cpu_count()} processors, {platform.machine()}",
        f"{settings.threads} threads and {settings.connections} connections to each store per instance",
        f"stock in {settings.stock}; {settings.work / 1000:g} ms of work between looking and writing",
    ]))


def keys(crowds):
    colours = ("two", "one") if len(crowds) > 1 else ("two",)
    return "".join(
        f'<span class="key" style="background:var(--{colour})"></span>{buyers:,} buyers'
        for buyers, colour in zip(crowds, colours))


def page(results, settings):
    groups = grouped(results)
    crowds = sorted({one.load.buyers for one in results})
    biggest = [one for _, rounds in groups for one in rounds if one.load.buyers == crowds[-1]]
    return Template((HERE / "page.html").read_text()).substitute(
        style=(HERE / "report.css").read_text(),
        fault=escape(f", with a fault: {settings.fault}") if settings.fault else "",
        banner=banner(results),
        table=table(results),
        ratios="" if settings.fault else ratios(results),
        keys=keys(crowds),
        crowd=f"{crowds[-1]:,}",
        throughput=plots.throughput(groups),
        latency=plots.latency(biggest),
        courses=plots.courses(biggest),
        conditions=conditions(settings))
