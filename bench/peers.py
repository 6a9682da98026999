"""scipy, scikit-learn and faiss at their best on the same job: peers.py PEER FILE.npy EPS count|table MAX_SECONDS

Each has several ways to the answer, and which is fastest depends on the data. So all are tried first: on a few
of the queries, against the tree of all points, and those that promise to end in time again on more of them. The
fastest is measured. A peer is skipped, and says why, where its fastest way would take more than MAX_SECONDS or
its result would not fit the memory. The protocol is kith_bench.c's, with the tuning in place of the cold run.

Some ways do less than kith's table: query_pairs gives only i < j, in one thread, and no table. They are
allowed, since a user may be content with them. pykdtree has k nearest neighbours only, so bench.py lists it as
skipped.
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
BLOCK = 64  # queries of a sample come in blocks of so many that are neighbours in the tree, as in a full run
LOW_DIMENSION = 8  # in more dimensions, ways that compare all with all are tried too
FEW, MORE = 127, 17  # a sample is one block in so many; primes, since trees halve


@dataclass
class Way:
    name: str
    build: Callable[[np.ndarray], Any]
    query: Callable[[Any, Any, float], Any]  # tree, queries (None: all of the tree's own points), eps
    pairs: Callable[[Any, int], int]  # ordered pairs without (i, i), from what query returned and n queries
    pair_bytes: int  # memory for a pair of the result
    inner: bool = False  # joins a set with itself only, so a sample of the queries has to be one of the points


def less_self(total, n):
    return int(total) - n


class Flat:
    """Points without a tree, for those who compare all with all."""

    def __init__(self, x, index):
        self.points, self.index = x, index

    def get_arrays(self):
        return self.points, np.arange(len(self.points))


def scipy_ways(what, dim):
    from scipy.spatial import cKDTree

    def ball(t, queries, eps, **options):
        # In tree order, as nanoflann: input order is slower.
        queries = tree_order(t) if queries is None else queries
        return t.query_ball_point(queries, eps, workers=THREADS, return_sorted=False, **options)

    def two_trees(t, queries, eps):
        return t.count_neighbors(t if queries is None else cKDTree(queries), eps)

    ways = [("query_pairs (i < j)", lambda t, _, eps: t.query_pairs(eps, output_type="ndarray"),
             lambda found, n: 2 * len(found), 24, True)]
    if what == "count":
        ways += [("count_neighbors", two_trees, less_self, 0),
                 ("query_ball_point, lengths", lambda t, q, eps: ball(t, q, eps, return_length=True),
                  lambda lengths, n: less_self(lengths.sum(), n), 0)]
    else:
        # Lists of Python integers: 8 bytes for the entry, 32 for the integer.
        ways += [("query_ball_point", ball, lambda lists, n: less_self(sum(map(len, lists)), n), 40)]
    builds = {"balanced": cKDTree, "unbalanced": lambda x: cKDTree(x, balanced_tree=False)}
    return [Way(f"{name}, {kind} tree", build, *rest) for kind, build in builds.items()
            for name, *rest in ways]


def sklearn_ways(what, dim):
    from sklearn.neighbors import KDTree, NearestNeighbors

    def flat(x):
        return Flat(x, NearestNeighbors(algorithm="brute", n_jobs=THREADS).fit(x))

    def all_with_all(f, queries, eps):
        return f.index.radius_neighbors(f.points if queries is None else queries, eps, return_distance=False)

    def radius(t, queries, eps, **options):
        parts = np.array_split(tree_order(t) if queries is None else queries, 8 * THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda part: t.query_radius(part, eps, **options), parts))

    def count(t, queries, eps):
        return sum(int(part.sum()) for part in radius(t, queries, eps, count_only=True))

    def two_trees(t, queries, eps):
        return t.two_point_correlation(tree_order(t) if queries is None else queries, [eps], dualtree=True)[0]

    def total(parts, n):
        return less_self(sum(len(row) for part in parts for row in part), n)

    brute = [Way("NearestNeighbors, brute", flat, all_with_all,
                 lambda rows, n: less_self(sum(map(len, rows)), n), 8)] if dim > LOW_DIMENSION else []
    if what == "count":
        return [Way("KDTree.query_radius, count only", KDTree, count, less_self, 0),
                Way("KDTree.two_point_correlation, dual tree", KDTree, two_trees, less_self, 0)] + brute
    return [Way("KDTree.query_radius", KDTree, radius, total, 8)] + brute


def faiss_ways(what, dim):
    """It has no way to count, so counting takes the table."""
    import faiss
    faiss.omp_set_num_threads(THREADS)

    def flat(x):
        index = faiss.IndexFlatL2(dim)
        index.add(x)
        return Flat(x, index)

    def search(f, queries, eps):
        return f.index.range_search(f.points if queries is None else queries, eps * eps)

    return [Way("IndexFlatL2.range_search", flat, search, lambda found, n: less_self(found[0][-1], n), 12)]


def tree_order(tree):
    """The points in the order in which the tree keeps them, so that queries find in the cache what they need."""
    if hasattr(tree, "indices"):  # scipy
        return tree.data[tree.indices]
    points, ids = tree.get_arrays()[:2]
    return np.asarray(points)[np.asarray(ids)]


PEERS = {"scipy": scipy_ways, "scikit-learn": sklearn_ways, "faiss": faiss_ways}


def run(way, x, eps):
    """Build and query seconds, and the pairs; throwing the result away is not part of the time."""
    start = time.perf_counter()
    tree = way.build(x)
    built = time.perf_counter()
    found = way.query(tree, None, eps)
    done = time.perf_counter()
    return built - start, done - built, way.pairs(found, len(x))


class Trial:
    """One way, tried on samples: what it would take on all points."""

    def __init__(self, way, eps, tree, build_seconds):
        self.way, self.eps, self.tree, self.build = way, eps, tree, build_seconds
        self.points = tree_order(tree)
        self.n = len(self.points)

    def sample(self, one_in):
        """Blocks from everywhere; for a way that joins a set with itself, points that lie together."""
        if self.way.inner:
            middle, half = self.n // 2, self.n // one_in // 2 + 1
            return self.points[max(middle - half, 0):middle + half]
        block = np.arange(self.n) // BLOCK
        return self.points[block % one_in == 0]

    def estimate(self, one_in, pairs):
        """Seconds on all points, `pairs` being about the pairs of the result (None: not known)."""
        part = self.sample(one_in)
        tree = self.way.build(part) if self.way.inner else self.tree
        start = time.perf_counter()
        result = self.way.query(tree, part, self.eps)
        seconds = time.perf_counter() - start
        found = self.way.pairs(result, len(part))
        self.pairs = found * self.n / len(part)
        times = self.n / len(part)
        if self.way.inner and found:  # the part may be more or less crowded than the whole
            times = max(times, pairs / found)
        return self.build + seconds * times

    def fits(self, pairs):
        memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return pairs * self.way.pair_bytes < memory // 2


def trials_of(ways, x, eps):
    trees = {}  # of ways that share one
    for way in ways:
        if way.build not in trees:
            start = time.perf_counter()
            tree = way.build(x)
            trees[way.build] = tree, time.perf_counter() - start
        yield Trial(way, eps, *trees[way.build])


def tune(ways, x, eps, limit):
    """The fastest way, or None and the reason why there is none."""
    run(ways[0], x[:1000], eps)  # the first call imports and compiles things
    trials = list(trials_of(ways, x, eps))
    outer = next(t for t in trials if not t.way.inner)
    outer.estimate(FEW, None)
    pairs = outer.pairs
    trials = [t for t in trials if t.fits(pairs)]
    if not trials:
        return None, "its result does not fit the memory"
    seconds = [t.estimate(FEW, pairs) for t in trials]
    least = min(seconds)
    # Few queries tell only roughly; what is close to the fastest gets a second look.
    close = [t for t, s in zip(trials, seconds) if s <= 2 * limit and s <= 3 * least]
    if close:
        seconds = [t.estimate(MORE, pairs) for t in close]
        least = min(seconds)
        if least <= limit:
            return close[seconds.index(least)].way, None
    return None, f"slower than {limit:.0f} s (about {least:.0f} s by estimate)"


def main(peer, path, eps, what, limit):
    x, eps = np.load(path), float(eps)
    report = {"peer": peer, "what": what, "build": [], "query": []}
    for line_number, _ in enumerate(sys.stdin):
        if line_number == 0:
            way, report["skipped"] = tune(PEERS[peer](what, x.shape[1]), x, eps, float(limit))
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
