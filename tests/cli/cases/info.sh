# kith info and kith devices.

check 0 'points      5
dimensions  2
type        float64
storage     in memory, C order
invalid     0 rows with NaN or infinity

column                   min             max            mean        variance
x                          0              10             4.4           21.04
y                          0              10             4.4           21.44' '' kith info tiny.csv

check 0 '<*>invalid     2 rows with NaN or infinity

column                   min             max            mean        variance
0                          0               2       1.3333333      0.88888889
1                          0               2       1.3333333      0.88888889' '' kith info invalid.csv

check 0 '{
  "path": "tiny.csv",
  "n": 5,
  "dim": 1,
  "type": "float64",
  "mapped": false,
  "order": "C",
  "invalid_rows": 0,
  "columns": [
    {
      "name": "y",
      "min": 0.0,
      "max": 10.0,
      "mean": 4.4,
      "variance": <#>
    }
  ]
}' '' kith info tiny.csv --columns y --json

makes=g.npy keep=1 check 0 '' '' kith gen unif --n 10 --dim 3 -o g.npy
check 0 'points      10
dimensions  3
type        float32
storage     mapped, C order
invalid     0 rows<*>' '' kith info g.npy
check 0 'points      10
dimensions  2<*>' '' kith info g.npy --columns 2,0
rm g.npy

check 0 'points      2<*>' '' bash -c 'printf "1 2\n3 4\n" | "$0" info -' "$KITH"

check 0 'cpu <*>' '' kith devices
check 0 '{
  "devices": [
    {
      "name": "cpu",
      "usable": true,
      "description": "<*>"
    }<*>
  ]
}' '' kith devices --json

# One of a kind.
printf '0\nnan\n' >one.csv
check 0 '<*>invalid     1 row with NaN or infinity<*>' '' kith info one.csv
printf '0\n' >one.csv
check 0 'task        count the pairs within 1 in 1 dimension: 1 point with itself
index       grid over dimension 0
            1 non-empty cell in 1 row of cells
<*>' '' kith plan join one.csv --eps 1
rm one.csv
