"""The techniques for many dimensions, each on and off: high.py BUILD OUT.json

Like figures 6 to 9 of Gowanlock and Karsin's paper, for the CPU: three synthetic sets, whose columns are alike
(REORDER cannot help there), and two real ones that come with scikit-learn: the digits, and patches of 8 x 8 pixels
of its two sample images, both as 64 columns in [0, 1]. Time is that of the processors, which a busy machine changes
less than time on the wall: the least of some counts by the command, everything included. Pairs must not differ.
"""
import argparse
import json
import pathlib

import numpy as np

from measure import measure
from points import generate

SWITCHES = {"automatic": [], "no REORDER": ["--no-reorder"], "no SORTIDU": ["--no-sortidu"],
            "no SHORTC": ["--no-shortc"], "none of the three": ["--no-reorder", "--no-sortidu", "--no-shortc"],
            "brute": ["--brute"], "brute, no SHORTC": ["--brute", "--no-shortc"],
            "grid": ["--cell-side", "1"], "grid, no REORDER": ["--cell-side", "1", "--no-reorder"],
            "grid, no SORTIDU": ["--cell-side", "1", "--no-sortidu"],
            "grid, no SHORTC": ["--cell-side", "1", "--no-shortc"]}
COLUMNS = [2, 4]  # of the grid, and of the order of panels


def digits():
    from sklearn.datasets import load_digits
    return load_digits().data / 16


def patches(n=100_000):
    from sklearn.datasets import load_sample_images
    rng = np.random.default_rng(1)
    images = [image.mean(axis=2) / 255 for image in load_sample_images().images]
    rows = np.empty((n, 64))
    for i in range(n):
        image = images[i % len(images)]
        y, x = (rng.integers(0, side - 8) for side in image.shape)
        rows[i] = image[y:y + 8, x:x + 8].ravel()
    return rows


def real(build, name, make):
    path = build / "bench" / "data" / f"{name}.npy"
    if not path.exists():
        np.save(path, make().astype(np.float32))
    return path


def sets(build):
    yield "Syn16D 50k, 0.04", generate(build, "expo", 16, 50_000), 0.04
    yield "Syn32D 50k, 0.08", generate(build, "expo", 32, 50_000), 0.08
    yield "Syn64D 20k, 0.16", generate(build, "expo", 64, 20_000), 0.16
    yield "digits 64D 1797, 1", real(build, "digits", digits), 1.0
    yield "patches 64D 100k, 0.05", real(build, "patches", patches), 0.05


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    switches = dict(SWITCHES)
    for k in COLUMNS:
        switches[f"brute, order of {k} columns"] = ["--brute", "--index-dims", str(k)]
        switches[f"grid over {k} columns"] = ["--cell-side", "1", "--index-dims", str(k)]
    results = {}
    for name, path, eps in sets(options.build):
        results[name] = measure(options.build, path, eps, switches, options.rounds)
        assert len({r["pairs"] for r in results[name].values()}) == 1, name
        print(name, {way: round(r["cpu_seconds"], 3) for way, r in results[name].items()}, flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
