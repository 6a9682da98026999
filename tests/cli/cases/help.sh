# Texts: --help of every command, the version, the man page's outline. After a change of the tables in cli/,
# read the new texts and then renew the golden files: UPDATE_GOLDEN=1 tests/cli/run.sh KITH help

# golden NAME COMMAND...
golden() {
  local name=$1
  shift
  if [ -n "${UPDATE_GOLDEN:-}" ]; then "$@" >"$here/golden/$name.txt"; fi
  check 0 "$(cat "$here/golden/$name.txt")" '' "$@"
}

golden help kith --help
check 0 "$(cat "$here/golden/help.txt")" '' kith help
check 0 "$(cat "$here/golden/help.txt")" '' kith -h
for command in join plan gen info devices; do
  golden "help-$command" kith help "$command"
  check 0 "$(cat "$here/golden/help-$command.txt")" '' kith "$command" --help
done
golden man kith --man

check 0 'kith 0.1.0
reads npy text fbin gro xyz<*>' '' kith --version

# No line of a help text is wider than a terminal.
label='width of help texts'
ok=1
wide=$(awk 'length > 80 { print FILENAME ": " $0 }' "$here"/golden/help*.txt)
[ -z "$wide" ] || complain 'lines of at most 80 characters' '' "$wide"
verdict

usage '' "unknown command 'jion' (did you mean 'join'?)" jion
usage '' "unknown command 'jion' (did you mean 'join'?)" help jion
usage '' "unknown command 'frobnicate'" frobnicate
usage '' "unknown option '--frobnicate' before the command" --frobnicate
usage '' "no command given: join, plan, gen, info or devices"
