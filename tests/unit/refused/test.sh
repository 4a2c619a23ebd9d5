#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# test.sh CC CXX INCLUDE: cond.c compiles as C and C++ without a mix of pthread's types and ours,
# and with none of the mixes. A C compiler that only warns about incompatible pointers (gcc before
# 14) is told to refuse them.
set -eu
cc=$1 cxx=$2 include=$3
source=$(dirname "$0")/cond.c

compiles() # [DEFINITION]
{
	"$cc" -std=gnu11 -Werror=incompatible-pointer-types -I "$include" ${1:+"-D$1"} \
		-fsyntax-only "$source" ||
		"$cxx" -std=c++17 -x c++ -I "$include" ${1:+"-D$1"} -fsyntax-only "$source"
}

"$cc" -std=gnu11 -I "$include" -fsyntax-only "$source"
"$cxx" -std=c++17 -x c++ -I "$include" -fsyntax-only "$source"
for mix in REFUSED_COND REFUSED_MUTEX REFUSED_SIGNAL REFUSED_NATIVE; do
	if compiles "$mix" 2>/dev/null; then
		echo "$mix compiles"
		exit 1
	fi
done
