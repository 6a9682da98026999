"""Measures engines that share a join: hybrid.py BUILD_DIR OUT.json [--sms 0,8] [--what count,table] [--sets 2D,4D2M]

Every time is one library call in a warm process, index included: a neighbour table in host memory, unless --what asks
for others. With --sms the GPU may use only so many of its multiprocessors (0: all), so that both engines are about as
fast. "upper" is the sum of both throughputs, as a time: 1 / (1 / t_cpu + 1 / t_gpu); "reached" is upper / t_hybrid.
"possible" is the same if only joins are shared: both begin when the GPU has made its plan and its index, as it did alone.
Needs nothing but Python: it runs where the GPU is.
"""
import argparse
import pathlib

from gpu import environment
from points import generate
from warm import bench, is_wanted, save

# name, generator, dimension, points, eps
ROWS = [("Expo2D2M", "expo", 2, 2_000_000, 0.0005),
        ("Expo2D10M", "expo", 2, 10_000_000, 0.0001),
        ("Expo4D2M", "expo", 4, 2_000_000, 0.004),
        ("Expo6D2M", "expo", 6, 2_000_000, 0.008),
        ("Expo8D2M", "expo", 8, 2_000_000, 0.01),
        # those for which the paper (its table 4) tells how much of the sum of both throughputs it reached
        ("Expo2D2M", "expo", 2, 2_000_000, 0.002),
        ("Expo2D10M", "expo", 2, 10_000_000, 0.0004),
        ("Expo4D2M", "expo", 4, 2_000_000, 0.01),
        ("Expo4D10M", "expo", 4, 10_000_000, 0.004),
        ("Expo8D2M", "expo", 8, 2_000_000, 0.015),
        ("Expo8D10M", "expo", 8, 10_000_000, 0.012)]
ENGINES = ["cuda", "point", "cpu", "ego", "auto", "hybrid", "hybrid/static-queries", "hybrid/static-candidates"]
ARGUMENTS = {"point": ["cuda", "lid-unicomp,queue,1"], "ego": ["cpu", "ego"]}


def ways(engine):
    """What kith_bench calls an engine of the table."""
    return ARGUMENTS.get(engine, engine.split("/"))


def add_sum(measured):
    """What sharing could reach, and did, if both engines were measured."""
    if any("ms" not in measured.get(engine, {}) for engine in ("cuda", "cpu")):
        return
    measured["upper_ms"] = 1 / (1 / measured["cpu"]["ms"] + 1 / measured["cuda"]["ms"])
    measured["possible_ms"] = possible(measured["cpu"], measured["cuda"])
    if "ms" in measured.get("hybrid", {}):
        measured["reached"] = measured["upper_ms"] / measured["hybrid"]["ms"]


def possible(cpu, cuda):
    """The time in which both have done the join, if they begin when the GPU has its index; or one of them alone."""
    joins = [1e3 * engine["report"]["seconds_join"] for engine in (cpu, cuda)]
    return min(cuda["ms"] - joins[1] + 1 / sum(1 / join for join in joins), cpu["ms"], cuda["ms"])


def measure(options, row, what, sms):
    name, kind, dim, n, eps = row
    path = generate(options.build, kind, dim, n // options.less)
    measured = {"name": name, "eps": eps, "sms": sms, "what": what}
    variables = {"KITH_CUDA_SMS": str(sms)} if sms else {}
    for engine in options.engines.split(","):
        measured[engine] = bench(options.build, path, eps, what, options.repeats, ways(engine), 60, variables)
    add_sum(measured)
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


def print_head(sms, what, engines):
    print(f"\nmultiprocessors: {sms or 'all'}; {what}")
    print("| data, eps | " + " | ".join(engines) + " | upper | reached | possible |")
    print("| --- " * (len(engines) + 4) + "|")


def print_row(r, engines):
    print(f"| {r['name']} {r['eps']:g} | " + " | ".join(cell(r, engine) for engine in engines) +
          f" | {r.get('upper_ms', 0):.3g} | {r.get('reached', 0):.2f} | {r.get('possible_ms', 0):.3g} |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="what was measured")
    parser.add_argument("--sms", default="0,8", help="multiprocessors to use, 0: all")
    parser.add_argument("--what", default="table", help="count, degrees or table; several with commas between")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", default="", help="those whose names and eps contain one of these, as 8D2M or 8D2M 0.01")
    parser.add_argument("--less", type=int, default=1, help="so many times fewer points: to see that it works")
    options = parser.parse_args()
    unknown = set(options.what.split(",")) - {"count", "degrees", "table"}
    if unknown:
        parser.error(f"--what: {', '.join(sorted(unknown))}?")
    options.build = options.build.resolve()
    return options


def main():
    options = arguments()
    engines = options.engines.split(",")
    results = environment() | {"commit": options.commit, "rows": []}
    for sms in map(int, options.sms.split(",")):
        for what in options.what.split(","):
            print_head(sms, what, engines)
            for row in ROWS:
                if not is_wanted(f"{row[0]} {row[4]:g}", options.sets):
                    continue
                results["rows"].append(measure(options, row, what, sms))
                print_row(results["rows"][-1], engines)
                save(options.out, results)


if __name__ == "__main__":
    main()
