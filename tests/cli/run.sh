#!/bin/bash
# Tests of the command by its exact output: run.sh PATH_OF_KITH [CASES...]
#
# Every case is one call of check (below): it runs a command in a scratch folder and compares its exit code,
# standard output, standard error and the files it leaves behind. The cases are in cases/*.sh; name some (such
# as "gen join") to run only those.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
KITH=$(realpath "${1:?usage: run.sh PATH_OF_KITH [CASES...]}")
shift
unset KITH_ISA

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work" "$scratch/log"
cd "$scratch/work" || exit 1

passed=0
failed=0

kith() { "$KITH" "$@"; }

# A text with <*> (anything) and <#> (a number) as a bash pattern; all else is taken literally.
pattern() {
  sed -e 's/[][\\*?()|!@+]/\\&/g' -e 's/<\\\*>/*/g' -e 's/<#>/+([0-9.e+-])/g' <<<"$1"
}

# complain WHAT WANTED GOT
complain() {
  printf -- '--- %s\n    command: %s\n    wanted:\n%s\n    got:\n%s\n' "$1" "$label" "$2" "$3"
  ok=0
}

# compare WHAT WANTED GOT
compare() {
  local wanted
  wanted=$(pattern "$2")
  # shellcheck disable=SC2053
  [[ "$3" == $wanted ]] || complain "$1" "$2" "$3"
}

# verdict: counts the case.
verdict() {
  if [ "$ok" = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# check CODE STDOUT STDERR COMMAND...: one case. The command may leave only the files named in $makes; they
# are removed afterwards unless $keep is set.
makes=
keep=
check() {
  local code=$1 wanted_out=$2 wanted_err=$3 before after got files
  shift 3
  label="$*"
  ok=1
  before=$(ls -A)
  "$@" >"$scratch/log/out" 2>"$scratch/log/err"
  got=$?
  [ "$got" = "$code" ] || complain "exit code" "$code" "$got"
  compare "standard output" "$wanted_out" "$(cat "$scratch/log/out")"
  compare "standard error" "$wanted_err" "$(cat "$scratch/log/err")"
  after=$(ls -A)
  # shellcheck disable=SC2086
  files=$(printf '%s\n' "$before" $makes | sed '/^$/d' | sort -u)
  [ "$(sort -u <<<"$after" | sed '/^$/d')" = "$files" ] || complain "files in the folder" "$files" "$after"
  # shellcheck disable=SC2086
  [ -n "$keep" ] || rm -f $makes
  verdict
}

# check_files WANTED_FILE GOT_FILE: the same bytes.
check_files() {
  label="cmp $1 $2"
  ok=1
  cmp -s "$1" "$2" || complain "bytes differ" "$(od -c "$1" | head -20)" "$(od -c "$2" | head -20)"
  verdict
}

# usage COMMAND SENTENCE ARGUMENTS...: the arguments are refused, exit code 2.
usage() {
  local command=$1 sentence=$2
  shift 2
  check 2 '' "kith: $sentence; try 'kith$command --help'" kith "$@"
}

# npy_file FILE DESCR SHAPE: the header of an .npy file; the caller appends the data.
npy_file() {
  local header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" >"$1"
}

for name in "${@:-inputs help gen info usage join space engines output errors checkpoint signals progress}"; do
  for part in $name; do
    # shellcheck disable=SC1090
    source "$here/cases/$part.sh"
  done
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
