#!/bin/bash
# Installs a build into a scratch prefix and uses it as a stranger would: run.sh BUILD SOURCE COMPILER
#
# examples/count.c is compiled with pkg-config (shared and static) and by a CMake project of its own (shared
# and static); all four programs must run and agree.
set -eu

build=${1:?usage: run.sh BUILD SOURCE COMPILER}
source=${2:?}
compiler=${3:?}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"

pc=$(find "$prefix" -name kith.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libdir/pkgconfig
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# expect PROGRAM: its first line is the known answer.
expect() {
  local got
  got=$("$@" | head -n 1)
  if [ "$got" != "10000 points have 39600 ordered pairs within 1" ]; then
    echo "FAILED: $1 said: $got" >&2
    exit 1
  fi
  echo "ok: ${1##*/}"
}

# needs PROGRAM: prints whether it loads the shared library.
needs() { if ldd "$1" | grep -q libkith; then echo shared; else echo static; fi; }

# expect_kind PROGRAM KIND
expect_kind() {
  if [ "$(needs "$1")" != "$2" ]; then
    echo "FAILED: $1 is linked $(needs "$1"), not $2" >&2
    exit 1
  fi
}

example=$source/examples/count.c
# shellcheck disable=SC2046 # the flags are words
"$compiler" "$example" -o "$scratch/pc_shared" $(pkg-config --cflags --libs kith)
# -l:libkith.a, since a linker with both at hand would take the shared one.
# shellcheck disable=SC2046
"$compiler" "$example" -o "$scratch/pc_static" $(pkg-config --static --cflags --libs kith | sed 's/-lkith/-l:libkith.a/')

mkdir "$scratch/project"
cp "$example" "$scratch/project"
cat >"$scratch/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(stranger LANGUAGES C)
find_package(kith 0.1 REQUIRED)
add_executable(cmake_shared count.c)
target_link_libraries(cmake_shared PRIVATE kith::kith)
add_executable(cmake_static count.c)
target_link_libraries(cmake_static PRIVATE kith::kith_static)
END
{
  CC=$compiler cmake -S "$scratch/project" -B "$scratch/project/build" -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$scratch/project/build"
} >"$scratch/cmake.log" 2>&1 || {
  cat "$scratch/cmake.log" >&2
  exit 1
}

for how in pc cmake; do
  for kind in shared static; do
    program=$scratch/${how}_$kind
    [ $how = cmake ] && program=$scratch/project/build/cmake_$kind
    expect_kind "$program" $kind
    expect "$program"
  done
done

# The command is there too, and its version is that of the package.
[ "$("$prefix/bin/kith" --version | head -n 1)" = "kith $(pkg-config --modversion kith)" ] || {
  echo "FAILED: the versions of kith and kith.pc differ" >&2
  exit 1
}
echo "ok: kith --version"
