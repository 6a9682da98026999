"""Counts by the command, timed: the processors' time, which a busy machine changes less than time on the wall."""
import json
import resource
import subprocess


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(build, path, eps, switches):
    before = cpu_seconds()
    done = subprocess.run([build / "cli" / "kith", "join", path, "--eps", str(eps), "--engine", "cpu", "--threads",
                           "2", "--json", "--quiet", *switches], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    seconds = sum(report["seconds"][stage] for stage in ("plan", "index", "join"))
    return {"seconds": seconds, "cpu_seconds": cpu_seconds() - before, **{key: report[key] for key in ("pairs", "tested", "index_dims", "algorithm")}}


def measure(build, path, eps, switches, rounds):
    """The best of some rounds; all ways take turns, so that a slow phase of the machine slows all of them."""
    best = {}
    for _ in range(rounds):
        for way, flags in switches.items():
            now = run(build, path, eps, flags)
            if way not in best or now["cpu_seconds"] < best[way]["cpu_seconds"]:
                best[way] = now
    return best
