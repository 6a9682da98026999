# Files that join writes; more of their contents is tested with the library.

for name in p.csv p.tsv p.txt; do
  makes=$name keep=1 check 0 '' '' kith join tiny.csv --eps 1 --what pairs --sorted -o $name --quiet
done
# .csv and .tsv begin with a line of names; .txt and standard output do not.
check 0 'i,j
0,1
1,0
3,4
4,3' '' cat p.csv
check 0 $'i\tj\n0\t1\n1\t0\n3\t4\n4\t3' '' cat p.tsv
check 0 '0 1
1 0
3 4
4 3' '' cat p.txt
rm p.csv p.tsv p.txt

makes=d.npy keep=1 check 0 'pairs       4
<*>
output      d.npy' '' kith join tiny.csv --eps 1 --what degrees -o d.npy
makes='' check 0 'points      5
dimensions  1
<*>
0                          0               1             0.8            0.16' '' kith info d.npy
rm d.npy

makes=out.npz check 0 '<*>"output": "out.npz",<*>' '' kith join tiny.csv --eps 1 --what neighbors -o out.npz --json
makes=out.npy check 0 '' '' kith join tiny.csv pair.txt --eps 1 --what pairs --distances -o out.npy -q

# An output takes the place of an older one only when it is complete.
printf 'before' >out.npz
check 3 '' 'kith: invalid.csv: row <*>' kith join invalid.csv --eps 1 --what neighbors -o out.npz
check 0 'before' '' cat out.npz
check 0 '' '' kith join tiny.csv --eps 1 --what neighbors -o out.npz -q
check 0 'PK' '' head -c 2 out.npz
rm out.npz

# Endings that do not fit the result.
check 2 '' "kith: neighbors are written as .npz; got 'out.npy'" kith join tiny.csv --eps 1 --what neighbors -o out.npy
check 2 '' "kith: degrees are written as .npy; got '-'" kith join tiny.csv --eps 1 --what degrees -o -
check 2 '' "kith: pairs are written as .npy, .csv, .tsv or .txt, or as text to '-'; got 'out.doc'" \
  kith join tiny.csv --eps 1 --what pairs -o out.doc
