"""Measures kith beside its peers and over growing n: bench.py BUILD_DIR [--quick]; writes results.json.

On a shared machine a time means little and a ratio of times taken side by side means much. So every program
stays alive, waits for a line, does one run and answers; this script gives them turns. The first turn is for
warming up (kith) and tuning (peers) and is not counted. Peers that are much slower get fewer turns, or none,
since the whole has to end in about eight minutes. The first run of a large table also pays for fresh pages, so
whoever may be the fastest peer gets several.

Turns even out slow drifts, not a busy neighbour: a program whose threads meet at barriers waits for the thread
that lost its core, while one that hands out work in pieces hardly notices. So the processor time that others
used meanwhile is measured too, and results with more than a little of it are marked as not to be trusted.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import select
import statistics
import subprocess
import sys
import time
from importlib import metadata

from points import generate

HERE = pathlib.Path(__file__).resolve().parent
THREADS = "2"
QUIET = 0.1  # cores: with more than that used by others, times are not to be trusted


class Row:
    def __init__(self, name, kind, dim, n, eps):
        self.name, self.kind, self.dim, self.n, self.eps = name, kind, dim, n, eps


# The joins of the project's table of limits; the quick ones are smaller, otherwise alike.
FULL_ROWS = [Row("Unif2D", "unif", 2, 1_000_000, 0.002), Row("Expo2D", "expo", 2, 1_000_000, 0.0005),
             Row("Expo4D", "expo", 4, 1_000_000, 0.006), Row("Unif6D", "unif", 6, 200_000, 0.1),
             Row("Syn16D", "expo", 16, 50_000, 0.04), Row("Syn64D", "expo", 64, 20_000, 0.16)]
QUICK_ROWS = [Row("Unif2D", "unif", 2, 100_000, 0.0063), Row("Expo2D", "expo", 2, 50_000, 0.001),
              Row("Expo4D", "expo", 4, 50_000, 0.006), Row("Unif6D", "unif", 6, 20_000, 0.1),
              Row("Syn16D", "expo", 16, 10_000, 0.04), Row("Syn64D", "expo", 64, 4_000, 0.16)]
FULL_SCALING = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
QUICK_SCALING = [10_000, 30_000, 100_000]


class Mode:
    def __init__(self, quick):
        self.quick = quick
        self.rows = QUICK_ROWS if quick else FULL_ROWS
        self.repeats = 3 if quick else 7
        self.peer_limit = 2 if quick else 30  # seconds: a peer slower than that by estimate is not run
        self.budget = 3 if quick else 60  # seconds: who has had so many gets no more turns ...
        self.least_runs = 3  # ... but for kith, which gets this many at least
        self.python_budget = 3 if quick else 10  # the peers in Python get fewer: the fastest is hardly ever one
        self.python_once = 1 if quick else 3  # seconds: one run of theirs suffices where it takes longer
        self.turn_limit = 20 if quick else 60  # seconds: nothing waits longer than that for a peer
        self.scaling = QUICK_SCALING if quick else FULL_SCALING


class Worker:
    """One program that runs when told to. Its last words are a JSON object."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.result = None

    def answers(self):
        return True

    def failed(self, reason):
        raise SystemExit(f"bench: {' '.join(self.process.args)}: {reason}")

    def turn(self):
        if self.result is not None:
            return
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        if not self.answers():
            return
        answer = self.process.stdout.readline().strip()
        if answer != "done":  # it has ended by itself: skipped, or failed
            self.finish(answer)

    def finish(self, last=None):
        if self.result is None:
            self.process.stdin.close()
            last = last or self.process.stdout.readline()
            code = self.process.wait()
            if code != 0 or not last:
                self.failed(f"ended with code {code}")
            else:
                self.result = json.loads(last)
        return self.result


class Peer(Worker):
    """A peer that is too slow, or ends (a table may be more than the memory holds), is left out, with the
    reason."""

    def __init__(self, name, what, mode, command):
        super().__init__(command)
        self.name, self.what, self.turn_limit = name, what, mode.turn_limit
        python = name != "nanoflann"
        self.budget = mode.python_budget if python else mode.budget
        self.once = mode.python_once if python else mode.budget

    def answers(self):
        # Nothing of an earlier answer can be in Python's buffer: a worker speaks once a turn.
        if select.select([self.process.stdout], [], [], self.turn_limit)[0]:
            return True
        self.process.kill()
        self.process.wait()
        self.failed(f"slower than {self.turn_limit} s")
        return False

    def failed(self, reason):
        self.result = skipped(self.name, self.what, reason)


def skipped(peer, what, reason):
    return {"peer": peer, "what": what, "way": None, "skipped": reason, "build": [], "query": []}


class Neighbours:
    """How many cores everybody else kept busy, on average, since this was made. Call it when the workers ended:
    only then does the system count their time as ours."""

    def __init__(self):
        self.start, self.all, self.ours = time.monotonic(), self.machine_seconds(), self.our_seconds()

    @staticmethod
    def machine_seconds():
        user, nice, system, _idle, _wait, irq, softirq, steal = map(
            int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def our_seconds():
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in both)

    def cores(self):
        theirs = self.machine_seconds() - self.all - (self.our_seconds() - self.ours)
        return max(0.0, theirs / (time.monotonic() - self.start))


def kith_worker(build, path, eps, what):
    return Worker([build / "bench" / "kith_bench", path, eps, what, 0, THREADS])


def peer_workers(build, path, dim, eps, what, mode):
    def peer(name, *command):
        return Peer(name, what, mode, command)

    yield peer("nanoflann", build / "bench" / "peer_nanoflann", path, eps, what, 0, THREADS)
    for name in ("scipy", "scikit-learn") + (("faiss",) if dim > 8 else ()):
        yield peer(name, sys.executable, HERE / "peers.py", name, path, eps, what, mode.peer_limit)


def timed_turn(worker):
    start = time.monotonic()
    worker.turn()
    return time.monotonic() - start


def take_turns(kith, peers, mode):
    """The first turn of each, one after another, then rounds of turns."""
    for worker in kith + peers:
        worker.turn()
    spent = dict.fromkeys(kith + peers, 0.0)
    for round_number in range(mode.repeats):
        for worker in kith:
            if round_number < mode.least_runs or spent[worker] < mode.budget / 3:
                spent[worker] += timed_turn(worker)
        for worker in peers:
            if spent[worker] < worker.budget:
                seconds = timed_turn(worker)
                spent[worker] += seconds if seconds <= worker.once else worker.budget
    return [w.finish() for w in kith], [w.finish() for w in peers]


def spread(seconds):
    return {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)}


def summarize_kith(result):
    held = result["input_bytes"] + result["result_bytes"]
    result["total"] = spread(result["seconds"])
    result["memory_ratio"] = result["peak_bytes"] / held
    return result


def summarize_peer(result, pairs):
    if result["query"]:
        result["total"] = spread([b + q for b, q in zip(result["build"], result["query"])])
        result["pairs_more"] = result["pairs"] - pairs
        result["agrees"] = agrees(result["peer"], result["pairs_more"], pairs)
    return result


def agrees(peer, difference, pairs):
    # nanoflann is float32 and excludes the boundary: of 10 million pairs, a few lie within rounding of eps.
    # faiss does so too, and expands the norm, which loses digits. scipy and scikit-learn compute in double and
    # include the boundary, as kith does (scikit-learn expands the norm where it compares all with all).
    slack = {"nanoflann": 4 + 1e-6 * pairs, "faiss": 4 + 1e-4 * pairs}
    return abs(difference) <= slack.get(peer, 0)


def ratios(kith, peers):
    """The fastest peer with its build, and the fastest query alone, over kith's whole call."""
    ran = [p for p in peers if p["query"]]
    if not ran:
        return {"fastest": None}
    best = min(ran, key=lambda p: p["total"]["min"])
    strict = min(ran, key=lambda p: min(p["query"]))
    return {"fastest": best["peer"], "ratio": best["total"]["min"] / kith["total"]["min"],
            "ratio_of_medians": best["total"]["median"] / kith["total"]["median"],
            "strict_fastest": strict["peer"], "strict_ratio": min(strict["query"]) / kith["total"]["min"],
            "strict_ratio_of_medians": statistics.median(strict["query"]) / kith["total"]["median"]}


def measure_row(build, row, mode):
    path = generate(build, row.kind, row.dim, row.n)
    measured = {"name": row.name, "n": row.n, "dim": row.dim, "eps": row.eps}
    for what in ("count", "table"):
        print(f"bench: {row.name}, {what}", file=sys.stderr, flush=True)
        kinds = ["count"] if what == "count" else ["table", "sorted"]
        neighbours = Neighbours()
        kith, peers = take_turns([kith_worker(build, path, row.eps, kind) for kind in kinds],
                                 list(peer_workers(build, path, row.dim, row.eps, what, mode)), mode)
        others_cores = neighbours.cores()
        peers.append(skipped("pykdtree", what, "has no radius search"))
        for kind, result in zip(kinds, kith):
            measured[kind] = summarize_kith(result)
        measured[what]["peers"] = [summarize_peer(p, kith[0]["pairs"]) for p in peers]
        measured[what].update(ratios(kith[0], peers), others_cores=others_cores)
    return measured


def measure_scaling(build, n, mode):
    """Uniform in 2-D with 12.6 neighbours a point, whatever n."""
    print(f"bench: scaling, n = {n}", file=sys.stderr, flush=True)
    eps = 2 / n**0.5
    path = generate(build, "unif", 2, n)
    neighbours = Neighbours()
    kith, _ = take_turns([kith_worker(build, path, eps, what) for what in ("count", "table")], [], mode)
    by_what = {k["what"]: summarize_kith(k) for k in kith}
    return {"n": n, "eps": eps, "others_cores": neighbours.cores(), **by_what}


def check(rows):
    """What does not agree, as sentences."""
    for row in rows:
        if len({row[what]["pairs"] for what in ("count", "table", "sorted")}) != 1:
            yield f"{row['name']}: kith's count and tables differ"
        for what in ("count", "table"):
            for peer in row[what]["peers"]:
                if not peer.get("agrees", True):
                    yield f"{row['name']}, {what}: {peer['peer']} finds {peer['pairs_more']:+} pairs more"


def cpu_model():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit():
    git = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty", "--abbrev=12"],
                         capture_output=True, text=True, check=False)
    return git.stdout.strip() or "unknown"


def environment(quick):
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "quick": quick, "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "threads": int(THREADS),
            "kernel": platform.release(), "commit": commit(), "python": platform.python_version(),
            "versions": {p: metadata.version(p) for p in ("numpy", "scipy", "scikit-learn", "faiss-cpu", "pykdtree")}}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--quick", action="store_true", help="small data, few repeats, under a minute")
    arguments.add_argument("--only", default="", help="only rows whose names begin like this, and no scaling")
    options = arguments.parse_args()

    mode = Mode(options.quick)
    results = environment(options.quick)
    results["rows"] = [measure_row(options.build, row, mode) for row in mode.rows
                       if row.name.startswith(options.only)]
    results["scaling"] = [measure_scaling(options.build, n, mode) for n in mode.scaling if not options.only]
    results["kith"] = results["rows"][0]["count"]["version"]
    others = [row[what]["others_cores"] for row in results["rows"] for what in ("count", "table")]
    others += [s["others_cores"] for s in results["scaling"]]
    results["others_cores"], results["quiet"] = max(others), max(others) <= QUIET
    results["disagreements"] = list(check(results["rows"]))
    (options.build / "bench" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    for sentence in results["disagreements"]:
        print(f"bench: DISAGREEMENT: {sentence}", file=sys.stderr)
    return 1 if results["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
