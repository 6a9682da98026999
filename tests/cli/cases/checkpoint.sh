# --checkpoint: what is refused, and what is said. That joins go on to the same bytes is tested in tests/checkpoint.

usage ' join' '--checkpoint needs --what neighbors or pairs: a count or degrees are not written in batches' \
  join tiny.csv --eps 1 --checkpoint at
usage ' join' '--checkpoint needs --what neighbors or pairs: a count or degrees are not written in batches' \
  join tiny.csv --eps 1 --what degrees -o out.npy --checkpoint at
for output in '' '-o -'; do
  # shellcheck disable=SC2086
  usage ' join' '--checkpoint needs a file to write: add -o FILE' \
    join tiny.csv --eps 1 --what pairs $output --checkpoint at
done
usage ' join' '--checkpoint-seconds needs --checkpoint' join tiny.csv --eps 1 --checkpoint-seconds 1
check 2 '' "kith: a checkpoint needs a file that can be continued: '/dev/null' is none" \
  kith join tiny.csv --eps 1 --what pairs -o /dev/null --checkpoint at
check 4 '' 'kith: nowhere/at: the checkpoint cannot be kept there: No such file or directory' \
  kith join tiny.csv --eps 1 --what pairs -o out.csv --checkpoint nowhere/at
check 4 '' 'kith: tiny.csv: the checkpoint cannot be kept there: Not a directory' \
  kith join tiny.csv --eps 1 --what pairs -o out.csv --checkpoint tiny.csv
# A join that cannot begin leaves no folder; one that ends leaves none, or its own empty.
check 3 '' 'kith: invalid.csv: row <*>' kith join invalid.csv --eps 1 --what pairs -o out.csv --checkpoint at
makes=out.csv check 0 '' '' kith join tiny.csv --eps 1 --what pairs -o out.csv --checkpoint at -q
mkdir at
makes=out.csv check 0 '' '' kith join tiny.csv --eps 1 --what pairs -o out.csv --checkpoint at -q
check 0 '' '' ls -A at
rmdir at
makes=out.npz check 0 '<*>"resumed": {
    "rows": 0,
    "pairs": 0
  },<*>' '' kith join tiny.csv --eps 1 --what neighbors -o out.npz --checkpoint at --json

# recorded SIGNAL ARGUMENTS...: begins a long join, and sends the signal once something is recorded.
mkdir in
kith gen unif --n 300k --dim 8 -o long.npy
long=(join long.npy --eps 0.7 --what neighbors -o in/out.npz --checkpoint in/at)
recorded() {
  local signal=$1 pid
  shift
  rm -rf in/at
  "$KITH" "$@" &
  pid=$!
  until [ -e in/at/kith.state ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -s "$signal" "$pid"
  wait "$pid"
}
stays='what is done stays recorded in in/at, and the same command goes on from there'
check 130 '' "kith: interrupted; $stays" recorded INT "${long[@]}"
check 143 '' "kith: terminated; $stays" recorded TERM "${long[@]}"
check 0 'kith.lock
kith.state' '' ls in/at

# Other joins are refused, and told what differs; the record stays.
refused() {
  local differs=$1
  shift
  check 2 '' "kith: in/at: holds the checkpoint of another join, which differs in: $differs; repeat that join, name another folder, or remove this one, and the file .NAME.*.part beside that join's output NAME" kith "$@"
}
kith gen unif --n 1k --dim 8 --seed 3 -o short.npy
refused 'the points of A, eps, sorted, distances' join short.npy --eps 1 --what neighbors --sorted --distances -o in/out.npz --checkpoint in/at
refused 'the points of A, the points of B' join short.npy short.npy --eps 0.7 --what neighbors -o in/out.npz --checkpoint in/at
refused 'the points of A, half, metric, what, the output file' \
  join short.npy --eps 0.7 --half --metric manhattan --what pairs -o in/p.csv --checkpoint in/at
refused 'the points of A, self, skip-invalid, box' \
  join short.npy --eps 0.7 --self --skip-invalid --box 2,2,2,2,2,2,2,2 --what neighbors -o in/out.npz --checkpoint in/at
refused 'the output file' "${long[@]}" -o in/other.npz
refused 'the engine or its grid' "${long[@]}" --index-dims 2
cp long.npy changed.npy
printf '\x3e' | dd of=changed.npy bs=1 seek=4000003 conv=notrunc status=none
refused 'the points of A' join changed.npy --eps 0.7 --what neighbors -o in/out.npz --checkpoint in/at
check 0 'kith.lock
kith.state' '' ls in/at

# Two processes: the second is refused.
rm -r in
mkdir in
"$KITH" "${long[@]}" -q &
holder=$!
until [ -e in/at/kith.state ]; do sleep 0.05; done
check 4 '' 'kith: in/at: another process is at work on this checkpoint; let it end, or name another folder' \
  kith "${long[@]}"
kill -9 $holder
wait $holder 2>/dev/null
rm -r long.npy changed.npy in

# A state that is damaged, one that is torn, and an unfinished file that is gone: the join begins anew, and says so.
mkdir in
kith gen expo --n 20k --dim 2 --lambda 10 -o p.npy
kith join p.npy --eps 0.02 --what pairs -o wanted.npy -q
short=(join p.npy --eps 0.02 --what pairs -o in/out.npy --checkpoint in/at --checkpoint-seconds 0.001 -q)
damage() {
  case $1 in
  state) printf '\x55\x55' | dd of=in/at/kith.state bs=1 seek=200 conv=notrunc status=none ;;
  torn) truncate -s 100 in/at/kith.state ;;
  file) rm in/.out.npy.*.part ;;
  cut) truncate -s 100 in/.out.npy.*.part ;;
  none) ;;
  esac
}
for how in none state torn file cut; do
  # The file must not grow beyond 8 MB: the result has more.
  check 4 '' 'kith: in/out.npy: File too large (wrote <#> MiB of <#> MiB); what is done stays recorded in in/at, and doing the same again goes on from there' \
    bash -c 'ulimit -f 8000; "$0" "$@"' "$KITH" "${short[@]}"
  check 0 'at' '' ls in
  damage $how
  warning='kith: the checkpoint in in/at was damaged: the join began anew'
  [ $how != none ] || warning=
  check 0 '' "$warning" kith "${short[@]}"
  check_files wanted.npy in/out.npy
  check 0 'out.npy' '' ls -A in
  rm in/out.npy
done
# Degrees that are damaged are counted again.
check 4 '' 'kith: in/out.npy: File too large<*>' bash -c 'ulimit -f 8000; "$0" "$@"' "$KITH" "${short[@]}"
printf '\x55' | dd of=in/at/kith.degrees bs=1 seek=5000 conv=notrunc status=none
check 0 '<*>"resumed": {
    "rows": <#>,
    "pairs": <#>
  },<*>' '' kith "${short[@]}" --json
check_files wanted.npy in/out.npy
rm -r in p.npy wanted.npy short.npy
