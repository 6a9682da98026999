# Options and arguments that are refused: exit code 2, one sentence.

for eps in -1 nan NaN -inf inf 1e999; do
  usage ' join' "--eps is '$eps', but must be a finite number of at least 0" join tiny.csv --eps "$eps"
done
for eps in abc '' 1e 1,5 ' 1' 0x; do
  usage ' join' "--eps is '$eps', which is not a number" join tiny.csv --eps "$eps"
  usage ' join' "--eps is '$eps', which is not a number" join tiny.csv "--eps=$eps"
done
usage ' join' "--eps is missing: give the distance, such as --eps 0.01" join tiny.csv
usage ' join' "option --eps needs a value" join tiny.csv --eps
usage ' plan' "--eps is missing: give the distance, such as --eps 0.01" plan join tiny.csv

usage ' join' "unknown option '--epss' (did you mean '--eps'?)" join tiny.csv --epss 1
usage ' join' "unknown option '--skip' (did you mean '--skip-invalid'?)" join tiny.csv --eps 1 --skip
usage ' join' "unknown option '--frobnicate'" join tiny.csv --eps 1 --frobnicate
usage ' join' "unknown option '-z'" join tiny.csv --eps 1 -z
usage ' info' "unknown option '--eps'" info tiny.csv --eps 1
usage ' join' "option --self=1: option does not take an argument" join tiny.csv --eps 1 --self=1

usage ' join' "no file of points given" join --eps 1
usage ' join' "'c' is one file too many: a join takes one set or two" join a b c --eps 1
usage ' join' "too many arguments: 'd' is one more than is understood" join a b c d --eps 1
usage ' join' "standard input can be read only once, but '-' is given twice" join - - --eps 1
usage ' join' "--self is for one set only, but two are given" join tiny.csv tiny.csv --eps 1 --self
usage ' join' "--half is for one set only, but two are given" join tiny.csv tiny.csv --eps 1 --half
usage ' join' "--self and --half exclude each other" join tiny.csv --eps 1 --self --half
usage ' join' "--columns-b is given, but there is no second file" join tiny.csv --eps 1 --columns-b 0
usage ' join' "-o needs a result to write: add --what degrees, neighbors or pairs" join tiny.csv --eps 1 -o out.npz
usage ' join' "--distances needs --what neighbors or pairs" join tiny.csv --eps 1 --distances
usage ' join' "--what is 'paris', but must be count, degrees, neighbors or pairs" join tiny.csv --eps 1 --what paris
usage ' join' "--engine is 'gpu', but must be auto, cpu, cuda or hybrid" join tiny.csv --eps 1 --engine gpu
usage ' join' "--output is empty" join tiny.csv --eps 1 --what pairs -o ''

usage ' join' "--threads is '0', but must be from 1 to 4096" join tiny.csv --eps 1 --threads 0
usage ' join' "--threads is 'two', which is not a whole number such as 1000, 1e6 or 2M" join tiny.csv --eps 1 --threads two
usage ' join' "--threads is '-1', which is not a whole number such as 1000, 1e6 or 2M" join tiny.csv --eps 1 --threads -1
for size in 2Q G 1e 2GiBB -5; do
  usage ' join' "--memory is '$size', which is not a size such as 2G, 512MiB or a number of bytes" \
    join tiny.csv --eps 1 --memory "$size"
done
usage ' join' "--cell-side is '100', but must be from 0.25 to 64" join tiny.csv --eps 1 --cell-side 100
usage ' join' "--index-dims is '9', but must be from 1 to 8" join tiny.csv --eps 1 --index-dims 9
usage ' join' "--kernel is 'points', but must be auto, tile or point" join tiny.csv --eps 1 --kernel points
usage ' join' "--threads-per-query is '33', but must be from 1 to 32" join tiny.csv --eps 1 --threads-per-query 33

# What the algorithm ego does not go with.
usage ' join' "--algorithm is 'kd', but must be auto, grid or ego" join tiny.csv --eps 1 --algorithm kd
check 2 '' 'kith: the algorithm ego does not know periodic boxes: choose grid, or leave the choice to kith' \
  kith join tiny.csv --eps 1 --box 9,9 --algorithm ego
check 2 '' 'kith: the algorithm ego has cells of side eps in as many dimensions as it can: <*>' \
  kith join tiny.csv --eps 1 --index-dims 1 --algorithm ego
check 2 '' 'kith: brute force is an algorithm of its own: leave the choice between grid and ego out' \
  kith join tiny.csv --eps 1 --brute --algorithm ego
check 2 '' 'kith: the algorithm ego is one of the CPU: choose the engine cpu and points in host memory' \
  kith join tiny.csv --eps 1 --kernel point --algorithm ego

# The kernels of a GPU, and what goes with them.
check 2 '' 'kith: the kernels tile and point are those of a GPU: choose the engine cuda' \
  kith join tiny.csv --eps 1 --engine cpu --kernel point --cells unicomp --order queue --threads-per-query 8
check 2 '' 'kith: threads_per_query is 3; it must be 1, 2, 4, 8, 16 or 32, so that warps hold whole queries' \
  kith join tiny.csv --eps 1 --kernel point --threads-per-query 3
check 2 '' 'kith: cells, order and threads per query have a meaning for the kernel point only' \
  kith join tiny.csv --eps 1 --order workload
check 2 '' 'kith: the cells unicomp and lid-unicomp find a pair from one side only: they are for one set, not for two' \
  kith join tiny.csv tiny.csv --eps 1 --kernel point --cells lid-unicomp
check 2 '' 'kith: the kernel point has cells of side eps in at most 6 dimensions: leave cell_side out, and <*>' \
  kith join tiny.csv --eps 1 --kernel point --cell-side 2

usage ' plan' "plan what? Write 'kith plan join A --eps E'" plan
usage ' plan' "cannot plan 'gen', only a join: write 'kith plan join A --eps E'" plan gen unif
usage ' plan' "no file of points given" plan join --eps 1
usage ' info' "no file of points given" info
usage ' info' "'b' is one file too many: info describes one" info a b
usage ' devices' "'cpu' is not understood: devices takes no arguments" devices cpu

check 2 '' "kith: KITH_ISA: unknown instruction set 'mmx': scalar, avx2 or avx512" env KITH_ISA=mmx "$KITH" join tiny.csv --eps 1
