"""kith beside scipy: metrics and periodic boxes that both know. oracle.py PATH_OF_KITH

scipy rounds in its own way, so pairs within 1e-9 of eps may differ; all others must not, and distances must agree to
1e-9. Exits with 77, which ctest counts as skipped, where scipy is not installed."""
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import scipy.sparse
    from scipy.spatial import cKDTree
    from scipy.spatial.distance import cdist
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

KITH = sys.argv[1]


def from_kith(points, eps, *options):
    """A matrix of the distances within eps; NaN elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "points.npy"), Path(folder, "near.npz")
        np.save(source, points)
        subprocess.run([KITH, "join", source, "--eps", repr(eps), *options, "--what", "neighbors", "--distances", "-q",
                        "--self", "-o", result], check=True)
        near = scipy.sparse.load_npz(result).tocoo()
    found = np.full((len(points), len(points)), np.nan)
    found[near.row, near.col] = near.data
    return found


def compare(name, found, distances, eps):
    sure = np.abs(distances - eps) > 1e-9 * max(eps, 1)
    wrong = (~np.isnan(found) != (distances <= eps)) & sure
    both = ~np.isnan(found)
    off = np.abs(found[both] - distances[both]).max(initial=0)
    ok = not wrong.any() and off < 1e-9
    print(f"{'ok' if ok else 'FAILED'}: {name}: {both.sum()} pairs, {wrong.sum()} wrong, distances off by {off:.1e}")
    return ok


def boxed(points, box):
    """All distances of points in a box by scipy; an axis of length 0 is open."""
    tree = cKDTree(np.where(box > 0, points % np.where(box > 0, box, 1), points), boxsize=box)
    return tree.sparse_distance_matrix(tree, box[box > 0].min() / 2, output_type="coo_matrix")


def main():
    rng = np.random.default_rng(7)
    ok = True
    for dim in (1, 2, 3, 8, 40):
        points = rng.normal(size=(400, dim))
        for metric, scipy_name in (("euclidean",) * 2, ("manhattan", "cityblock"), ("chebyshev",) * 2):
            distances = cdist(points, points, scipy_name)
            eps = float(np.quantile(distances, 0.1))
            ok &= compare(f"{metric} {dim}", from_kith(points, eps, "--metric", metric), distances, eps)
        if dim > 1:
            cosine = np.clip(cdist(points, points, "cosine"), 0, 2)
            eps = float(np.quantile(cosine, 0.1))
            ok &= compare(f"cosine {dim}", from_kith(points, eps, "--metric", "cosine"), cosine, eps)
            angles = np.degrees(2 * np.arcsin(np.clip(np.sqrt(cosine / 2), 0, 1)))
            eps = float(np.quantile(angles, 0.1))
            angles[angles < 1e-4] = 0  # 1 - cos has no digits left there
            found = from_kith(points, eps, "--metric", "angular")
            found[found < 1e-4] = 0
            ok &= compare(f"angular {dim}", found, angles, eps)
    for box in ([1.0, 1.0], [2.0, 3.0, 1.5], [1.0, 0.0, 1.0]):
        box = np.array(box)
        points = rng.uniform(size=(600, len(box))) * 5 - 1
        eps = float(box[box > 0].min() / 5)
        near = boxed(points, box)
        distances = np.full((600, 600), np.inf)
        distances[near.row, near.col] = near.data
        np.fill_diagonal(distances, 0)
        found = from_kith(points, eps, "--box", ",".join(map(repr, map(float, box))))
        ok &= compare(f"box {box}", found, distances, eps)
    lon, lat = rng.uniform(-180, 180, 500), np.degrees(np.arcsin(rng.uniform(-1, 1, 500)))
    a, b = np.radians(lon), np.radians(lat)
    hav = (np.sin((b[:, None] - b) / 2) ** 2 + np.cos(b[:, None]) * np.cos(b) * np.sin((a[:, None] - a) / 2) ** 2)
    arc = 6371.0088 * 2 * np.arcsin(np.sqrt(np.clip(hav, 0, 1)))
    found = from_kith(np.stack([lon, lat], 1), 900.0, "--metric", "haversine", "--radius", "6371.0088")
    ok &= compare("haversine", found, arc, 900.0)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
