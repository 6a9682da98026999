"""Metrics and boxes beside the Euclidean metric in open space: spaces.py BUILD [--engine cpu|cuda] [--sets 3D] [--json OUT]

Every metric gets the eps at which it finds about as many pairs as the Euclidean one (or, with --same-eps, its eps),
and every box the eps of open space, so that ratios compare equal answers. Both sides of a ratio take turns, and each
counts with its fastest run.
Needs nothing but Python: it runs where the GPU is.
"""
import argparse
import array
import json
import math
import pathlib
import random

from gpu import environment
from points import generate
from warm import bench, is_wanted, save

# All points lie in the brick of the first; those of the second, which is smaller, are wrapped into it.
TRICLINIC = ("box=1,1.1547005383792517,1,90,90,60", "box=1,1,1,90,90,60")
NORMS = ("manhattan", "chebyshev")

# name, generator, dimension, points (on a GPU), points (on a CPU), eps values, what, spaces
ROWS = [("Unif3D", "unif", 3, 10_000_000, 2_000_000, (0.005, 0.01), ("count", "table"),
         NORMS + ("box=1,1,1",) + TRICLINIC),
        ("Unif3D1M", "unif", 3, 1_000_000, 1_000_000, (0.02, 0.05), ("count", "table"), ("box=1,1,1",)),
        ("Unif2D", "unif", 2, 10_000_000, 2_000_000, (0.001,), ("count", "table"), NORMS + ("box=1,1",)),
        ("Unif6D", "unif", 6, 2_000_000, 200_000, (0.1,), ("count", "table"), NORMS + ("box=1,1,1,1,1,1",)),
        ("Syn16D", "expo", 16, 500_000, 50_000, (0.04,), ("count", "table"), NORMS + ("cosine", "angular")),
        ("Syn64D", "expo", 64, 500_000, 20_000, (0.16,), ("count", "table"), NORMS + ("cosine", "angular"))]
SPHERE = 1_000_000
SPHERE_EPS = (0.1, 0.5)  # degrees


def run(options, path, eps, what, space, repeats):
    return bench(options.build, path, eps, what, repeats, [options.engine, space], options.limit)


def known_eps(path):
    """The eps that matched in an earlier run, by set and space."""
    rows = json.loads(path.read_text())["rows"] if path else []
    return {(row["name"], row["space"]): row["other"]["eps"] for row in rows if "other" in row}


def matching_eps(options, path, space, pairs, eps):
    """The eps at which a metric finds about so many pairs: between two that find fewer and more."""
    low, high = 0.0, math.inf
    for _ in range(24):
        found = run(options, path, eps, "count", space, 1)
        if "failed" in found or abs(found["pairs"] - pairs) <= 0.03 * pairs:
            return eps
        if found["pairs"] < pairs:
            low = eps
        else:
            high = eps
        eps = math.sqrt(low * high) if low > 0 and high < math.inf else eps * (1.6 if low > 0 else 0.6)
    return eps


def compare(options, row, plain, other):
    """Adds both sides of a ratio, each a path, an eps and a space, to a row."""
    for _ in range(options.rounds):
        for side, (path, eps, space) in (("plain", plain), ("other", other)):
            now = run(options, path, eps, row["what"], space, options.repeats)
            if "failed" in now:
                return row | now
            best = row.get(side)
            if not best or min(now["seconds"]) < min(best["seconds"]):
                row[side] = now
    row["ratio"] = min(row["other"]["seconds"]) / min(row["plain"]["seconds"])
    return row


def show(row):
    if "failed" in row:
        return print(f"| {row['name']} | {row['what']} | {row['space']} | {row['failed']} |", flush=True)
    plain, other = row["plain"], row["other"]
    print(f"| {row['name']} | {row['what']} | {row['space']}, {other['eps']:.4g} | {plain['pairs']:.3g}, "
          f"{other['pairs']:.3g} | {1e3 * min(plain['seconds']):.3g} | {1e3 * min(other['seconds']):.3g} | "
          f"{row['ratio']:.2f} |", flush=True)


def measure(options, name, path, eps, whats, spaces):
    """Rows for the points of one file."""
    pairs = None
    for space in spaces:
        same = options.same_eps or space.startswith("box")
        mine = eps if same else options.known.get((f"{name} {eps:g}", space))
        if not mine:
            pairs = pairs or run(options, path, eps, "count", "euclidean", 1)["pairs"]
            mine = matching_eps(options, path, space, pairs, start_eps(space, eps))
        for what in whats:
            row = {"name": f"{name} {eps:g}", "what": what, "space": space}
            row = compare(options, row, (path, eps, "euclidean"), (path, mine, space))
            show(row)
            yield row


def start_eps(space, eps):
    """Somewhere to begin: cosines and angles do not have the scale of the coordinates."""
    return {"cosine": 0.05, "angular": 18.0}.get(space, eps)


def write_npy(path, rows, columns):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(rows) // columns}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + rows.tobytes())


def make_sphere(build, n):
    """Places on the sphere, uniform, as degrees and as unit vectors."""
    places, vectors = (build / "bench" / "data" / f"sphere-{kind}-{n}.npy" for kind in ("places", "vectors"))
    if not vectors.exists():
        rng = random.Random(1)
        degrees, units = array.array("d"), array.array("d")
        for _ in range(n):
            lon, z = rng.uniform(-180, 180), rng.uniform(-1, 1)
            around = math.sqrt(1 - z * z)
            degrees.extend((lon, math.degrees(math.asin(z))))
            units.extend((around * math.cos(math.radians(lon)), around * math.sin(math.radians(lon)), z))
        places.parent.mkdir(parents=True, exist_ok=True)
        write_npy(places, degrees, 2)
        write_npy(vectors, units, 3)
    return places, vectors


def measure_sphere(options):
    places, vectors = make_sphere(options.build, SPHERE // options.less)
    for degrees in SPHERE_EPS:
        chord = 2 * math.sin(math.radians(degrees / 2))
        for what in ("count", "table"):
            row = {"name": f"Sphere {degrees:g}", "what": what, "space": "haversine"}
            row = compare(options, row, (vectors, chord, "euclidean"), (places, degrees, "haversine"))
            show(row)
            yield row


def make_moved(path, by):
    """The same float32 points, farther along every axis."""
    moved = path.with_name(f"{path.stem}-moved.npy")
    if not moved.exists():
        data = path.read_bytes()
        begin = 10 + int.from_bytes(data[8:10], "little")
        values = array.array("f")
        values.frombytes(data[begin:])
        moved.write_bytes(data[:begin] + array.array("f", (x + by for x in values)).tobytes())
    return moved


def measure_moved(options):
    """Points that lie outside of their box, most of them, with as many pairs as those inside."""
    name, kind, dim, on_gpu, on_cpu, radii, whats, _ = ROWS[0]
    path = generate(options.build, kind, dim, (on_cpu if options.engine == "cpu" else on_gpu) // options.less)
    moved = make_moved(path, 0.3)
    for eps in radii:
        for what in whats:
            row = {"name": f"{name} moved {eps:g}", "what": what, "space": "box=1,1,1"}
            row = compare(options, row, (path, eps, "euclidean"), (moved, eps, "box=1,1,1"))
            show(row)
            yield row


def measure_all(options):
    """All rows that are wanted, one by one."""
    for name, kind, dim, on_gpu, on_cpu, radii, whats, spaces in ROWS:
        if not is_wanted(name, options.sets):
            continue
        n = (on_cpu if options.engine == "cpu" else on_gpu) // options.less
        path = generate(options.build, kind, dim, n)
        for eps in radii:
            yield from measure(options, name, path, eps, whats, spaces)
    if is_wanted("Moved", options.sets):
        yield from measure_moved(options)
    if is_wanted("Sphere", options.sets):
        yield from measure_sphere(options)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--engine", choices=("cpu", "cuda", "device"), default="cpu")
    arguments.add_argument("--json", type=pathlib.Path, help="where to leave all figures")
    arguments.add_argument("--sets", default="", help="those whose names contain one of these, with commas between")
    arguments.add_argument("--repeats", type=int, default=3, help="warm runs of a program")
    arguments.add_argument("--rounds", type=int, default=3, help="programs of each side")
    arguments.add_argument("--less", type=int, default=1, help="so many times fewer points: to see that it works")
    arguments.add_argument("--eps-from", type=pathlib.Path, help="what an earlier run left: with the eps of its metrics")
    arguments.add_argument("--same-eps", action="store_true", help="the eps of the Euclidean metric for all")
    arguments.add_argument("--limit", type=float, default=60, help="seconds that a program may take")
    arguments.add_argument("--commit", default="unknown", help="what was measured")
    options = arguments.parse_args()
    options.build = options.build.resolve()
    options.known = known_eps(options.eps_from)
    print("| data, eps | result | space, its eps | pairs | euclidean, ms | space, ms | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    results = environment() | {"commit": options.commit, "rows": []}
    for row in measure_all(options):
        results["rows"].append(row)
        save(options.json, results)


if __name__ == "__main__":
    main()
