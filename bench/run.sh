#!/usr/bin/env bash
# Measures kith beside its peers. Usage: bench/run.sh BUILD_DIR [--quick]
# Leaves results.json, table.md, speed.png and scaling.png in BUILD_DIR/bench.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: bench/run.sh BUILD_DIR [--quick]" >&2; exit 2; }
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
out=$build/bench
venv=$build/bench-venv
shift

cmake --build "$build" --target kith kith_bench >/dev/null

# Not by CMake: the peer gets the flags that are best for it, not kith's.
mkdir -p "$out"
if [ "$here/peer_nanoflann.cc" -nt "$out/peer_nanoflann" ]; then
  "${CXX:-g++}" -std=c++17 -O3 -march=native -fopenmp "$here/peer_nanoflann.cc" -o "$out/peer_nanoflann"
fi

# The mark is made last: an installation that was interrupted is done again.
if [ "$here/requirements.txt" -nt "$venv/installed" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  touch "$venv/installed"
fi

# The report is made even where the answers disagree; the exit code tells.
status=0
"$venv/bin/python" "$here/bench.py" "$build" "$@" || status=$?
[ "$status" -le 1 ] && "$venv/bin/python" "$here/report.py" "$out/results.json" "$out"
exit "$status"
