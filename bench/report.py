"""report.py RESULTS.json FOLDER: writes table.md (also to standard output), speed.png and scaling.png."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend has to be chosen first)

COLORS = {"kith": "#c0392b", "nanoflann": "#34618f", "scipy": "#7fa6c9", "scikit-learn": "#c3ccd4",
          "faiss": "#8d9a5b"}


def seconds(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def label(row):
    size = f"{row['n'] // 1_000_000}M" if row["n"] % 1_000_000 == 0 else f"{row['n'] // 1000}k"
    return f"{row['name']} {size}, {row['eps']:g}"


def markdown(header, rows):
    lines = [header, ["---"] * len(header)] + rows
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(total):
    return " / ".join(seconds(total[k]) for k in ("min", "median", "max"))


def fastest_of(result):
    return next((p for p in result["peers"] if p["peer"] == result["fastest"]), None)


def speed_row(row, what):
    result = row[what]
    peer = fastest_of(result)
    against = ["none ran", "", "", ""]
    if peer:
        against = [result["fastest"], f"{seconds(min(peer['build']))} / {seconds(min(peer['query']))}",
                   f"**{result['ratio']:.1f} x**", f"{result['strict_ratio']:.1f} x"]
    return [label(row), what, f"{result['pairs']:,}", spread(result["total"]), seconds(result["cold"]),
            *against, f"{result['others_cores']:.2f}"]


def speed_table(rows):
    header = ["data, eps", "result", "pairs", "kith: min / median / max", "first call", "fastest peer",
              "its build / query", "build + query over kith", "fastest query alone over kith",
              "cores used by others"]
    return markdown(header, [speed_row(row, what) for row in rows for what in ("count", "table")])


def peer_row(row, what, peer):
    start = [label(row), what, peer["peer"], peer.get("way") or "-"]
    if not peer["query"]:
        return start + [f"skipped: {peer['skipped']}", "", "", "", ""]
    over = peer["total"]["min"] / row[what]["total"]["min"]
    return start + [seconds(min(peer["build"])), seconds(min(peer["query"])), str(len(peer["query"])),
                    f"{over:.1f} x",
                    f"{peer['pairs_more']:+d}" if peer["pairs_more"] else "equal"]


def peers_table(rows):
    header = ["data, eps", "result", "peer", "its fastest way", "build", "query", "runs", "over kith", "pairs"]
    return markdown(header, [peer_row(row, what, peer) for row in rows for what in ("count", "table")
                             for peer in row[what]["peers"]])


def memory_table(rows):
    lines = [[label(row), f"{row['count']['memory_ratio']:.2f}", f"{row['table']['memory_ratio']:.2f}",
              f"{row['sorted']['memory_ratio']:.2f}",
              f"{row['sorted']['total']['min'] / row['table']['total']['min']:.2f}"] for row in rows]
    header = ["data, eps", "count: peak / input", "table: peak / (input + result)", "sorted table: the same",
              "sorted table: time over unsorted"]
    return markdown(header, lines)


def scaling_table(scaling):
    lines = []
    for s in scaling:
        count, table = s["count"], s["table"]
        lines.append([f"{s['n']:,}", f"{s['eps']:.3g}", seconds(count["total"]["min"]),
                      f"{1e9 * count['total']['min'] / s['n']:.1f}", f"{count['memory_ratio']:.2f}",
                      seconds(table["total"]["min"]), f"{1e9 * table['total']['min'] / s['n']:.1f}",
                      f"{table['memory_ratio']:.2f}"])
    header = ["n", "eps", "count", "ns a point", "peak / input", "table", "ns a point",
              "peak / (input + result)"]
    return markdown(header, lines)


NOTES = """Times are seconds, the least of the runs unless it says otherwise. A kith time is one library call in
a warm process, index included; the first call of the process is beside it. Peers build their index anew for
each run, and each runs in the fastest of its ways for the data; where a run of a peer takes longer than a few
seconds, there are few, or one, and that one also pays for fresh memory. Peak memory is what kith allocates, the input not included.

Pairs are ordered and without (i, i). scipy and scikit-learn compute in double and include the boundary, as kith
does: their counts must be equal. nanoflann computes in float32 and excludes it, so it may differ by the few
pairs whose distance is eps to within rounding. scipy's query_pairs gives only i < j. pykdtree finds k nearest
neighbours, optionally within a distance, but not all of them."""


def document(r):
    versions = ", ".join(f"{name} {version}" for name, version in r["versions"].items())
    busy = f" **Others used up to {r['others_cores']:.1f} cores meanwhile: do not trust times and ratios.**"
    busy = "" if r["quiet"] else busy
    quick = " **Quick mode: small data, not a result.**" if r["quick"] else ""
    return "\n\n".join([
        f"kith {r['kith']} ({r['commit']}) with {r['threads']} threads on {r['cpu']}, {r['cores']} cores, "
        f"{r['date'][:10]}; {versions}.{quick}{busy}",
        speed_table(r["rows"]), "Every peer:", peers_table(r["rows"]), "Memory, and the price of sorting:",
        memory_table(r["rows"]), "Uniform in 2-D, 12.6 neighbours a point:", scaling_table(r["scaling"]), NOTES,
        *(f"DISAGREEMENT: {d}" for d in r["disagreements"])]) + "\n"


def bars_of(row, what):
    """(name, least seconds, most seconds) of kith and of the peers that ran."""
    ran = [{"peer": "kith", **row[what]}] + [p for p in row[what]["peers"] if p["query"]]
    return [(p["peer"], p["total"]["min"], p["total"]["max"]) for p in ran]


def plot_bars(axes, rows, what):
    height = 0.8 / len(COLORS)
    for i, row in enumerate(rows):
        for name, least, most in bars_of(row, what):
            y = i + (list(COLORS).index(name) - 2) * height
            axes.barh(y, least, height * 0.9, color=COLORS[name], label=name if i == 0 else None)
            axes.plot([least, most], [y, y], color="#555555", linewidth=0.8)
        if row[what]["fastest"]:
            axes.text(row[what]["total"]["max"] * 1.15, i - 2 * height, f"{row[what]['ratio']:.1f} x",
                      va="center", fontsize=8, color=COLORS["kith"])
    axes.set_yticks(range(len(rows)), [label(row) for row in rows])
    axes.set_xscale("log")
    axes.set_xlabel("seconds, index included: least, and line to the most")
    axes.set_title({"count": "count", "table": "neighbour table"}[what])
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def plot_speed(r, path):
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharex=True, sharey=True)
    for axes, what in zip(panels, ("count", "table")):
        plot_bars(axes, r["rows"], what)
    panels[0].invert_yaxis()  # both: they share it
    panels[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(f"Exact epsilon self-join, {r['threads']} threads, {r['cpu']}{caveat(r)}", fontsize=10)
    finish(figure, path)


def plot_line(axes, scaling, value, what, color):
    n, y = [s["n"] for s in scaling], [value(s[what]) for s in scaling]
    axes.loglog(n, y, "o-", color=color, label={"count": "count", "table": "neighbour table"}[what])
    axes.loglog(n, [y[-1] * m / n[-1] for m in n], ":", color=color, linewidth=0.9)


def plot_scaling(r, path):
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8))
    values = [("seconds", lambda k: k["total"]["min"]), ("peak memory, MB", lambda k: k["peak_bytes"] / 1e6)]
    for axes, (name, value) in zip(panels, values):
        for what, color in (("count", COLORS["kith"]), ("table", COLORS["nanoflann"])):
            plot_line(axes, r["scaling"], value, what, color)
        axes.set_xlabel("points")
        axes.set_ylabel(name)
        axes.grid(color="#dddddd", linewidth=0.6)
    panels[0].legend(frameon=False)
    figure.suptitle("Uniform in 2-D, 12.6 neighbours a point; dotted: linear in n" + caveat(r), fontsize=10)
    finish(figure, path)


def caveat(r):
    """A picture travels without its text, so it carries the warning itself."""
    return "" if r["quiet"] and not r["quick"] else "\nNOT A RESULT: quick mode or busy machine"


def finish(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(results, folder):
    folder = pathlib.Path(folder)
    results = json.loads(pathlib.Path(results).read_text())
    text = document(results)
    (folder / "table.md").write_text(text)
    print(text, end="")
    plot_speed(results, folder / "speed.png")
    if results["scaling"]:
        plot_scaling(results, folder / "scaling.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
