"""scipy and scikit-learn at their best on the same job: peers.py PEER FILE.npy EPS count|table MAX_SECONDS

Each has several ways to the answer, and which is fastest depends on the data. All of them are tried on a slab
of the points (1/16 of them, neighbours along the first coordinate, so that points are as dense as in the
whole), and the fastest is measured. Where its estimate for the whole is above MAX_SECONDS, the peer is
skipped and says so. The protocol is kith_bench.c's, with the tuning in place of the cold run.

Some ways do less than kith's table: query_pairs gives only i < j, in one thread, and no table. They are
allowed, since a user may be content with them. pykdtree is not here: it has k nearest neighbours only.
"""
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

THREADS = 2
SLAB = 16  # the tuning uses one point in so many


@dataclass
class Way:
    name: str
    build: Callable[[np.ndarray], Any]
    query: Callable[[Any, np.ndarray, float], Any]
    pairs: Callable[[Any, int], int]  # ordered pairs without (i, i), from what query returned and n
    pair_bytes: int  # memory for a pair of the result


def less_self(total, n):
    return int(total) - n


def scipy_ways(what):
    from scipy.spatial import cKDTree

    def tree(balanced):
        return lambda x: cKDTree(x, balanced_tree=balanced)

    def ball(t, x, eps, **options):
        # In tree order, as nanoflann: input order is slower.
        return t.query_ball_point(x[t.indices], eps, workers=THREADS, return_sorted=False, **options)

    queries = [("query_pairs (i < j)", lambda t, x, eps: t.query_pairs(eps, output_type="ndarray"),
                lambda found, n: 2 * len(found), 24)]
    if what == "count":
        queries += [("count_neighbors", lambda t, x, eps: t.count_neighbors(t, eps), less_self, 0),
                    ("query_ball_point, lengths", lambda t, x, eps: ball(t, x, eps, return_length=True),
                     lambda lengths, n: less_self(lengths.sum(), n), 0)]
    else:
        # Lists of Python integers: 8 bytes for the entry, 32 for the integer.
        queries += [("query_ball_point", ball, lambda lists, n: less_self(sum(map(len, lists)), n), 40)]
    return [Way(f"{name}, {kind} tree", tree(kind == "balanced"), *rest)
            for name, *rest in queries for kind in ("balanced", "unbalanced")]


def sklearn_ways(what):
    from sklearn.neighbors import KDTree

    def radius(t, x, eps, **options):
        parts = np.array_split(x[np.asarray(t.get_arrays()[1])], 8 * THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda part: t.query_radius(part, eps, **options), parts))

    def count(t, x, eps):
        return sum(int(part.sum()) for part in radius(t, x, eps, count_only=True))

    def two_point(t, x, eps):
        return t.two_point_correlation(x, [eps], dualtree=True)[0]

    def total(parts, n):
        return less_self(sum(len(row) for part in parts for row in part), n)

    if what == "count":
        return [Way("KDTree.query_radius, count only", KDTree, count, less_self, 0),
                Way("KDTree.two_point_correlation, dual tree", KDTree, two_point, less_self, 0)]
    return [Way("KDTree.query_radius", KDTree, radius, total, 8)]


PEERS = {"scipy": scipy_ways, "scikit-learn": sklearn_ways}


def run(way, x, eps):
    """Build and query seconds, and the pairs; throwing the result away is not part of the time."""
    start = time.perf_counter()
    tree = way.build(x)
    built = time.perf_counter()
    found = way.query(tree, x, eps)
    done = time.perf_counter()
    return built - start, done - built, way.pairs(found, len(x))


def slab(x):
    order = np.argsort(x[:, 0])
    middle, half = len(x) // 2, len(x) // SLAB // 2
    return np.ascontiguousarray(x[order[middle - half:middle + half]])


def free_bytes():
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def tune(ways, x, eps):
    """The fastest way that fits the memory, and its estimated seconds on all points."""
    part = slab(x)
    run(ways[0], part[:1000], eps)  # the first call imports and compiles things
    best = None
    for way in ways:
        build, query, pairs = run(way, part, eps)
        fits = pairs * SLAB * way.pair_bytes < free_bytes() // 2
        if fits and (best is None or build + query < best[1]):
            best = (way, build + query)
    return (None, 0.0) if best is None else (best[0], best[1] * SLAB)


def skipped(way, seconds, limit):
    if way is None:
        return "its result does not fit the memory"
    return f"about {seconds:.0f} s by estimate" if seconds > limit else None


def main(peer, path, eps, what, limit):
    x, eps = np.load(path), float(eps)
    report = {"peer": peer, "what": what, "build": [], "query": []}
    for line_number, _ in enumerate(sys.stdin):
        if line_number == 0:
            way, seconds = tune(PEERS[peer](what), x, eps)
            report["skipped"] = skipped(way, seconds, float(limit))
            report["way"] = way and way.name
            if report["skipped"]:
                break
        else:
            build, query, report["pairs"] = run(way, x, eps)
            report["build"].append(build)
            report["query"].append(query)
        print("done", flush=True)
    report["max_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
