"""Plots as SVG, coloured by the page's style sheet: classes, no colours here."""

import math
from html import escape

WIDTH = 1000
LABELS = 190


def text(x, y, words, style="", anchor="start"):
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text {place} class="{style}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def figure(height, parts, width=WIDTH, label=""):
    return (f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
            + "".join(parts) + "</svg>")


def nice_step(most, steps=5):
    """A round distance between grid lines."""
    raw = max(most, 1e-9) / steps
    power = 10 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)


def style_of(result):
    """Wrong ones are shown, but never as the fastest."""
    return "wrong" if result.strategy.exact is False or not result.as_expected else "right"


def throughput(groups):
    """Bars: a row for each strategy, a bar for each crowd. `groups`: [(strategy, [rounds])]."""
    most = max((one.rate for _, rounds in groups for one in rounds), default=1) or 1
    scale = (WIDTH - LABELS - 170) / most
    parts, y, bar = [], 24, 13
    tallest = max((len(rounds) for _, rounds in groups), default=1)
    bottom = y + len(groups) * (tallest * bar + 12)
    step = nice_step(most)
    for index in range(int(most / step) + 1):
        x = LABELS + index * step * scale
        parts.append(line(x, 16, x, bottom - 6, "grid"))
        parts.append(text(x, 11, f"{index * step:g}", "tick", "middle"))
    for strategy, rounds in groups:
        parts.append(text(LABELS - 12, y + tallest * bar / 2 + 4, strategy.title, "label", "end"))
        for index, one in enumerate(rounds):
            top = y + index * bar
            parts.append(f'<rect x="{LABELS}" y="{top}" width="{max(one.rate * scale, 1):.1f}" '
                         f'height="{bar - 2}" rx="2" class="bar crowd{index} {style_of(one)}"/>')
            words = f"{one.rate:,.0f}" + (f"  ({one.oversold} oversold)" if one.oversold else "")
            parts.append(text(LABELS + one.rate * scale + 6, top + bar - 3, words, "value"))
        y += tallest * bar + 12
    return figure(bottom, parts, label="Orders per second of each strategy")


def latency(rounds):
    """A ridge for each strategy on a logarithmic axis, with its median and its 99th percentile."""
    samples = [value for one in rounds for value in one.latencies]
    low = math.floor(math.log10(max(min(samples, default=0.001), 1e-4)))
    high = math.ceil(math.log10(max(samples, default=1)))
    high = max(high, low + 1)
    span = WIDTH - LABELS - 90
    row, bins = 46, 120

    def place(seconds):
        return LABELS + (math.log10(max(seconds, 10 ** low)) - low) / (high - low) * span

    bottom = 30 + len(rounds) * row
    parts = []
    for power in range(low, high + 1):
        x = place(10 ** power)
        words = f"{10 ** power:g} s" if power >= 0 else f"{10 ** (power + 3):g} ms"
        parts += [line(x, 18, x, bottom, "grid"), text(x, 12, words, "tick", "middle")]
    for index, one in enumerate(rounds):
        base = 30 + (index + 1) * row - 8
        parts.append(text(LABELS - 12, base - 4, one.strategy.title, "label", "end"))
        parts.append(line(LABELS, base, LABELS + span, base, "grid"))
        if not one.latencies:
            continue
        parts.append(ridge(one, place, base, row - 10, bins, span))
        for share, style in ((0.5, "median"), (0.99, "tail")):
            x = place(one.percentile(share))
            parts.append(line(x, base, x, base - row + 16, style))
        words = f"{one.percentile(0.5) * 1000:,.0f} / {one.percentile(0.99) * 1000:,.0f} ms"
        parts.append(text(WIDTH - 2, base - 4, words, "value", "end"))
    return figure(bottom + 4, parts, label="Latency of each strategy: median and 99th percentile")


def ridge(one, place, base, height, bins, span):
    counts = [0.0] * bins
    for value in one.latencies:
        at = int((place(value) - LABELS) / span * bins)
        counts[min(bins - 1, max(0, at))] += 1
    # Neighbours are averaged: a ridge, not a comb.
    smooth = [sum(counts[max(0, i - 2):i + 3]) / len(counts[max(0, i - 2):i + 3]) for i in range(bins)]
    most = max(smooth) or 1
    points = [f"{LABELS},{base}"]
    points += [f"{LABELS + (i + 0.5) * span / bins:.1f},{base - value / most * height:.1f}"
               for i, value in enumerate(smooth)]
    points.append(f"{LABELS + span},{base}")
    return f'<polygon points="{" ".join(points)}" class="ridge {style_of(one)}"/>'


def courses(rounds):
    """A small plot for each strategy: units left, orders taken, and how many there should be. Each
    has its own time: next to the slowest one the others would be a vertical line."""
    columns, width, height = 4, WIDTH / 4, 170
    rows = math.ceil(len(rounds) / columns)
    parts = [course(one, (index % columns) * width, (index // columns) * height, width, height)
             for index, one in enumerate(rounds)]
    return figure(rows * height + 4, parts, label="Stock and orders over time")


def course(one, left, top, width, height):
    inner, body, head = width - 34, height - 58, 26
    units = one.load.units
    most = max(units, max((point[1] for point in one.course), default=0), one.sold) * 1.08

    last = max(one.seconds, one.course[-1][0] if one.course else 0)
    points = [(0.0, 0, units), *one.course, (last, one.sold, one.left)]
    longest = last or 1

    def x_of(seconds):
        return left + 10 + seconds / longest * inner

    def y_of(number):
        return top + head + body - number / most * body

    stock = " ".join(f"{x_of(t):.1f},{y_of(rest):.1f}" for t, _, rest in points)
    orders = " ".join(f"{x_of(t):.1f},{y_of(taken):.1f}" for t, taken, _ in points)
    area = f"{x_of(0):.1f},{y_of(0):.1f} {stock} {x_of(last):.1f},{y_of(0):.1f}"
    over = "orders over" if one.oversold else "orders"
    return "".join([
        text(left + 10, top + 14, one.strategy.title, "label strong"),
        f'<polygon points="{area}" class="stock"/>',
        f'<polyline points="{orders}" class="{over}"/>',
        line(x_of(0), y_of(units), x_of(longest), y_of(units), "limit"),
        line(x_of(0), y_of(0), x_of(longest), y_of(0), "axis"),
        text(x_of(0), top + height - 16, "0 s", "tick"),
        text(x_of(longest), top + height - 16, f"{longest:.2f} s", "tick", "end"),
    ])
