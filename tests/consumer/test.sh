#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# test.sh WAY SOURCES BUILD LIBDIR CMAKE CC CXX: builds another project's programs, and runs them.
#   package     find_package, from a fresh installation of BUILD
#   sources     FetchContent of SOURCES
#   chosen      the same with two locks
#   pkg-config  pkg-config, from a fresh installation that has been moved
#   examples    the examples of SOURCES, by find_package
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
*) fail "there is no way '$way'" ;;
esac
