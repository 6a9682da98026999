"""The experiments of the load-balancing paper, on the GPU at hand: paper.py BUILD_DIR OUT.json [--ncu]

Counts the pairs of each data set with join_tile and with join_point: each optimisation of the paper off and on, alone
and combined. Times are those of the kernel's stage (a join in a fresh process: index and the order of the queries are
not in them). With --ncu also the warp execution efficiency, the share of lanes that are active in an instruction. Then
the whole neighbour table, left on the device: index, batches and pairs included, the fastest of three warm calls.
"""
import argparse
import json
import pathlib
import re
import subprocess

from gpu import environment
from points import generate

DATA = [("Expo2D2M", "expo", 2, 0.0005), ("Expo2D2M", "expo", 2, 0.002), ("Expo4D2M", "expo", 4, 0.004),
        ("Expo6D2M", "expo", 6, 0.008), ("Unif2D2M", "unif", 2, 0.01), ("Unif4D2M", "unif", 4, 0.03),
        ("Unif6D2M", "unif", 6, 0.08)]
# cells, order, threads per query
COMBINATIONS = [("full", "input", 1), ("unicomp", "input", 1), ("lid-unicomp", "input", 1), ("full", "input", 8),
                ("full", "workload", 1), ("full", "queue", 1), ("lid-unicomp", "queue", 1), ("lid-unicomp", "queue", 8)]
ACTIVE = "smsp__thread_inst_executed_per_inst_executed.ratio"


def count(command):
    return json.loads(subprocess.run(command + ["--json"], capture_output=True, text=True, check=True).stdout)


def efficiency(command):
    """Active lanes of join_point's instructions, in percent."""
    profile = subprocess.run(["ncu", "--clock-control", "none", "-k", "regex:join_point", "-c", "1", "--metrics", ACTIVE]
                             + command + ["-q"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"ratio\s+(?:\S+\s+)?([\d.]+)\s*$", profile, re.M)
    return round(100 * float(found.group(1)) / 32, 1) if found else None


def table_ms(build, path, eps, *point):
    """The neighbour table on the device."""
    command = [str(build / "bench" / "kith_bench"), str(path), str(eps), "table", "3", "0", "device", *point]
    try:
        return 1e3 * min(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["seconds"])
    except subprocess.CalledProcessError:
        return None  # pairs, their keys and the table together do not fit the device


def measure(build, name, kind, dim, eps, profile):
    path = generate(build, kind, dim, 2_000_000)
    base = [str(build / "cli" / "kith"), "join", str(path), "--eps", str(eps), "--engine", "cuda"]
    tile = count(base)
    row = {"name": name, "eps": eps, "pairs": tile["pairs"], "tile_ms": 1e3 * tile["seconds"]["join"],
           "tile_table_ms": table_ms(build, path, eps), "point": []}
    for cells, order, threads in COMBINATIONS:
        command = base + ["--kernel", "point", "--cells", cells, "--order", order, "--threads-per-query", str(threads)]
        point = count(command)
        entry = {"cells": cells, "order": order, "threads": threads, "ms": 1e3 * point["seconds"]["join"],
                 "order_ms": 1e3 * point["seconds"]["index"], "same": point["pairs"] == tile["pairs"],
                 "table_ms": table_ms(build, path, eps, f"{cells},{order},{threads}")}
        if profile:
            entry["wee"] = efficiency(command)
        row["point"].append(entry)
    return row


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--ncu", action="store_true", help="profile, too")
    arguments.add_argument("--commit", default="unknown", help="what was measured")
    options = arguments.parse_args()
    rows = [measure(options.build, *data, options.ncu) for data in DATA]
    results = environment() | {"commit": options.commit, "rows": rows}
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    for row in rows:
        print(row["name"], row["eps"], f"tile {row['tile_ms']:.2f} ms;", ", ".join(
            f"{e['cells']} {e['order']} {e['threads']}: {e['ms']:.1f} ms ({e.get('wee')} %), table {e['table_ms']} ms" for e in row["point"]))


if __name__ == "__main__":
    main()
