#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# test.sh CMAKE BUILD WORK CC CXX FLAGS LIBDIR: installs the build in BUILD under WORK, then builds
# and runs the consumers with find_package, and one with pkg-config.
set -eu
cmake=$1 build=$2 work=$3 cc=$4 cxx=$5 flags=$6 libdir=$7
sources=$(dirname "$0")

rm -rf "$work"
"$cmake" --install "$build" --prefix "$work/installed" >/dev/null
"$cmake" -S "$sources" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_C_COMPILER="$cc" \
	-DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" >/dev/null
"$cmake" --build "$work/build" >/dev/null
for consumer in static shared cpp; do
	"$work/build/consumer-$consumer" >"$work/version"
done

export PKG_CONFIG_PATH="$work/installed/$libdir/pkgconfig" LD_LIBRARY_PATH="$work/installed/$libdir"
# shellcheck disable=SC2046,SC2086 # words on purpose
"$cc" $flags $(pkg-config --cflags poundlock) "$sources/main.c" -o "$work/pkg-config" $(pkg-config --libs poundlock)
[ "$("$work/pkg-config")" = "$(pkg-config --modversion poundlock)" ]
