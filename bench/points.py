"""The points that benchmarks run on, made by kith itself: the same bytes on every machine."""
import subprocess


def generate(build, kind, dim, n):
    path = build / "bench" / "data" / f"{kind}{dim}d-{n}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([build / "cli" / "kith", "gen", kind, "--n", str(n), "--dim", str(dim), "--seed", "1",
                        "--dtype", "f4", "-o", path], check=True)
    return path
