"""The results as a table for the terminal, as SVG plots, and as one HTML page."""

import html

COLUMNS = [
    ("pairs_per_second", "pairs/s", "{:,.0f}"),
    ("pair_p50", "pair p50 µs", "{:,.0f}"),
    ("wait_p99", "wait p99 µs", "{:,.0f}"),
    ("wait_max", "wait max µs", "{:,.0f}"),
    ("handover_p50", "hand-over p50 µs", "{:,.0f}"),
    ("starved", "starved", "{:.0f}"),
    ("client_us", "client CPU µs", "{:,.1f}"),
    ("server_us", "server CPU µs", "{:,.1f}"),
    ("commands", "commands", "{:.1f}"),
]


def best_peer(columns):
    """The peer that does most; `bare` and holdfast are none."""
    rates = {name: result["pairs_per_second"] for name, result in columns.items()
             if result and name not in ("holdfast", "bare")}
    return max(rates, key=rates.get) if rates else None


def lines(report):
    """Each row's lines: (row, peer, texts of the columns)."""
    for row, columns in report["rows"].items():
        for peer, result in columns.items():
            yield row, peer, [
                text.format(result[key]) if result and result.get(key) is not None else "–"
                for key, _, text in COLUMNS]


def comparison(columns):
    """How holdfast stands in one row."""
    ours, best = columns.get("holdfast"), best_peer(columns)
    if not ours or not best:
        return ""
    words = f"holdfast : {best} = {ours['pairs_per_second'] / columns[best]['pairs_per_second']:.2f} ×"
    if columns.get("bare"):
        words += f", : bare = {ours['pairs_per_second'] / columns['bare']['pairs_per_second']:.2f} ×"
    return words


def table(report):
    text, last = [], None
    head = f"{'':14}" + "".join(f"{title:>18}" for _, title, _ in COLUMNS)
    for row, peer, values in lines(report):
        if row != last:
            text += ["", f"{row}    {comparison(report['rows'][row])}", head]
            last = row
        text.append(f"{peer:14}" + "".join(f"{value:>18}" for value in values))
    text.append("")
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    text.append(f"versions: {versions}; Redis {report['redis']}; "
                f"{report['rounds']} rounds of {report['seconds']:g} s, medians")
    text += [f"without {name}: {reason}" for name, reason in report["left_out"].items()]
    return "\n".join(text)


def plot(row, columns):
    """Pairs per second as bars."""
    results = [(name, result["pairs_per_second"], result["spread"])
               for name, result in columns.items() if result]
    most = max((spread[1] for _, _, spread in results), default=1)
    height = 26 * len(results) + 34
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" '
             'font-family="sans-serif" font-size="13">',
             f'<text x="8" y="18" font-weight="bold">{html.escape(row)}: pairs per second</text>']
    for number, (name, rate, (low, high)) in enumerate(results):
        y = 30 + 26 * number
        colour = {"holdfast": "#1f6f5c", "bare": "#999999"}.get(name, "#7fa7d1")
        width, left, right = (400 * value / most for value in (rate, low, high))
        parts += [f'<text x="112" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>',
                  f'<rect x="120" y="{y}" width="{width:.1f}" height="18" fill="{colour}"/>',
                  f'<line x1="{120 + left:.1f}" x2="{120 + right:.1f}" y1="{y + 9}" y2="{y + 9}" '
                  'stroke="#333"/>',
                  f'<text x="{126 + right:.1f}" y="{y + 14}">{rate:,.0f}</text>']
    return "".join(parts) + "</svg>"


def write(report, directory):
    body = []
    for number, (row, columns) in enumerate(report["rows"].items(), 1):
        drawing = plot(row, columns)
        (directory / f"row-{number}.svg").write_text(drawing, encoding="utf-8")
        head = "".join(f"<th>{html.escape(title)}</th>" for _, title, _ in COLUMNS)
        rows = ""
        for name, peer, values in lines(report):
            if name == row:
                cells = "".join(f"<td>{value}</td>" for value in values)
                rows += f"<tr><th>{html.escape(peer)}</th>{cells}</tr>"
        body.append(f"<h2>{html.escape(row)}</h2><p>{html.escape(comparison(columns))}</p>{drawing}"
                    f"<table><tr><th></th>{head}</tr>{rows}</table>")
    notes = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    notes += "".join(f"; without {name}: {reason}" for name, reason in report["left_out"].items())
    (directory / "index.html").write_text(
        "<!doctype html><meta charset='utf-8'><title>Locks in Redis, compared</title><style>"
        "body{font-family:sans-serif;max-width:60em;margin:2em auto}"
        "td,th{padding:.2em .6em;text-align:right}"
        "table{border-collapse:collapse}tr:nth-child(even){background:#f4f4f4}</style>"
        f"<h1>Locks in Redis, compared</h1><p>Redis {html.escape(report['redis'])}, "
        f"{report['processors']} processors, {report['rounds']} rounds of {report['seconds']:g} s in "
        "turns, medians. Bars: the median; lines: the smallest and the largest round. "
        f"{html.escape(notes)}</p>" + "".join(body), encoding="utf-8")
