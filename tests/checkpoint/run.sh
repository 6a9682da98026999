#!/bin/bash
# Joins that are killed and go on: run.sh PATH_OF_KITH PATH_OF_ACCIDENT_LIBRARY [KILLS [STEP]]
#
# Whatever happens to a join with --checkpoint, and however often, the same command must in the end write the bytes
# of a run that was never disturbed, and leave nothing else behind; and no file may ever have the name of the result
# and other bytes. Accidents happen at every STEP-th call that changes a file (default: 4), and KILLS times at random
# moments (default: 40); SEED is for the latter.
set -u
export LC_ALL=C

KITH=$(realpath "${1:?usage: run.sh PATH_OF_KITH PATH_OF_ACCIDENT_LIBRARY [KILLS [STEP]]}")
ACCIDENTS=$(realpath "${2:?the library of accidents is missing}")
KILLS=${3:-40}
STEP=${4:-4}
unset KITH_ISA
# Under the address sanitizer the library of accidents comes first, which is what it wants to be warned of.
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
RANDOM=${SEED:-1}

# In memory where that can be had: on a disk, hundreds of joins would wait for it again and again.
scratch=$(TMPDIR=${TMPDIR:-$([ -w /dev/shm ] && echo /dev/shm)} mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
mkdir wanted

failed=0
n_accidents=0
n_resumed=0
complain() {
  echo "FAILED: $*"
  failed=$((failed + 1))
}

# The joins, by the name of their result.
options_of() {
  case $1 in
  plain.npz) echo "points.npy --eps 0.004 --what neighbors" ;;
  far.npz) echo "points.npy --eps 0.003 --what neighbors --distances --sorted" ;;
  pairs.npy) echo "points.npy --eps 0.004 --what pairs --half" ;;
  pairs.csv) echo "points.npy --eps 0.002 --what pairs --distances" ;;
  pairs.txt) echo "points.npy other.npy --eps 0.003 --what pairs" ;;
  many.npz) echo "many.npy --eps 5.5 --what neighbors" ;;
  few.npz) echo "points.npy --eps 0.0001 --what neighbors" ;;
  esac
}
NAMES='plain.npz far.npz pairs.npy pairs.csv pairs.txt many.npz few.npz'

# prepare NAME [OPTIONS...]: sets $command to the join whose result is NAME, recorded in the folder at.
prepare() {
  local name=$1
  shift
  # shellcheck disable=SC2207
  command=("$KITH" join $(options_of "$name") -o "$name" --checkpoint at --checkpoint-seconds "$seconds" --engine cpu "$@")
}

seconds=0.001
join() {
  prepare "$@"
  "${command[@]}"
}

# sound NAME: the result is not there, or complete.
sound() {
  [ ! -e "$1" ] || cmp -s "$1" "wanted/$1" || complain "$1 has other bytes: $label"
}

# completes NAME [OPTIONS...]: undisturbed, the command ends, and leaves the result and nothing else.
completes() {
  local name=$1
  join "$@" --json >report 2>log || complain "$label: $(cat log)"
  grep -q '"rows": [1-9]' report && n_resumed=$((n_resumed + 1))
  cmp -s "$name" "wanted/$name" || complain "$name has other bytes in the end: $label"
  # Killed in its last moment, a join may leave the empty folder.
  [ ! -e at ] || rmdir at || complain "the folder stays: $label: $(ls -A at)"
  [ -z "$(find . -name '*.part')" ] || complain "an unfinished file stays: $label"
  rm -rf "$name" at .*.part
}

"$KITH" gen expo --n 20k --dim 2 --lambda 10 -o points.npy
"$KITH" gen expo --n 10k --dim 2 --lambda 10 --seed 2 -o other.npy
"$KITH" gen gauss --n 4k --dim 40 -o many.npy
for name in $NAMES; do
  # shellcheck disable=SC2046
  "$KITH" join $(options_of "$name") -o "wanted/$name" -q --engine cpu || complain "$name cannot be made"
  label="undisturbed $name"
  join "$name" -q || complain "$label"
  [ ! -e at ] || complain "the folder stays: $label"
  sound "$name"
  # Threads, instruction sets and batches are not part of what is recorded.
  label="another machine, $name"
  KITH_ISA=scalar completes "$name" --threads 1 --batch-rows 777
done

# Accidents at calls that change a file, in a run with few batches.
seconds=0.004
accident() {
  local kind=$1 at=$2 name=$3
  n_accidents=$((n_accidents + 1))
  label="$kind at call $at of $name"
  ACCIDENT=$kind ACCIDENT_AT=$at LD_PRELOAD=$ACCIDENTS join "$name" -q >log 2>&1
  sound "$name"
}
for name in $NAMES; do
  label="$name, calls counted"
  ACCIDENT_LOG=$scratch/calls LD_PRELOAD=$ACCIDENTS join "$name" -q || complain "$label"
  rm -f "$name"
  calls=$(cat calls)
  [ "$calls" -gt 20 ] || complain "$name: only $calls calls"
  for kind in power fail; do
    for ((at = 1 + RANDOM % STEP; at <= calls; at += STEP)); do
      accident $kind $at "$name"
      # Every third time another one, while the first is being made good.
      [ $((at % 3)) != 0 ] || accident power $((RANDOM % calls + 1)) "$name"
      label="$kind at call $at of $name"
      if [ -e "$name" ] && [ ! -e at ]; then rm "$name"; else completes "$name"; fi
    done
  done
done

# Kills at random moments, with as many batches as there are; every third is followed by another one.
seconds=0.001
# shellcheck disable=SC2206
all=($NAMES)
for ((kill = 0; kill < KILLS; kill++)); do
  [ -e at ] || name=${all[kill % ${#all[@]}]}
  n_accidents=$((n_accidents + 1))
  label="kill $kill of $name"
  prepare "$name" -q
  "${command[@]}" >log 2>&1 &
  pid=$!
  sleep "0.$(printf %03d $((RANDOM % 300)))"
  kill -9 $pid
  wait $pid
  sound "$name"
  if [ $((kill % 3)) != 0 ] || [ ! -e at ]; then completes "$name"; fi
done 2>/dev/null
[ ! -e at ] || completes "$name"
rm -rf at ./*.npz pairs.*

echo "$n_accidents accidents, $n_resumed joins resumed from rows that were recorded, $failed failures"
[ $((10 * n_resumed)) -gt $n_accidents ] || complain "hardly any join was resumed"
[ "$failed" = 0 ]
