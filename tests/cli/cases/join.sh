# kith join and kith plan on points whose pairs are known by hand (see inputs.sh).

# Counts; eps is inclusive, and 0 finds duplicates.
check 0 2 '' kith join tiny.csv --eps 0 --quiet
check 0 2 '' kith join tiny.csv --eps 0.999 --quiet
check 0 4 '' kith join tiny.csv --eps 1 --quiet
check 0 6 '' kith join tiny.csv --eps 2 --quiet
check 0 8 '' kith join tiny.csv --eps 2.24 --quiet
check 0 20 '' kith join tiny.csv --eps 1e300 --quiet
check 0 9 '' kith join tiny.csv --eps 1 --self --quiet
check 0 2 '' kith join tiny.csv --eps 1 --half --quiet
check 0 9 '' kith join tiny.csv tiny.csv --eps 1 --quiet
check 0 3 '' kith join pair.txt tiny.csv --eps 1 --quiet
check 0 8 '' kith join tiny.csv --columns x --eps 1 --quiet
check 0 2 '' kith join tiny.csv pair.txt --columns y --columns-b 1 --eps 0.4 --quiet

# Every instruction set that the machine has, more threads than points, small batches: the same.
for isa in scalar avx2 avx512; do
  env KITH_ISA=$isa "$KITH" join tiny.csv --eps 1 --quiet >/dev/null 2>&1
  [ $? = 6 ] || check 0 4 '' env KITH_ISA=$isa "$KITH" join tiny.csv --eps 1 --quiet
done
check 0 4 '' kith join tiny.csv --eps 1 --quiet --threads 7 --engine cpu
check 0 4 '' kith join tiny.csv --eps 1 --quiet --cell-side 0.5 --index-dims 1 --memory 100M

# Grid or epsilon grid order: the same pairs, and the report says which.
check 0 4 '' kith join tiny.csv --eps 1 --quiet --algorithm grid
check 0 4 '' kith join tiny.csv --eps 1 --quiet --algorithm ego
check 0 3 '' kith join pair.txt tiny.csv --eps 1 --quiet --algorithm ego
check 0 '<*>"engine": "cpu",
  "algorithm": "ego",<*>' '' kith join tiny.csv --eps 1 --algorithm ego --json
check 0 '0,1,1
0,2,2.23606797749979
1,2,2
3,4,0' '' kith join tiny.csv --eps 3 --what pairs --sorted --half --distances --quiet --algorithm ego
check 0 'task        <*>
index       epsilon grid order by dimensions <#>, <#>
            <#> non-empty cells of side <#>
<*>
            Points are in epsilon grid order (Super-EGO), <*>: that was asked for.
<*>' '' kith plan join tiny.csv --eps 1 --algorithm ego

# Pairs as text: to standard output, the summary on standard error.
check 0 '0,1
1,0
1,2
2,1
3,4
4,3' '' kith join tiny.csv --eps 2 --what pairs --sorted --quiet
check 0 '0,1
1,0
1,2
2,1
3,4
4,3' 'pairs       6
neighbours  1.2 per point on average
<*>' kith join tiny.csv --eps 2 --what pairs --sorted -o -
check 0 '0,1,1
0,2,2.23606797749979
1,2,2
3,4,0' '' kith join tiny.csv --eps 3 --what pairs --sorted --half --distances --quiet
check 0 '0,1
1,0
1,2
2,1
3,4
4,3' '{
  "n": 5,<*>"pairs": 6,<*>
}' kith join tiny.csv --eps 2 --what pairs --sorted --json
check 0 '0,1
1,0
1,2
2,1
3,4
4,3' '' kith join tiny.csv --eps 2 --what pairs --sorted --quiet --batch-rows 2

# Standard input, headers and columns.
check 0 '0,1
1,0' '' bash -c 'printf "a b c\n0 9 0\n0 1 1\n" | "$0" join - --columns a,c --eps 1 --what pairs --quiet' "$KITH"
check 0 2 '' bash -c 'printf "0 0\n" | "$0" join - tiny.csv --eps 1 --quiet' "$KITH"

# The summary, and the histogram of neighbour counts.
check 0 'pairs       4
neighbours  0.8 per point on average
time        <#> s: load <#>, plan <#>, index <#>, join <#>, write <#>
rate        <*> pairs/s, <*> candidates/s in the join
engine      cpu, <*>, threads: 1
memory      <*> at most' '' kith join tiny.csv --eps 1 --threads 1
check 0 'pairs       8
neighbours  1.6 per point on average, from 1 to 2
<*>
       neighbours         points
                1              2  #################################
              2-3              3  ##################################################' '' \
  kith join tiny.csv --eps 2.24 --what degrees
check 0 'pairs       4
<*>' '' kith join tiny.csv --eps 1 --what neighbors

# JSON: the fixed keys, whole numbers whole.
check 0 '{
  "n": 5,
  "dim": 2,
  "eps": 0.1,
  "metric": "euclidean",
  "engine": "cpu",
  "algorithm": "grid",
  "isa": "<*>",
  "threads": 1,
  "what": "count",
  "pairs": 2,
  "selectivity": 0.4,
  "candidates": <#>,
  "tested": <#>,
  "inside": <#>,
  "cells": <#>,
  "index_dims": <#>,
  "cell_side": <#>,
  "invalid_rows": 0,
  "batches": 1,
  "output": null,
  "seconds": {
    "load": <#>,
    "index": <#>,
    "plan": <#>,
    "join": <#>,
    "write": <#>,
    "total": <#>
  },
  "peak_bytes": <#>
}' '' kith join tiny.csv --eps 0.1 --threads 1 --json
check 0 '<*>"pairs": 7,
  "selectivity": 0.4,<*>' '' kith join tiny.csv --eps 0.1 --self --json
check 0 '{
  "n": 2,
  "n_b": 5,<*>"pairs": 3,
  "selectivity": 1.5,<*>' '' kith join pair.txt tiny.csv --eps 1 --json
check 0 '<*>"what": "degrees",<*>"degrees": {
    "min": 0,
    "mean": 0.8,
    "max": 1,
    "histogram": [
      {
        "from": 0,
        "to": 0,
        "points": 1
      },
      {
        "from": 1,
        "to": 1,
        "points": 4
      }
    ]
  }
}' '' kith join tiny.csv --eps 1 --what degrees --json

# Rows with NaN or infinity: refused by name, or left out and counted; ids stay those of the file.
check 3 '' 'kith: invalid.csv: row 1, column 1 is nan (counted from 0; invalid rows in all: 2); remove such rows, or skip them (--skip-invalid)' \
  kith join invalid.csv --eps 1
check 3 '' 'kith: invalid.csv: row 1, column 1 is nan (counted from 0; invalid rows in all: 2); remove such rows, or skip them (--skip-invalid)' \
  kith join tiny.csv invalid.csv --eps 1
check 3 '' 'kith: invalid.csv: row 4, column 0 is inf (counted from 0; invalid rows in all: 1); remove such rows, or skip them (--skip-invalid)' \
  kith join invalid.csv --columns 0 --eps 1
check 0 '2,3
3,2' '' kith join invalid.csv --eps 1 --skip-invalid --what pairs --quiet
check 0 '<*>"pairs": 2,
<*>"invalid_rows": 2,<*>' 'kith: left out 2 rows with NaN or infinity (--skip-invalid)' \
  kith join invalid.csv --eps 1 --skip-invalid --json
check 0 '<*>' 'kith: left out 1 row with NaN or infinity (--skip-invalid)' \
  kith join invalid.csv --columns 0 --eps 1 --skip-invalid

# A pipe without a known ending is text.
check 0 '4' '' bash -c '"$0" join <(cat tiny.csv) --eps 1 -q' "$KITH"

# The plan.
check 0 'task        count the pairs within 1 in 2 dimensions: 5 points with themselves
index       <*>
work        <*> pairs to test, <*> accepted untested
engine      cpu, <*>, threads: 1; kernel: <*>
pairs       4<*>
result      <*>
memory      index <*>, work <*>, budget <*>: fits
time        about <#> s
why
            <*>' '' kith plan join tiny.csv --eps 1 --threads 1
check 0 'task        neighbour table within 1 in 2 dimensions: 2 points of A, 5 of B<*>' '' \
  kith plan join pair.txt tiny.csv --eps 1 --what neighbors
check 0 '{
  "n_queries": 5,
  "n_candidates": 5,
  "dim": 2,
  "metric": "euclidean",
  "index_dims": <#>,
  "dims": [<*>],
  "directions": false,
  "cell_side": <#>,
  "cell_width": <#>,
  "cells": <#>,
  "rows": <#>,
  "runs": <#>,
  "algorithm": "grid",
  "kernel": "<*>",
  "engine": "cpu",
  "isa": "<*>",
  "threads": <#>,
  "pairs": <#>,
  "pairs_error": <#>,
  "candidates": <#>,
  "inside": <#>,
  "seconds": <#>,
  "index_bytes": <#>,
  "work_bytes": <#>,
  "result_bytes": <#>,
  "budget_bytes": <#>,
  "batches": <#>,
  "fits": true,
  "seconds_predicted": {<*>},
  "why": [<*>]
}' '' kith plan join tiny.csv --eps 1 --json

# Tables as pandas writes them: an index without a name, and columns that may have none, either.
printf ',x,y\n0,1,2\n1,1,2.5\n' >named.csv
printf ',0,1\n0,1,2\n1,1,2.5\n' >numbered.csv
unnamed() { echo "kith: $1: column 0 has no name in the header, like an index: choose the columns that are coordinates"; }
check 3 '' "$(unnamed named.csv)" kith join named.csv --eps 1
check 3 '' "$(unnamed numbered.csv)" kith join numbered.csv --eps 1
check 0 2 '' kith join named.csv --columns x,y --eps 1 -q
check 0 2 '' kith join numbered.csv --columns 1,2 --eps 1 -q
rm named.csv numbered.csv

# What is no text of bytes is told apart.
printf '\037\213\010\000' >packed.csv
check 3 '' 'kith: packed.csv: it is compressed (gzip); unpack it first' kith join packed.csv --eps 1
printf '\377\3761\000,\0002\000\n\000' >wide.csv
check 3 '' 'kith: wide.csv: it is text in UTF-16; save it as UTF-8' kith join wide.csv --eps 1
rm packed.csv wide.csv
usage ' join' "--eps is '0x10', which is not a number" join tiny.csv --eps 0x10

# Pairs and what is said about them do not mix.
check 0 '0,1
1,0' '<*>"pairs": 2<*>' kith join pair.txt --eps 2 --what pairs --json -o /dev/stdout
check 0 '0,1
1,0' '{<*>"invalid_rows": 1<*>}' bash -c 'printf "0,0\n1,1\nnan,1\n" | "$0" join - --eps 2 --what pairs --json --skip-invalid' "$KITH"
