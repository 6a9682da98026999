# Small files that the other cases use.

# Five points in the plane; by hand: 0-1 at distance 1, 1-2 at distance 2, 0-2 at distance sqrt(5), 3-4 equal.
printf 'x,y\n0,0\n1,0\n1,2\n10,10\n10,10\n' >tiny.csv
printf '0 0\n1 0.5\n' >pair.txt
printf '0,0\n1,nan\n2,2\n2,2\ninf,0\n' >invalid.csv
printf '0,0\n1,1\n2\n' >ragged.csv
printf '0,0\n1,one\n' >word.csv
printf '0,0,0\n1,1,1\n' >space.csv
: >empty.csv
npy_file truncated.npy '<f4' '(100, 2)'
head -c 96 /dev/zero >>truncated.npy
npy_file huge.npy '<f4' '(1152921504606846976, 2)'
head -c 96 /dev/zero >>huge.npy
npy_file complex.npy '<c8' '(2, 2)'
head -c 32 /dev/zero >>complex.npy
printf 'not numpy' >garbage.npy
