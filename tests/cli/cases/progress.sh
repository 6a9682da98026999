# The progress line: on a terminal only, and not with --quiet.

if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  echo "skipped: progress ('script' cannot make a terminal here)"
  return
fi

# terminal SECONDS TEXT ARGUMENTS...: kith on a terminal, interrupted when it shows the text, or after so many seconds.
# Carriage returns become newlines, so that every drawing of the line is one.
terminal() {
  local seconds=$1 text=$2
  shift 2
  rm -f screen pid
  script -qec "echo \$\$ >pid; exec '$KITH' $*" /dev/null </dev/null >screen &
  for ((tenth = 0; tenth < 10 * seconds; tenth++)); do
    grep -qF "$text" screen 2>/dev/null && break
    sleep 0.1
  done
  kill -INT "$(cat pid)"
  wait $!
  tr '\r' '\n' <screen
  rm screen pid
}

kith gen unif --n 1M --dim 8 -o long.npy
check 0 '<*>
join  [<*>] <*> %  <*> pairs  <*>/s<*>
<*>kith: interrupted<*>' '' terminal 60 'join  [' join long.npy --eps 0.8
check 0 'kith: interrupted' '' terminal 2 'never shown' join long.npy --eps 0.8 --quiet
rm long.npy
