# Input that cannot be read (exit code 3), output that cannot be written (4), memory (5): one sentence each.

check 3 '' 'kith: missing.npy: there is no such file' kith join missing.npy --eps 1
check 3 '' 'kith: missing.npy: there is no such file' kith join tiny.csv missing.npy --eps 1
check 3 '' 'kith: missing.npy: there is no such file' kith info missing.npy
check 3 '' 'kith: missing.npy: there is no such file' kith plan join missing.npy --eps 1
check 3 '' 'kith: .: this is a directory; give a file of points' kith join . --eps 1
check 3 '' 'kith: line?break.npy: there is no such file' kith join $'line\nbreak.npy' --eps 1
check 3 '' 'kith: truncated.npy: the header promises 100 x 2 float32 values (800 bytes), but the file holds only 96<*>' \
  kith join truncated.npy --eps 1
check 3 '' 'kith: huge.npy: the header promises 1152921504606846976 x 2 float32 values<*>' kith join huge.npy --eps 1
check 3 '' "kith: complex.npy: holds complex<*> values ('<c8'), but kith reads <*>" kith join complex.npy --eps 1
check 3 '' 'kith: garbage.npy: not an npy file, as numpy.save writes it' kith join garbage.npy --eps 1
check 3 '' 'kith: empty.csv: the file is empty' kith join empty.csv --eps 1
check 3 '' 'kith: ragged.csv, line 3: there is no column 1; the line has 1 field where the first line has 2' \
  kith join ragged.csv --eps 1
check 3 '' "kith: word.csv, line 2, column 1: 'one' is not a number (columns count from 0)" kith join word.csv --eps 1
check 3 '' "kith: standard input, line 2, column 0: 'b' is not a number (columns count from 0)" \
  bash -c 'printf "1\nb\n" | "$0" join - --eps 1' "$KITH"
check 2 '' "kith: tiny.csv: there is no column 'z'; there are: x, y" kith join tiny.csv --columns z --eps 1
check 2 '' 'kith: tiny.csv: there is no column 2; they are numbered 0 to 1' kith join tiny.csv --columns 2 --eps 1
check 2 '' 'kith: <*>' kith join tiny.csv space.csv --eps 1

for what in 'neighbors -o nowhere/out.npz' 'degrees -o nowhere/out.npy' 'pairs -o nowhere/out.csv'; do
  # shellcheck disable=SC2086
  check 4 '' 'kith: nowhere/out.<*>: the folder nowhere does not exist' kith join tiny.csv --eps 1 --what $what
done
mkdir folder.npz
check 4 '' 'kith: folder.npz: is a folder, not a file' kith join tiny.csv --eps 1 --what neighbors -o folder.npz
rmdir folder.npz

# Full disks: /dev/full itself.
check 4 '' 'kith: standard output: No space left on device<*>' \
  bash -c '"$0" join tiny.csv --eps 1 --what pairs >/dev/full' "$KITH"
check 4 '' 'kith: cannot write to standard output: No space left on device' \
  bash -c '"$0" join tiny.csv --eps 1 >/dev/full' "$KITH"

# The file is complete, and only the report on it is lost: the file stays, and the message says so.
kith join tiny.csv --eps 1 --what degrees -o wanted.npy -q
for options in '' --json; do
  makes=out.npy keep=1 check 4 '' 'kith: out.npy is complete, but the report on it was lost: standard output: No space left on device' \
    bash -c '"$0" join tiny.csv --eps 1 --what degrees -o out.npy $1 >/dev/full' "$KITH" $options
  check_files wanted.npy out.npy
  rm out.npy
  makes=out.npy keep=1 check 4 '' 'kith: out.npy is complete, but the report on it was lost: standard output: Bad file descriptor' \
    bash -c '"$0" join tiny.csv --eps 1 --what degrees -o out.npy $1 >&-' "$KITH" $options
  check_files wanted.npy out.npy
  rm out.npy
done
makes=out.npy check 0 '' '' bash -c '"$0" join tiny.csv --eps 1 --what degrees -o out.npy -q >&-' "$KITH"
# With all of them closed, files must not take their numbers, and with them the messages.
makes=out.npy keep=1 check 4 '' '' bash -c '"$0" join tiny.csv --eps 1 --what degrees -o out.npy >&- 2>&- <&-' "$KITH"
check_files wanted.npy out.npy
rm wanted.npy out.npy
check 4 '' 'kith: cannot write to standard output: Bad file descriptor' bash -c '"$0" join tiny.csv --eps 1 >&-' "$KITH"
check 4 '' 'kith: standard output: Bad file descriptor<*>' bash -c '"$0" join tiny.csv --eps 1 --what pairs >&-' "$KITH"
check 3 '' 'kith: standard input: <*>' bash -c '"$0" join - --eps 1 <&-' "$KITH"

# A limit on the size of files.
kith gen lattice --n 10k --dim 2 -o grid.npy
limited() { (ulimit -f 16 && trap '' XFSZ && kith "$@"); }
for what in 'neighbors -o out.npz' 'degrees -o out.npy' 'pairs -o out.csv' 'pairs -o out.npy'; do
  # shellcheck disable=SC2086
  check 4 '' 'kith: out.<*>: File too large<*>' limited join grid.npy --eps 0.02 --what $what
done

# A reader that closes the pipe early.
check 4 '' 'kith: standard output: the reader closed the pipe<*>' \
  bash -c 'set -o pipefail; "$0" join grid.npy --eps 0.5 --what pairs | true' "$KITH"

# Refused for memory, before the work starts.
check 5 '' 'kith: <*> needs <*>B, but only <#> B of the memory budget of 1000 B are left; allow more memory' \
  kith join grid.npy --eps 0.5 --memory 1k
check 5 '' 'kith: <*> needs <*>B, but only <#> B of the memory budget of 1000 B are left; allow more memory' \
  kith join grid.npy --eps 0.5 --memory 1k --what neighbors -o out.npz
kith gen unif --n 1M --dim 2 -o big.npy
check 5 '' 'kith: the neighbour table would hold about <#> pairs in <#> GiB, but only <#> GiB of memory are free; <*>' \
  kith join big.npy --eps 2 --what neighbors
check 0 '<*>DOES NOT FIT, would be refused<*>' '' kith plan join big.npy --eps 2 --what neighbors
rm grid.npy big.npy
