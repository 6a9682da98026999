# --metric, --radius, --box and --eps-column on points whose pairs are known by hand.

printf 'name,lon,lat,r\nA,179.9,0,20\nB,-179.9,0,50\nC,0,90,1\nD,120,89.9,100\nE,0,0,5\n' >places.csv
printf 'x,y,z\n0.5,1,1\n9.5,1,1\n5,1,1\n5,9.9,1\n' >boxed.csv
printf '0.5,1\n9.5,1\n-0.5,11\n' >outside.csv
printf 'Water\n2\n    1SOL     OW    1   0.100   0.100   0.100\n    2SOL     OW    2   1.900   0.100   0.100\n   2.00000   2.00000   2.00000\n' >water.gro

# Norms.
check 0 6 '' kith join tiny.csv --eps 2 --metric manhattan --quiet
check 0 8 '' kith join tiny.csv --eps 2 --metric chebyshev --quiet

# Great circles: across the date line and beside the pole, in degrees and in kilometres.
check 0 4 '' kith join places.csv --columns lon,lat --metric haversine --eps 0.21 --quiet
check 0 '0,1,22.2390160467053<*>
2,3,11.1195080233526<*>' '' kith join places.csv --columns lon,lat --metric haversine --radius 6371.0088 --eps 50 \
  --what pairs --half --sorted --distances --quiet
check 2 '' 'kith: haversine needs two columns, longitude and latitude in degrees, but there are 3: choose them' \
  kith join places.csv --columns lon,lat,r --metric haversine --eps 1
check 3 '' 'kith: places.csv: row 0 has the latitude 179.9, but latitudes lie between -90 and 90: <*>(--skip-invalid)' \
  kith join places.csv --columns lat,lon --metric haversine --eps 1
check 0 '0' 'kith: left out 3 rows with NaN, infinity or a latitude beyond the poles (--skip-invalid)
<*>' bash -c '"$0" join places.csv --columns lat,lon --metric haversine --eps 1 --skip-invalid --json |
  grep -c nothing; "$0" join places.csv --columns lat,lon --metric haversine --eps 1 --skip-invalid 2>&1 >/dev/null |
  head -1 >&2; echo >&2' "$KITH"
usage ' join' '--radius needs --metric haversine' join tiny.csv --eps 1 --radius 6371

# Directions.
check 0 8 '' bash -c 'printf "1,0\n5,0\n0,2\n-1,0\n1e-300,1e-300\n" | "$0" join - --metric angular --eps 45.1 -q' "$KITH"
check 0 '0,1,0
0,2,1
1,2,1' '' bash -c 'printf "1,0\n5,0\n0,2\n-1,0\n" |
  "$0" join - --metric cosine --eps 1 -q --what pairs --half --sorted --distances | head -3' "$KITH"
check 3 '' 'kith: standard input: row 1 is all zeros, which has no direction, and cosine compares directions <*>' \
  bash -c 'printf "1,1\n0,0\n" | "$0" join - --metric cosine --eps 0.1' "$KITH"
usage ' join' "--metric is 'euclid', but must be euclidean, manhattan, chebyshev, cosine, angular or haversine" \
  join tiny.csv --eps 1 --metric euclid

# Boxes.
check 0 0 '' kith join boxed.csv --eps 1 --quiet
check 0 2 '' kith join boxed.csv --eps 1 --box 10,0,0 --quiet
check 0 4 '' kith join boxed.csv --eps 1.2 --box 10,10,0 --quiet
check 0 4 '' kith join boxed.csv --eps 1.2 --box 10,10,10,90,90,90 --quiet
check 0 6 '' kith join outside.csv --eps 0.00001e5 --box 10,10 --quiet
check 0 '0,1,0.2<*>' '' kith join water.gro --box file --eps 0.2000001 --what pairs --half --distances --quiet
check 0 0 '' kith join water.gro --eps 0.2000001 --quiet
check 2 '' 'kith: boxed.csv carries no periodic box: give it, such as --box 10,10,10' kith join boxed.csv --eps 1 --box file

# A row so far away that its place in the box is lost: refused, or left out for what it is.
printf 'x,y\n1,2\n1e300,3\n' >lost.csv
check 3 '' 'kith: lost.csv: row 1 lies so many boxes away that its place in the box is lost <*>(--skip-invalid)' \
  kith join lost.csv --eps 1 --box 10,10
check 0 '<*>' 'kith: left out 1 row with NaN, infinity or a place too many boxes away (--skip-invalid)' \
  kith join lost.csv --eps 1 --box 10,10 --skip-invalid
check 2 '' 'kith: eps is 6, but in a periodic box it can be at most 5, half of the smallest height of the box: <*>' \
  kith join boxed.csv --eps 6 --box 10,10,10
check 2 '' 'kith: the box has 2 values, but the points have 3 dimensions: <*>' kith join boxed.csv --eps 1 --box 10,10
check 2 '' "kith: --box is 'ten', but must be numbers such as 10,10,10, or the word file" \
  kith join boxed.csv --eps 1 --box ten
check 2 '' "kith: --box is '10,,10', but must be numbers such as 10,10,10, or the word file" \
  kith join boxed.csv --eps 1 --box 10,,10
check 2 '' 'kith: the box has an angle of 180: <*>' kith join boxed.csv --eps 1 --box 9,9,9,90,90,180
check 2 '' 'kith: the box has no volume: one of its vectors lies in the line or plane of the others' \
  kith join boxed.csv --eps 1 --box 1,2,3,4,5,6,7,8,9
check 2 '' 'kith: a periodic box needs the metric euclidean, not manhattan' \
  kith join boxed.csv --eps 1 --box 9,9,9 --metric manhattan

# The box of a file: that of the columns that were chosen.
printf '2\nLattice="4 0 0 0 5 0 0 0 10"\nH 0 0 0.1\nH 0 0 9.9\n' >long.xyz
printf '2\nLattice="4 0 0 0 5 0 0 0 11" pbc="T T F"\nH 0 0 0.1\nH 0 0 9.9\n' >open.xyz
printf '2\nLattice="4 0 0 0 5 0 0 0 11" pbc=TTF\nH 0 0 0.1\nH 0 0 9.9\n' >flags.xyz
check 0 2 '' kith join long.xyz --box file --eps 1 -q
check 0 2 '' kith join long.xyz --box file --columns z,y,x --eps 1 -q
check 0 2 '' kith join long.xyz --box file --columns z --eps 1 -q
check 0 0 '' kith join open.xyz --box file --eps 1 -q
check 2 '' 'kith: long.xyz and open.xyz carry different boxes: give the one to use, such as --box 10,10,10' \
  kith join long.xyz open.xyz --box file --eps 1
check 3 '' 'kith: flags.xyz, line 2: pbc should be three flags, such as "T T F": '"'TTF'" \
  kith join flags.xyz --box file --eps 1

# A slab: two vectors at an angle, and an open axis.
printf '2\nLattice="3 0 0 1 3 0 0 0 9" pbc="T T F"\nC 0.1 0.1 0.1\nC 2.95 0.1 0.1\n' >slab.xyz
check 0 2 '' kith join slab.xyz --box file --eps 0.3 -q
check 0 2 '' kith join slab.xyz --box 3,3,0,90,90,60 --eps 0.3 -q
check 0 2 '' kith join slab.xyz --box 3,0,3,60,90,60 --eps 0.3 -q
check 2 '' 'kith: the box has a negative angle' kith join slab.xyz --box 3,3,3,90,90,-60 --eps 0.3

# A crystal in a cell as crystallographers have it: each of 64 atoms has 12 neighbours, in whatever order the columns are.
{
  echo 64
  echo 'Lattice="0 8 8 8 0 8 8 8 0" Properties=species:S:1:pos:R:3'
  for i in {0..63}; do echo "Au $((2 * (i / 4 % 4 + i % 4))) $((2 * (i / 16 + i % 4))) $((2 * (i / 16 + i / 4 % 4)))"; done
} >crystal.xyz
check 0 768 '' kith join crystal.xyz --box file --eps 3 -q
check 0 768 '' kith join crystal.xyz --box file --columns z,x,y --eps 3 -q
check 0 1152 '' kith join crystal.xyz --box file --eps 4.001 -q
check 0 '<*>The vectors of the box lead along no axes: it is turned, and a copy of the points, in double.<*>' '' \
  kith plan join crystal.xyz --box file --eps 3
check 2 '' 'kith: the box of crystal.xyz is one of vectors, for x, y and z: leave --columns out, or choose all three' \
  kith join crystal.xyz --box file --columns x,y --eps 3

# A radius for every point.
check 0 '1,0
3,2' '' kith join places.csv --columns lon,lat --metric haversine --radius 6371.0088 --eps-column r --what pairs \
  --sorted --quiet
check 0 '1,0
1,2
2,0
2,1' '' bash -c 'printf "1,7,1\n2,1.5,2\n3,9,9\n" | "$0" join - --eps-column 2 --columns 0 --what pairs -q --sorted |
  grep -v "^0"' "$KITH"
check 0 '0,1
1,0
1,2' '' bash -c 'printf "a,r,b\n0,5,0\n3,6,4\n9,1,4\n" | "$0" join - --eps-column r --what pairs -q --sorted' "$KITH"
check 0 '' '' bash -c 'printf "x,R,r\n0,100,1\n5,100,1\n" | "$0" join - --eps-column r --columns x --what pairs -q' "$KITH"
check 0 '' '' bash -c 'printf "x,y,R,r\n0,0,0,1\n5,0,0,1\n" | "$0" join - --columns x,y,R --eps-column r --what pairs -q' "$KITH"
# The box of a file is that of x, y and z, whichever of them is the radius.
printf 'two\n2\n    1A      A    1   0.500   0.100   0.500\n    1A      A    2   0.500   9.900   0.500\n 4 10 10\n' >tall.gro
check 0 2 '' kith join tall.gro --eps-column x --box file -q
check 0 2 '' kith join tall.gro --columns y,z --eps-column x --box file -q
no_column() { echo "kith: boxed.csv has no column '$1' of one value a row: --eps-column takes one name from its header,"\
  "or one number from 0"; }
check 2 '' "$(no_column q)" kith join boxed.csv --eps-column q
check 2 '' "$(no_column x,y)" kith join boxed.csv --eps-column x,y
radius() { echo "kith: $1 (counted from 0), but a radius must be a finite number, 0 or greater"; }
check 3 '' "$(radius 'standard input: row 1, column 1 is -1')" \
  bash -c 'printf "1,2\n3,-1\n" | "$0" join - --eps-column 1' "$KITH"
printf 'name,x,y,r\nA,0,0,1\nB,1,nan,2\nC,2,2,nan\n' >radii.csv
check 3 '' "$(radius "radii.csv: row 2, column 'r' is nan")" kith join radii.csv --columns x,y --eps-column r
check 2 '' 'kith: the largest radius, that of row 1 (counted from 0), is 6, but in a periodic box it can be at most 5, <*>' \
  bash -c 'printf "1,2\n3,6\n" | "$0" join - --box 10 --eps-column 1' "$KITH"
# Columns are called what they are in the file, whichever were chosen.
of_column() { echo "kith: $1 (counted from 0; invalid rows in all: 1); remove such rows, or skip them (--skip-invalid)"; }
check 3 '' "$(of_column "radii.csv: row 1, column 'y' is nan")" kith join radii.csv --columns y,x --eps 1
printf '7,0,0\n7,1,inf\n' >bare.csv
check 3 '' "$(of_column 'bare.csv: row 1, column 2 is inf')" kith join bare.csv --columns 2,1 --eps 1
check 3 '' "$(of_column 'bare.csv: row 1, column 2 is inf')" kith join bare.csv --eps-column 0
usage ' join' '--eps and --eps-column exclude each other' join tiny.csv --eps 1 --eps-column x
usage ' join' '--eps-column y is one of the --columns, too: a radius is no coordinate' \
  join radii.csv --columns x,y --eps-column y
check 3 '' "$(radius "radii.csv: row 2, column 'r' is nan"); --skip-invalid is for coordinates only" \
  kith join radii.csv --columns x,y --eps-column r --skip-invalid
check 0 '<*>"eps": null,
  "eps_column": "r",<*>' '' bash -c 'printf "x,y,r\n0,0,1\n1,0,2\n" | "$0" join - --eps-column r --json' "$KITH"

# In the Manhattan metric a grid cuts sums and differences of columns.
kith gen unif --n 2000 --dim 4 --seed 1 -o four.npy 2>/dev/null
check 0 'task<*>
space       manhattan
index       grid over direction<*>Cut directions, sums and differences of columns: <#> of 4,<*>' '' \
  kith plan join four.npy --eps 0.1 --metric manhattan
check 0 '<*>"directions": true,<*>' '' kith plan join four.npy --eps 0.1 --metric manhattan --json
rm -f four.npy

# The plan names the space.
check 0 'task        count the pairs within 1 in 3 dimensions: 4 points with themselves
space       euclidean, periodic box 10,10,0
index<*>' '' kith plan join boxed.csv --eps 1 --box 10,10,0
