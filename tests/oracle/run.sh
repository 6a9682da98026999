#!/bin/sh
# run.sh PATH_OF_KITH BUILD_DIR: the oracle, with the Python of the benchmark where that is installed.
python=$2/bench-venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" "$(dirname "$0")/oracle.py" "$1"
