# Ctrl-C and SIGTERM: the join stops within a second, says so, and leaves nothing behind.

# stopped SIGNAL AFTER COMMAND...: sends the signal after so many seconds; fails if it takes more than one.
stopped() {
  local signal=$1 after=$2 pid began code ended
  shift 2
  "$@" &
  pid=$!
  sleep "$after"
  began=$(date +%s%N)
  kill -s "$signal" "$pid"
  wait "$pid"
  code=$?
  ended=$(date +%s%N)
  [ $(((ended - began) / 1000000)) -lt 1000 ] || echo "took $(((ended - began) / 1000000)) ms"
  return $code
}

# A million points in 8 dimensions, most pairs to be tested: minutes of work.
kith gen unif --n 1M --dim 8 --dtype f4 -o long.npy
for after in 0.05 0.5 1.5; do
  check 130 '' 'kith: interrupted' stopped INT $after "$KITH" join long.npy --eps 0.8
  check 130 '' 'kith: interrupted' stopped INT $after "$KITH" join long.npy --eps 0.8 --what neighbors -o out.npz
done
check 130 '' 'kith: interrupted' stopped INT 0.5 "$KITH" join long.npy --eps 0.8 --what pairs -o out.csv
check 130 '' 'kith: interrupted' stopped INT 0.5 "$KITH" join long.npy --eps 0.8 --what degrees -o out.npy
check 143 '' 'kith: terminated' stopped TERM 0.5 "$KITH" join long.npy --eps 0.8 --what neighbors -o out.npz

# What hangs up is heard, but not by a join that nohup protects.
check 143 '' 'kith: terminated' stopped HUP 0.3 "$KITH" join long.npy --eps 0.8
check 0 2 '' bash -c \
  'nohup "$0" join - --eps 2 -q < <(sleep 0.5; printf "0,0\n1,1\n") & sleep 0.2; kill -HUP $!; wait $!' "$KITH"
rm long.npy
check 130 '' 'kith: interrupted' env KITH_SPEEDS=speeds.txt bash -c '"$0" devices --calibrate & sleep 0.3; kill -INT $!; wait $!' "$KITH"

# Output that is being streamed: every point is a neighbour of every other, ten thousand million pairs.
kith gen unif --n 100k --dim 2 -o dense.npy
check 130 '' 'kith: interrupted' stopped INT 1.5 "$KITH" join dense.npy --eps 2 --what neighbors -o out.npz --memory 200M
check 130 '<*>' 'kith: interrupted' stopped INT 0.5 bash -c 'exec "$0" join dense.npy --eps 2 --what pairs >/dev/null' "$KITH"
rm dense.npy

# Many points in two dimensions: most of the time goes into the index.
kith gen unif --n 10M --dim 2 --dtype f4 -o many.npy
for after in 0.1 0.2 0.3 0.4; do
  check 130 '' 'kith: interrupted' stopped INT $after "$KITH" join many.npy --eps 0.01
done
# Nobody opens the pipe that the result is to go to, or reads from it.
mkfifo out.csv
check 130 '' 'kith: interrupted' stopped INT 0.5 "$KITH" join many.npy --eps 0.001 --what pairs -o out.csv
exec 7<>out.csv
check 130 '' 'kith: interrupted' stopped INT 0.5 "$KITH" join many.npy --eps 0.001 --what pairs -o out.csv
check 143 '' 'kith: terminated' stopped TERM 2 "$KITH" join many.npy --eps 0.001 --what pairs -o out.csv
to_pipe() { exec "$KITH" join many.npy --eps 0.001 --what pairs >out.csv; }
check 130 '' 'kith: interrupted' stopped INT 2 to_pipe
exec 7>&-
rm out.csv many.npy

# Waiting for standard input.
mkfifo never
exec 7<>never
waiting() { exec "$KITH" join - --eps 1 <never; }
check 130 '' 'kith: interrupted' stopped INT 0.3 waiting
exec 7>&-
rm never

# gen, in the middle of a large file; an older one stays.
for name in g.npy g.fbin g.csv; do
  check 130 '' 'kith: interrupted' stopped INT 0.3 "$KITH" gen gauss --n 1G --dim 8 -o $name
done
printf 'before' >g.npy
check 143 '' 'kith: terminated' stopped TERM 0.3 "$KITH" gen gauss --n 1G --dim 8 -o g.npy
check 0 'before' '' cat g.npy
rm g.npy
