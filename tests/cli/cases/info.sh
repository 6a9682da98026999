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
  "box": null,
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

# Frames and their boxes; a frame is chosen by the name.
printf '1\nLattice="5 0 0 0 6 0 0 0 7"\nH 1 2 3\n1\nLattice="5 0 0 2.5 4 0 0 0 7"\nH 4 5 6\n' >frames.xyz
check 0 'points      1
dimensions  3
type        float64
storage     in memory, C order
box         5 x 6 x 7
invalid     0 rows with NaN or infinity
<*>' '' kith info frames.xyz
check 0 '<*>
box         (5, 0, 0), (2.5, 4, 0), (0, 0, 7)
<*>' '' kith info 'frames.xyz[-1]'
check 0 '{
  "path": "frames.xyz[1]",
  "n": 1,
  "dim": 1,
  "type": "float64",
  "mapped": false,
  "order": "C",
  "box": [
    5.0,
    0.0,
    0.0,
    2.5,
    4.0,
    0.0,
    0.0,
    0.0,
    7.0
  ],
  "invalid_rows": 0,
  "columns": [<*>' '' kith info 'frames.xyz[1]' --columns y --json
check 2 '' 'kith: frames.xyz: there is no frame 2; the file holds 2 frames, from 0' kith info 'frames.xyz[2]'
check 2 '' "kith: tiny.csv: '[0]' does not suit the format text: <*>" kith join 'tiny.csv[0]' --eps 1
check 0 '0' '' kith join 'frames.xyz[0]' 'frames.xyz[1]' --eps 1 -q
rm frames.xyz

# Formats of other libraries: read, or a sentence that says what to install.
for ending in h5:hdf5 fits:fits; do
  printf 'neither\n' >"other.${ending%:*}"
  code=3
  [[ $(kith --version) == *" ${ending#*:}"* ]] || code=6
  check $code '' "kith: other.${ending%:*}: <*>" kith info "other.${ending%:*}"
  rm "other.${ending%:*}"
done

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
