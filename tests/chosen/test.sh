#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# test.sh SOURCES BUILD CMAKE NM CC CXX TARGET...: builds the targets with chosen locks, without
# warnings; runs the unit tests if the target is all; and checks that the libraries contain no other
# lock, and that wrong sets are refused.
set -euo pipefail
sources=$1 build=$2 cmake=$3 nm=$4 cc=$5 cxx=$6 targets=("${@:7}")
chosen="shfl_mutex;shfl_rw"

fail() {
	echo "test.sh: $*" >&2
	exit 1
}

configure() { # LOCKS
	"$cmake" -S "$sources" -B "$build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
		-DPOUNDLOCK_WERROR=ON "-DPOUNDLOCK_LOCKS=$1"
}

refused() { # LOCKS LINE
	local output
	! output=$(configure "$1" 2>&1) || fail "'$1' was configured"
	grep -qF "$2" <<<"$output" || fail "'$1' gives: $output"
}

rm -rf "$build"
mkdir -p "$build"
refused "$chosen;nosuch" "POUNDLOCK_LOCKS: there is no lock 'nosuch'"
refused "mcs;shfl_rw" "POUNDLOCK_LOCKS lacks shfl_mutex, which every build needs"
refused "shfl_mutex;mcs" "POUNDLOCK_LOCKS lacks shfl_rw, which every build needs"

configure "$chosen" >"$build/log"
"$cmake" --build "$build" --parallel 2 --target "${targets[@]}" >>"$build/log" 2>&1 ||
	fail "$(cat "$build/log")"
# Long simulations of single locks, which do not depend on the list, are left out.
[ "${targets[*]}" != all ] || ctest --test-dir "$build" --no-tests=error --output-on-failure \
	-E 'unit\.(cfl|scl|sleepers)$' >>"$build/log" 2>&1 || fail "$(cat "$build/log")"
for library in libpoundlock.so libpoundlock.a preload/libpoundlock-preload.so; do
	"$nm" "$build/$library" >"$build/names"
	grep -q 'shfl_mutex_park_lock' "$build/names" || fail "$library lacks shfl_mutex"
	! grep -E ' (mcs|cna|hapax|ticket|bravo_shfl_rw)_park' "$build/names" ||
		fail "$library has locks that were not chosen"
done
