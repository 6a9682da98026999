"""Measures kith on a GPU: gpu.py BUILD_DIR OUT.json [--quick] [--probe PROGRAM]; prints a table.

Every row is one library call in a warm process, index included; the first call of the process is reported beside it.
"device": points and table in the memory of the GPU; "cuda": both in host memory; "count" has no table.
Needs nothing but Python: it runs where the GPU is.
"""
import argparse
import datetime
import json
import pathlib
import re
import shutil
import subprocess

from points import generate
from warm import is_wanted

# name, generator, dimension, points, eps, and the goals in ms: count, table on device, table on host
ROWS = [("Unif2D2M", "unif", 2, 2_000_000, 0.002, None, 0.9, 6),
        ("Unif3D2M", "unif", 3, 2_000_000, 0.02, None, 2.2, None),
        ("Expo2D2M", "expo", 2, 2_000_000, 0.0005, 1.3, 5, 110),
        ("Expo2D10M", "expo", 2, 10_000_000, 0.0001, None, 8, 115),
        ("Expo2D2M", "expo", 2, 2_000_000, 0.002, 12, 60, 1600),
        ("Expo4D2M", "expo", 4, 2_000_000, 0.004, None, 15, 62),
        ("Expo6D2M", "expo", 6, 2_000_000, 0.008, None, 30, 45),
        ("Expo8D2M", "expo", 8, 2_000_000, 0.015, None, 120, 140),
        ("Unif6D2M", "unif", 6, 2_000_000, 0.05, None, 4, 5),
        ("Syn16D500k", "expo", 16, 500_000, 0.04, None, None, 60),
        ("Syn64D500k", "expo", 64, 500_000, 0.16, None, None, 80),
        ("Syn16D2M", "expo", 16, 2_000_000, 0.05, None, None, 1000),
        ("Syn64D2M", "expo", 64, 2_000_000, 0.18, None, None, 2500)]
SCALING = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]


def run(build, path, eps, what, engine, repeats):
    """One program's JSON, or the reason why there is none."""
    done = subprocess.run([build / "bench" / "kith_bench", path, str(eps), what, str(repeats), "0", engine],
                          capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        return {"failed": done.stderr.strip()}
    result = json.loads(done.stdout)
    result["ms"] = 1e3 * min(result["seconds"])
    return result


def measure_row(build, row, repeats):
    name, kind, dim, n, eps, *goals = row
    path = generate(build, kind, dim, n)
    measured = {"name": name, "n": n, "dim": dim, "eps": eps}
    for label, what, engine, goal in zip(("count", "device", "host"), ("count", "table", "table"),
                                         ("device", "device", "cuda"), goals):
        measured[label] = run(build, path, eps, what, engine, repeats)
        measured[label]["goal_ms"] = goal
    return measured


def measure_scaling(build, n, repeats):
    """Uniform in 2-D with 12.6 neighbours a point, whatever n."""
    eps = 2 / n**0.5
    path = generate(build, "unif", 2, n)
    return {"n": n, "eps": eps, "count": run(build, path, eps, "count", "device", repeats),
            "device": run(build, path, eps, "table", "device", repeats)}


def cell(result):
    if "failed" in result:
        return "failed"
    goal = f" ({result['goal_ms']:g})" if result.get("goal_ms") else ""
    return f"{result['ms']:.3g}{goal}"


def print_table(results):
    print("| data, eps | pairs | count | table on device | table on host | cold |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in results["rows"]:
        device = r["device"]
        print(f"| {r['name']} {r['eps']:g} | {device.get('pairs', 0):.3g} | {cell(r['count'])} | {cell(device)} | "
              f"{cell(r['host'])} | {1e3 * r['host'].get('cold', 0):.3g} |")
    for s in results["scaling"]:
        print(f"n = {s['n']:.0e}: count {cell(s['count'])} ms, table {cell(s['device'])} ms")


def graphics():
    """The name and the driver of the GPU."""
    if not shutil.which("nvidia-smi"):
        return ["none"]
    return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                          capture_output=True, text=True, check=False).stdout.strip().split(", ")


def environment():
    smi = graphics()
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "gpu": smi[0], "driver": smi[-1]}


def probe(program):
    """The yardstick's own lines, as it prints them."""
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    return [re.sub(r"\s+", " ", line) for line in done.stdout.splitlines()]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--commit", default="unknown", help="what was measured")
    arguments.add_argument("--quick", action="store_true", help="one row, few repeats")
    arguments.add_argument("--sets", default="", help="those whose names contain one of these, with commas between")
    arguments.add_argument("--probe", help="a program to run beside kith, whose output is kept")
    options = arguments.parse_args()
    results = environment() | {"commit": options.commit}
    rows = [row for row in ROWS if is_wanted(row[0], options.sets)]
    rows = rows[:1] if options.quick else rows
    results["rows"] = [measure_row(options.build, row, 3 if options.quick else 9) for row in rows]
    sizes = [] if options.sets else SCALING[:2] if options.quick else SCALING
    results["scaling"] = [measure_scaling(options.build, n, 3) for n in sizes]
    if options.probe:
        results["probe"] = probe(options.probe)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print_table(results)


if __name__ == "__main__":
    main()
