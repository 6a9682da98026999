#!/usr/bin/env bash
# kith at work on two million points: demo.sh KITH_BINARY (or `make demo`).
set -euo pipefail

kith=$(realpath "${1:?usage: demo.sh KITH_BINARY}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

bold='' plain=''
if [ -t 1 ]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi

# show EXPLANATION ARGUMENTS...: prints the command as one would type it, then runs it.
show() {
  local explanation=$1
  shift
  printf '\n# %s\n%s$ kith %s%s\n' "$explanation" "$bold" "$*" "$plain"
  "$kith" "$@"
}

show "Two million points in two dimensions, far denser near the origin than elsewhere." \
  gen expo --n 2M --dim 2 --seed 1 -o expo2d.npy
show "What would a join do? Index, size of the result, memory and time, before it runs." \
  plan join expo2d.npy --eps 0.0005
show "How many pairs lie within 0.0005 of each other? Exactly." \
  join expo2d.npy --eps 0.0005
show "How many neighbours do the points have?" \
  join expo2d.npy --eps 0.0005 --what degrees
show "Who are they, within 0.0001? A sparse matrix for scipy.sparse.load_npz('neighbors.npz')." \
  join expo2d.npy --eps 0.0001 --what neighbors -o neighbors.npz
echo
ls -lh expo2d.npy neighbors.npz
