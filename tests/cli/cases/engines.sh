# Engines: choosing them, measuring them, drawing what they did.

check 2 '' "kith: '0,x' are no GPUs: numbers from 0, as in 0 or 0,1, or all" \
  kith join tiny.csv --eps 1 --device 0,x
check 2 '' "kith: '0,0,0,0,0,0,0,0,0' are more than 8 GPUs" \
  kith join tiny.csv --eps 1 --device 0,0,0,0,0,0,0,0,0

# Without a GPU, sharing is refused; with one, the answer is the same.
if kith devices --json | grep -A1 '"cuda"' | grep -q 'true'; then
  check 0 4 '' kith join tiny.csv --eps 1 --engine hybrid --quiet
else
  check 6 '' 'kith: no GPU can be used: <*>' kith join tiny.csv --eps 1 --engine hybrid
  check 6 '' 'kith: no GPU can be used: <*>' kith join tiny.csv --eps 1 --engine cuda --device all
fi

# The trace is a JSON file that names its tracks.
makes=trace.json check 0 4 '' kith join tiny.csv --eps 1 --engine cpu --threads 1 --quiet --trace trace.json
kith join tiny.csv --eps 1 --engine cpu --threads 1 --quiet --trace trace.json >/dev/null
check 0 '{"traceEvents":[<*>"thread_name"<*>"name":"cpu"<*>"ph":"X"<*>"displayTimeUnit":"ms"<*>' '' cat trace.json
rm -f trace.json
check 4 '' 'kith: no/such/trace.json: the trace cannot be written: No such file or directory' \
  kith join tiny.csv --eps 1 --engine cpu --quiet --trace no/such/trace.json

# A trace that does not fit: the output is complete, the count is told, and the sentence says so.
kith gen unif --n 2000 --dim 3 -o traced.npy 2>/dev/null
makes=traced.npz check 4 '' "kith: trace.json: the trace cannot be written: File too large; the join itself is done" \
  bash -c 'ulimit -f 64; exec "$0" join traced.npy --eps 0.05 --what neighbors -o traced.npz --engine cpu --threads 8 --batch-rows 1 --trace trace.json -q' "$KITH"
check 4 '<#>' "kith: trace.json: the trace cannot be written: File too large; the join itself is done" \
  bash -c 'ulimit -f 1; exec "$0" join traced.npy --eps 0.05 --engine cpu --threads 8 --batch-rows 1 --trace trace.json -q' "$KITH"
rm -f traced.npy traced.npz
printf 'two\n2\n    1A      A    1   0.100   0.100   0.100\n    1A      A    2   0.200   0.100   0.100\n 4 4 4\n' >two.gro
usage ' join' '--trace ./two.gro would replace the points that are joined' join 'two.gro[0]' --eps 1 --trace ./two.gro
usage ' join' '-o two.gro would replace the points that it is made from' \
  join 'two.gro[0]' --eps 1 --what pairs -o two.gro
usage ' join' "--trace needs a file to write, not '-'" join tiny.csv --eps 1 --trace -
usage ' join' '--trace and -o name the same file, ./o.npz' \
  join tiny.csv --eps 1 --what neighbors -o o.npz --trace ./o.npz
usage ' join' '--trace tiny.csv would replace the points that are joined' join tiny.csv --eps 1 --trace tiny.csv
usage ' join' '--trace and -o name the same file, o.npz' \
  join tiny.csv --eps 1 --what neighbors -o o.npz --trace o.npz
check 4 '' 'kith: /dev/null: the trace cannot be written: it is there, and no ordinary file' \
  kith join tiny.csv --eps 1 --engine cpu --quiet --trace /dev/null
check 2 '' "kith: '0,' are no GPUs: numbers from 0, as in 0 or 0,1, or all" kith join tiny.csv --eps 1 --device 0,

# Speeds are kept where they are asked to be, and plans use them.
export KITH_SPEEDS=$PWD/speeds.txt
printf 'of another machine\ncpu 2 200000 1000000 1.0\n' >speeds.txt
check 0 '<*>"cpu": null<*>' '' kith plan join tiny.csv --eps 1 --json
rm speeds.txt
if [ -z "${KITH_TEST_SLOW:-}" ]; then
  makes=speeds.txt keep=1
  check 0 'cpu     dim 2: <#> pairs/s<*>dim 8: <#> pairs/s' '' kith devices --calibrate
  makes= keep=
  check 0 '<*>"cpu": <#>,<*>' '' kith plan join tiny.csv --eps 1 --json
  rm -f speeds.txt
fi
export KITH_SPEEDS=/dev/null
check 4 '' 'kith: /dev/null: the speeds cannot be kept: it is there, and no ordinary file' kith devices --calibrate
export KITH_SPEEDS=no/such/speeds.txt
check 4 '' 'kith: no/such/speeds.txt: the speeds cannot be kept: No such file or directory' kith devices --calibrate
unset KITH_SPEEDS
