# kith gen: the same bytes on every machine, whatever the compiler; nothing left behind by a failure.

# digest SHA256 ARGUMENTS...: gen writes exactly these bytes.
digest() {
  local wanted=$1 file=${!#}
  shift
  makes=$file keep=1 check 0 '' '' kith gen "$@"
  label="sha256 of kith gen $*"
  ok=1
  compare "digest" "$wanted" "$(sha256sum <"$file" | cut -d' ' -f1)"
  verdict
  rm -f "$file"
}

digest bfe009c717188489b94fec657fb86f764051319586c9ae03a9e56c54204728e4 unif --n 1000 --dim 3 --seed 7 --dtype f4 -o g.npy
digest 6d8c915201fd8b7aadc6cc3b3fcefc7e8dfbc2b58d604a58842571435f2caf77 unif --n 1000 --dim 3 --seed 7 --dtype f8 -o g.npy
digest 1adc0f23deae23793bf110e2728d35a6e538c14ef9a1ff44b655e207e60ae3f5 expo --n 100k --dim 2 --seed 1 --dtype f4 -o g.npy
digest d0e797135950a5861c45d91a0eb4c9686b45ac41b1f8a11fb8b8d2d8da3b816b expo --n 1001 --dim 1 --lambda 0.5 --dtype f8 -o g.npy
digest 7f337d832aea2f0a5a1bdd8015ccaa06a16f958f6c835828e7a7adc7b7d398dc gauss --n 1e5 --dim 3 --seed 3 --dtype f8 -o g.npy
digest 9262a925ff14152a8f264ce6ab71046bb5e3a046a72e5fe4993872b279a6f913 lattice --n 1000 --dim 3 --dtype f8 -o g.npy
digest 9818e648c80a72e2b4c95ca883730aa02d7cb5a1a3a0e8e18dbd7e88b387ed71 expo --n 1000 --dim 5 -o g.fbin
digest 2bc05a9dac771b2832536e4bd08ebb2f8229db4595c8bd477f799f6234090b83 gauss --n 100 --dim 2 --dtype f8 -o g.csv
digest 90f00d448fe2247088a956d58dbaaffa22b18e34646d789c64f8cff85e153216 unif --n 0 -o g.npy

# Ways to say a number; the defaults; the order of options.
for n in 3000 3e3 3k 3K 0.003M; do
  makes=g.npy keep=1 check 0 '' '' kith gen unif --n "$n" -o g.npy
  makes=h.npy keep=1 check 0 '' '' kith gen -o h.npy --dim 2 --seed 1 --dtype f4 -n 3000 unif
  check_files h.npy g.npy
  rm -f g.npy h.npy
done

# A small lattice by hand: 3 x 3 cells hold 7 points.
makes=g.csv keep=1 check 0 '' '' kith gen lattice --n 7 --dim 2 --dtype f8 -o g.csv
check 0 '0,0
0,0.33333333333333331
0,0.66666666666666663
0.33333333333333331,0
0.33333333333333331,0.33333333333333331
0.33333333333333331,0.66666666666666663
0.66666666666666663,0' '' cat g.csv
rm g.csv

usage ' gen' "which points? Write 'kith gen unif', expo, gauss or lattice" gen
usage ' gen' "unknown kind of points 'uniform': unif, expo, gauss or lattice" gen uniform
usage ' gen' "'expo' is not understood: gen takes one kind of points" gen unif expo
usage ' gen' "--n is missing: give the number of points, such as --n 2M" gen unif -o g.npy
usage ' gen' "-o is missing: give the file to write, such as -o points.npy" gen unif --n 10
usage ' gen' "-o is 'g.txt', but must end in .npy, .fbin or .csv" gen unif --n 10 -o g.txt
usage ' gen' "--n is '5e9', but must be from 0 to 4294967295" gen unif --n 5e9 -o g.npy
for n in 1.5 abc -3 1e99 '' 2MM nan; do
  usage ' gen' "--n is '$n', which is not a whole number such as 1000, 1e6 or 2M" gen unif --n "$n" -o g.npy
done
usage ' gen' "--dim is '0', but must be from 1 to 4096" gen unif --n 10 --dim 0 -o g.npy
usage ' gen' "--dtype is 'f2', but must be f4 or f8" gen unif --n 10 --dtype f2 -o g.npy
usage ' gen' "--lambda is for expo only" gen unif --n 10 --lambda 3 -o g.npy
usage ' gen' "--lambda is '0', but must be from 0.01 to 1000000000" gen expo --n 10 --lambda 0 -o g.npy
usage ' gen' "g.fbin: .fbin holds at most 2^31 - 1 points of float32; use .npy" gen unif --n 10 --dtype f8 -o g.fbin

check 4 '' 'kith: nowhere/g.npy: the folder nowhere does not exist' kith gen unif --n 10 -o nowhere/g.npy
mkdir folder.npy
check 4 '' 'kith: folder.npy: is a folder, not a file' kith gen unif --n 10 -o folder.npy
rmdir folder.npy

# A limit on the size of files stands in for a full disk; what was there before stays.
limited() { (ulimit -f 1 && trap '' XFSZ && kith "$@"); }
for name in g.npy g.fbin g.csv; do
  printf 'before' >$name
  check 4 '' "kith: $name: File too large (wrote 1024 bytes<*>)" limited gen unif --n 100k -o $name
  check 0 'before' '' cat $name
  rm $name
done

# As join writes files: links are followed, pipes are written in place, write-protected files are left alone, and
# the result has the rights of any new file.
ln -s real.csv link.csv
makes=real.csv keep=1 check 0 '' '' kith gen lattice --n 2 --dim 1 -o link.csv
check 0 $'0\n0.5' '' cat real.csv
check 0 'symbolic link' '' stat -c %F link.csv
rm link.csv real.csv
masked() { (umask 027 && kith "$@"); }
makes=g.npy keep=1 check 0 '' '' masked gen unif --n 10 -o g.npy
check 0 '640' '' stat -c %a g.npy
rm g.npy
mkfifo pipe.csv
check 0 $'0\n0.5' '' bash -c 'timeout 10 cat pipe.csv & "$0" gen lattice --n 2 --dim 1 -o pipe.csv; wait' "$KITH"
rm pipe.csv
printf 'before' >g.npy
chmod 444 g.npy
if [ ! -w g.npy ]; then # root may write everywhere
  check 4 '' 'kith: g.npy: exists and is not writable: Permission denied' kith gen unif --n 10 -o g.npy
fi
rm -f g.npy
check 4 '' 'kith: cannot write to standard output: No space left on device' bash -c '"$0" --version >/dev/full' "$KITH"
