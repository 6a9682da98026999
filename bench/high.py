"""The techniques for many dimensions, each on and off: high.py BUILD OUT.json [--engine cpu|cuda] [--sets Syn]

Like figures 6 to 9 of Gowanlock and Karsin's paper: synthetic sets, whose columns are alike (REORDER cannot help
there), and real ones that come with scikit-learn: the digits, and patches of 8 x 8 pixels of its two sample images,
both as 64 columns in [0, 1]. Counts; pairs must not differ.

cpu: seconds of the processors, which a busy machine changes less than time on the wall: the least of some counts by
the command, everything included. cuda: milliseconds of one library call in a warm process on a GPU, index included,
the least of some. In parentheses the pairs tested. Needs nothing but Python where real sets are there already, as
BUILD/bench/data/patches.npy: so it runs where the GPU is.
"""
import argparse
import pathlib

from gpu import environment
from measure import measure
from points import generate
from warm import bench, is_wanted, save

SWITCHES = {"automatic": [], "no REORDER": ["--no-reorder"], "no SORTIDU": ["--no-sortidu"],
            "no SHORTC": ["--no-shortc"], "none of the three": ["--no-reorder", "--no-sortidu", "--no-shortc"],
            "brute": ["--brute"], "brute, no SHORTC": ["--brute", "--no-shortc"],
            "grid": ["--cell-side", "1"], "grid, no REORDER": ["--cell-side", "1", "--no-reorder"],
            "grid, no SORTIDU": ["--cell-side", "1", "--no-sortidu"],
            "grid, no SHORTC": ["--cell-side", "1", "--no-shortc"]}
COLUMNS = [2, 4]  # of the grid, and of the order of panels

# The same, as kith_bench has them, as far as they mean something on a GPU.
WORDS = {"automatic": [], "no REORDER": ["no-reorder"], "no SHORTC": ["no-shortc"], "brute": ["brute"],
         "grid": ["side=1"]}
WORDS |= {f"grid over {k} columns": ["side=1", f"k={k}"] for k in (2, 4, 6)}
WORDS |= {"grid, no REORDER": ["side=1", "no-reorder"], "grid, no SHORTC": ["side=1", "no-shortc"]}

# name, dimension, points, eps; or the name of a real set and eps
SETS = {"cpu": [("Syn16D", 16, 50_000, 0.04), ("Syn32D", 32, 50_000, 0.08), ("Syn64D", 64, 20_000, 0.16),
                ("digits", 1.0), ("patches", 0.05)],
        "cuda": [("Syn16D", 16, 2_000_000, 0.05), ("Syn32D", 32, 2_000_000, 0.08), ("Syn64D", 64, 2_000_000, 0.18),
                 ("patches", 0.05)]}
REAL = {"digits": "digits 64D 1797", "patches": "patches 64D 100k"}


def digits():
    from sklearn.datasets import load_digits
    return load_digits().data / 16


def patches(n=100_000):
    import numpy as np
    from sklearn.datasets import load_sample_images
    rng = np.random.default_rng(1)
    images = [image.mean(axis=2) / 255 for image in load_sample_images().images]
    rows = np.empty((n, 64))
    for i in range(n):
        image = images[i % len(images)]
        y, x = (rng.integers(0, side - 8) for side in image.shape)
        rows[i] = image[y:y + 8, x:x + 8].ravel()
    return rows


def real(build, name):
    path = build / "bench" / "data" / f"{name}.npy"
    if not path.exists():
        import numpy as np
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, {"digits": digits, "patches": patches}[name]().astype(np.float32))
    return path


def size(n):
    return f"{n / 1e6:g}M" if n >= 1e6 else f"{n / 1e3:g}k"


def sets(options):
    """The name, the file and the eps of every set that is wanted; files are made when their turn comes."""
    for name, *shape, eps in SETS["cpu" if options.engine == "cpu" else "cuda"]:
        n = shape[1] // options.less if shape else 0
        title = f"{name} {size(n)}, {eps:g}" if shape else f"{REAL[name]}, {eps:g}"
        if not is_wanted(title, options.sets):
            continue
        try:
            yield title, generate(options.build, "expo", shape[0], n) if shape else real(options.build, name), eps
        except ImportError as reason:
            print(f"\n{title}: not made: {reason}", flush=True)


def measure_command(options, path, eps):
    """Processor seconds of the command, every way."""
    switches = dict(SWITCHES)
    for k in COLUMNS:
        switches[f"brute, order of {k} columns"] = ["--brute", "--index-dims", str(k)]
        switches[f"grid over {k} columns"] = ["--cell-side", "1", "--index-dims", str(k)]
    return measure(options.build, path, eps, switches, options.rounds).items()


def measure_warm(options, path, eps):
    """Calls in a warm process, way by way; each may fail, or take too long."""
    engine = "cuda" if options.engine == "cuda" else "cpu"
    for way, words in WORDS.items():
        yield way, bench(options.build, path, eps, "count", options.repeats, [engine, *words], options.timeout)


def cell(result):
    if "failed" in result:
        return result["failed"]
    if "ms" in result:
        return f"{result['ms']:.3g} ({result['report']['tested']:.2g}, {result['report']['algorithm']})"
    return f"{result['cpu_seconds']:.3f} ({result['tested']:.2g})"


def show(name, ways):
    """A table of one set; its rows are the ways."""
    pairs = {result["pairs"] for result in ways.values() if "pairs" in result}
    print(f"\n| | {name} |\n| --- | --- |\n| pairs | {', '.join(f'{p:.3g}' for p in pairs)} |")
    print("\n".join(f"| {way} | {cell(result)} |" for way, result in ways.items()), flush=True)
    assert len(pairs) <= 1, name


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--engine", choices=("cpu", "cuda", "warm-cpu"), default="cpu",
                        help="warm-cpu: what cuda measures, but on the CPU, to see that it works")
    parser.add_argument("--sets", default="", help="those whose names contain one of these, with commas between")
    parser.add_argument("--rounds", type=int, default=3, help="cpu: counts by the command")
    parser.add_argument("--repeats", type=int, default=2, help="cuda: warm counts of a program")
    parser.add_argument("--timeout", type=float, default=40, help="cuda: the most seconds of a program")
    parser.add_argument("--less", type=int, default=1, help="so many times fewer points: to see that it works")
    parser.add_argument("--commit", default="unknown", help="what was measured")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def main():
    options = arguments()
    on_cpu = options.engine == "cpu"
    results = {} if on_cpu else environment() | {"commit": options.commit, "engine": options.engine, "sets": {}}
    for name, path, eps in sets(options):
        ways = (results if on_cpu else results["sets"]).setdefault(name, {})
        for way, result in (measure_command if on_cpu else measure_warm)(options, path, eps):
            ways[way] = result
            save(options.out, results)
        show(name, ways)


if __name__ == "__main__":
    main()
