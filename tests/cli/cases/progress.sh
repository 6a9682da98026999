# The progress line: on a terminal only, and not with --quiet.

if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  echo "skipped: progress ('script' cannot make a terminal here)"
  return
fi

# terminal SECONDS ARGUMENTS...: kith on a terminal, interrupted after so many seconds. Carriage returns become
# newlines, so that every drawing of the line is one.
terminal() {
  local seconds=$1
  shift
  script -qec "timeout --foreground -s INT $seconds '$KITH' $*" /dev/null </dev/null | tr '\r' '\n'
}

kith gen unif --n 1M --dim 8 -o long.npy
check 0 '<*>
join  [<*>] <*> %  <*> pairs  <*>/s<*>
<*>kith: interrupted<*>' '' terminal 6 join long.npy --eps 0.8
check 0 'kith: interrupted' '' terminal 2 join long.npy --eps 0.8 --quiet
rm long.npy
