"""One join in a process that has joined the same points before: what kith_bench measures, as its JSON."""
import json
import os
import subprocess


def bench(build, path, eps, what, repeats, words, timeout=None, variables=None):
    """One program's JSON, or the reason why there is none. words: the engine, and what else kith_bench knows."""
    program = [build / "bench" / "kith_bench", path, str(eps), what, str(repeats), "0", *words]
    try:
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=timeout,
                              env=os.environ | (variables or {}))
    except subprocess.TimeoutExpired:
        return {"failed": f"> {timeout:g} s"}
    if done.returncode:
        return {"failed": done.stderr.strip() or f"ended with {done.returncode}"}
    result = json.loads(done.stdout)
    result["ms"] = 1e3 * min(result["seconds"])
    return result


def is_wanted(name, wanted):
    """Whether a set's name contains one of the texts in a list with commas; an empty list wants all."""
    return any(text in name for text in wanted.split(","))


def save(path, results):
    """Called whenever there is something new, so that an interrupted run keeps what it has."""
    if path:
        path.write_text(json.dumps(results, indent=1) + "\n")
