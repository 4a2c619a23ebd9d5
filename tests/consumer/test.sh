#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# test.sh WAY SOURCES BUILD LIBDIR CMAKE CC CXX: builds another project's programs, and runs them.
#   package     find_package, from a fresh installation of BUILD
#   sources     FetchContent of SOURCES
#   chosen      the same with two locks
#   pkg-config  pkg-config, from a fresh installation that has been moved
#   examples    the examples of SOURCES, by find_package
#   refused     refused.c: each mix of pthread's types and ours is an error, and nothing else is
set -euo pipefail
way=$1 sources=$2 build=$3 libdir=$4 cmake=$5
export CC=$6 CXX=$7
work=$build/tests/consumer/$way
project=$(dirname "$0")/project
prefix=$work/prefix

fail() {
	echo "test.sh: $*" >&2
	exit 1
}

# install: the library alone, since other parts may not be built.
install() {
	local component
	for component in runtime development; do
		"$cmake" --install "$build" --prefix "$prefix" --component $component >/dev/null
	done
}

# build_and_run PROJECT [CMAKE OPTION...]
build_and_run() {
	"$cmake" -S "$1" -B "$work/build" -DCMAKE_BUILD_TYPE=Release "${@:2}" >"$work/log"
	"$cmake" --build "$work/build" >>"$work/log" 2>&1 || fail "$(cat "$work/log")"
	ctest --test-dir "$work/build" --no-tests=error --output-on-failure >>"$work/log" 2>&1 ||
		fail "$(cat "$work/log")"
}

# The project's tests are its own, and nothing but the two libraries was built or is installed.
only_the_library() {
	local found
	found=$(find "$work/build" -name '*.so' -o -name '*.a' | xargs -n 1 basename | sort | xargs)
	[ "$found" = "libpoundlock.a libpoundlock.so" ] || fail "other libraries were built: $found"
	found=$(ctest --test-dir "$work/build" --show-only |
		grep -Ev '#.*: c(pp)?[0-9]+-(static|shared)$' | grep '#' || true)
	[ -z "$found" ] || fail "other tests were added: $found"
	"$cmake" --install "$work/build" --prefix "$prefix" >>"$work/log"
	[ ! -e "$prefix" ] || fail "files were installed: $(find "$prefix")"
}

with_pkg_config() {
	mv "$prefix" "$work/moved"
	export PKG_CONFIG_PATH=$work/moved/$libdir/pkgconfig LD_LIBRARY_PATH=$work/moved/$libdir
	# shellcheck disable=SC2046 # words on purpose
	"$CC" $(pkg-config --cflags poundlock) "$project/main.c" -o "$work/main" \
		$(pkg-config --libs poundlock)
	[ "$("$work/main")" = "$(pkg-config --modversion poundlock)" ]
	# shellcheck disable=SC2046
	"$CC" -static $(pkg-config --cflags poundlock) "$project/main.c" -o "$work/main" \
		$(pkg-config --static --libs poundlock)
	[ "$("$work/main")" = "$(pkg-config --modversion poundlock)" ]
}

# accepts LANGUAGE-STANDARD [OPTION...]: whether refused.c compiles.
accepts() {
	local compiler=$CC language=c
	case $1 in *++*) compiler=$CXX language=c++ ;; esac
	"$compiler" -x $language "-std=$1" -Wall -isystem "$prefix/include" -fsyntax-only \
		"${@:2}" "$(dirname "$0")/refused.c" >"$work/log" 2>&1
}

refuses_mixes() {
	local standard mix mixes
	mixes=$(sed -n 's/^#.*if defined(\(MIX_[A-Z_]*\))$/\1/p' "$(dirname "$0")/refused.c")
	[ "$(wc -w <<<"$mixes")" -ge 14 ] || fail "refused.c has no mixes"
	for standard in c11 c17 c2x gnu11 c++17 c++20; do
		accepts $standard || fail "$standard: $(cat "$work/log")"
		for mix in $mixes; do
			! accepts $standard -D"$mix" || fail "$standard accepts $mix"
			grep -q error: "$work/log" || fail "$standard, $mix: $(cat "$work/log")"
		done
	done
	accepts c11 -DMIX_COND_WAIT -DPOUNDLOCK_KEEP_WARNINGS ||
		fail "POUNDLOCK_KEEP_WARNINGS has no effect: $(cat "$work/log")"
}

rm -rf "$work"
mkdir -p "$work"
case $way in
package)
	install
	build_and_run "$project" -DCMAKE_PREFIX_PATH="$prefix"
	;;
sources)
	build_and_run "$project" -DPOUNDLOCK_SOURCES="$sources"
	only_the_library
	;;
chosen)
	build_and_run "$project" -DPOUNDLOCK_SOURCES="$sources" \
		"-DPOUNDLOCK_LOCKS=shfl_mutex;shfl_rw"
	only_the_library
	;;
pkg-config)
	install
	with_pkg_config
	;;
examples)
	install
	build_and_run "$sources/examples" -DCMAKE_PREFIX_PATH="$prefix"
	;;
refused)
	install
	refuses_mixes
	;;
*) fail "there is no way '$way'" ;;
esac
