"""The grid beside epsilon grid order, and what the plan chooses: ego.py BUILD OUT.json

The synthetic sets of the papers on Super-EGO and HEGJoin: uniform and exponential (lambda 40) in 2 to 8 dimensions,
float32. Time is that of the processors, of the best of some counts by the command, everything included. Pairs must not differ. Prints a table.
"""
import argparse
import json
import pathlib

from measure import measure
from points import generate

WAYS = {"grid": ["--algorithm", "grid"], "ego": ["--algorithm", "ego"], "auto": []}
N = 500_000
EPS = {("unif", 2): [0.001, 0.004], ("unif", 4): [0.02, 0.05], ("unif", 6): [0.08, 0.13], ("unif", 8): [0.15, 0.22],
       ("expo", 2): [0.0002, 0.0008], ("expo", 4): [0.003, 0.006], ("expo", 6): [0.005, 0.01, 0.015],
       ("expo", 8): [0.008, 0.013, 0.018]}


def row(name, best):
    grid, ego, auto = (best[way] for way in WAYS)
    cells = [name, f"{grid['pairs']:.3g}", f"{grid['cpu_seconds']:.3f} ({grid['tested']:.2g})",
             f"{ego['cpu_seconds']:.3f} ({ego['tested']:.2g})", f"{ego['cpu_seconds'] / grid['cpu_seconds']:.2f}",
             f"{auto['algorithm']} {auto['cpu_seconds']:.3f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    results = {}
    print("| data, eps | pairs | grid (tests) | ego (tests) | ego / grid | auto |\n" + "| --- " * 6 + "|")
    for (kind, dim), several in EPS.items():
        path = generate(options.build, kind, dim, N)
        for eps in several:
            name = f"{kind.title()}{dim}D {N // 1000}k, {eps}"
            best = results[name] = measure(options.build, path, eps, WAYS, options.rounds)
            assert len({way["pairs"] for way in best.values()}) == 1, name
            print(row(name, best), flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
