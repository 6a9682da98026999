"""Measures engines that share a join: hybrid.py BUILD_DIR OUT.json [--sms 0,8] [--quick]; prints tables.

Every time is one library call in a warm process that makes a neighbour table in host memory, index included. With
--sms the GPU may use only so many of its multiprocessors (0: all), so that both engines are about as fast.
"upper" is the sum of both throughputs, as a time: 1 / (1 / t_cpu + 1 / t_gpu); "reached" is upper / t_hybrid.
Needs nothing but Python: it runs where the GPU is.
"""
import argparse
import json
import os
import pathlib
import subprocess

from gpu import environment
from points import generate

# name, generator, dimension, points, eps
ROWS = [("Expo2D2M", "expo", 2, 2_000_000, 0.0005),
        ("Expo2D10M", "expo", 2, 10_000_000, 0.0001),
        ("Expo4D2M", "expo", 4, 2_000_000, 0.004),
        ("Expo6D2M", "expo", 6, 2_000_000, 0.008),
        ("Expo8D2M", "expo", 8, 2_000_000, 0.01)]
ENGINES = ["cuda", "point", "cpu", "ego", "auto", "hybrid", "hybrid/static-queries", "hybrid/static-candidates"]
ARGUMENTS = {"point": ["cuda", "lid-unicomp,queue,1"], "ego": ["cpu", "ego"]}


def run(build, path, eps, engine, sms, repeats):
    """One program's JSON, or the reason why there is none."""
    variables = os.environ | ({"KITH_CUDA_SMS": str(sms)} if sms else {})
    arguments = [build / "bench" / "kith_bench", path, str(eps), "table", str(repeats), "0"]
    try:
        done = subprocess.run(arguments + ARGUMENTS.get(engine, engine.split("/")), capture_output=True, text=True, check=False,
                              timeout=60, env=variables)
    except subprocess.TimeoutExpired:
        return {"failed": "took longer than 60 s"}
    if done.returncode:
        return {"failed": done.stderr.strip()}
    result = json.loads(done.stdout)
    result["ms"] = 1e3 * min(result["seconds"])
    return result


def measure(build, row, sms, engines, repeats):
    name, kind, dim, n, eps = row
    path = generate(build, kind, dim, n)
    measured = {"name": name, "eps": eps, "sms": sms}
    for engine in engines:
        measured[engine] = run(build, path, eps, engine, sms, repeats)
    if all("ms" in measured.get(engine, {}) for engine in ("cuda", "cpu")):
        measured["upper_ms"] = 1 / (1 / measured["cpu"]["ms"] + 1 / measured["cuda"]["ms"])
    return measured


def cell(measured, engine):
    result = measured.get(engine, {"failed": "not run"})
    if "failed" in result:
        return "-"
    text = f"{result['ms']:.3g}"
    engines = result["report"].get("engines")
    if engines:
        share = engines[0]["candidates"] / max(1, sum(e["candidates"] for e in engines))
        text += f" ({100 * share:.0f} %, k {result['report']['imbalance']:.2f})"
    return text


def print_head(engines):
    print("| data, eps | " + " | ".join(engines) + " | upper | reached |")
    print("| --- " * (len(engines) + 3) + "|")


def print_row(r, engines):
    reached = r["upper_ms"] / r["hybrid"]["ms"] if "upper_ms" in r and "ms" in r.get("hybrid", {}) else 0
    print(f"| {r['name']} {r['eps']:g} | " + " | ".join(cell(r, engine) for engine in engines) +
          f" | {r.get('upper_ms', 0):.3g} | {reached:.2f} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--commit", default="unknown", help="what was measured")
    arguments.add_argument("--sms", default="0,8", help="multiprocessors to use, 0: all")
    arguments.add_argument("--engines", default=",".join(ENGINES))
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--quick", action="store_true", help="one row")
    options = arguments.parse_args()
    engines = options.engines.split(",")
    results = environment() | {"commit": options.commit, "rows": []}
    for sms in map(int, options.sms.split(",")):
        print(f"\nmultiprocessors: {sms or 'all'}")
        print_head(engines)
        for row in ROWS[:1] if options.quick else ROWS:
            results["rows"].append(measure(options.build, row, sms, engines, options.repeats))
            print_row(results["rows"][-1], engines)
            options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
