"""Draws the times of engines that share a join: hybrid_figure.py RESULTS.json OUT.svg [table|count|degrees]

RESULTS.json is what hybrid.py measured; tables are drawn unless another result is named.
Bars of one row of the results are relative to the faster of CPU and GPU alone: below 1, sharing pays.
"""
import json
import sys

SERIES = [("cuda", "GPU alone", "#4c72b0"), ("point", "GPU alone, kernel point (cut)", "#a6bddb"),
          ("cpu", "CPU alone (grid)", "#dd8452"), ("ego", "CPU alone (ego)", "#f0b88d"),
          ("hybrid", "shared, dynamic", "#55a868"), ("hybrid/static-queries", "shared, static-queries", "#c44e52"),
          ("hybrid/static-candidates", "shared, static-candidates", "#8172b3"),
          ("upper_ms", "sum of both throughputs", "#999999")]
RESULTS = {"table": "a neighbour table", "count": "a count", "degrees": "a count for every point"}
BAR, GAP, HEIGHT, LEFT, TOP, MOST = 16, 24, 260, 60, 30, 4.0


def value(row, key):
    if key == "upper_ms":
        return row.get("upper_ms")
    return row.get(key, {}).get("ms")


def bars(rows):
    parts = []
    for i, row in enumerate(rows):
        best = min(value(row, "cuda"), value(row, "cpu"))
        x = LEFT + i * (len(SERIES) * BAR + GAP)
        for k, (key, _, color) in enumerate(SERIES):
            ms = value(row, key)
            if ms is None:
                continue
            height = min(ms / best, MOST) / MOST * HEIGHT
            parts.append(f'<rect x="{x + k * BAR}" y="{TOP + HEIGHT - height:.1f}" width="{BAR - 2}" height="{height:.1f}" '
                         f'fill="{color}"><title>{ms:.0f} ms</title></rect>')
        parts.append(f'<text x="{x}" y="{TOP + HEIGHT + 16}">{row["name"]} {row["eps"]:g}</text>')
    return parts


def axis(width):
    parts = []
    for tick in range(int(MOST) + 1):
        y = TOP + HEIGHT - tick / MOST * HEIGHT
        parts.append(f'<line x1="{LEFT - 6}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{"#000" if tick == 1 else "#ddd"}"/>')
        parts.append(f'<text x="{LEFT - 30}" y="{y + 4:.1f}">{tick}</text>')
    return parts


def legend():
    return [f'<rect x="{LEFT + 190 * (k % 4)}" y="{TOP + HEIGHT + 30 + 20 * (k // 4)}" width="12" height="12" fill="{color}"/>'
            f'<text x="{LEFT + 190 * (k % 4) + 18}" y="{TOP + HEIGHT + 41 + 20 * (k // 4)}">{name}</text>'
            for k, (_, name, color) in enumerate(SERIES)]


def main():
    results = json.load(open(sys.argv[1], encoding="utf-8"))
    what = sys.argv[3] if len(sys.argv) > 3 else "table"
    first = next(r["sms"] for r in results["rows"] if r["sms"])
    rows = [r for r in results["rows"] if r["sms"] == first and r.get("what", "table") == what]
    width = max(LEFT + len(rows) * (len(SERIES) * BAR + GAP), LEFT + 4 * 190)
    title = (f'{results["gpu"]}, {rows[0]["sms"]} multiprocessors, and 16 cores: time of {RESULTS[what]}, '
             "over that of the faster engine alone")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 80}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{LEFT}" y="18">{title}</text>']
    lines += axis(width) + bars(rows) + legend() + ["</svg>"]
    open(sys.argv[2], "w", encoding="utf-8").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
