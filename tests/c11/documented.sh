#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests the commands for other checkers as printed in docs/verification.md: clang's command must
# work, and the program that the flags build must run without a failed assertion.
set -eu
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
documented=$(sed -n '/^    flags="/,/^$/p' docs/verification.md)
commands=$(echo "$documented" | sed "s|-o mcs.ll|-o $folder/mcs.ll|" |
	grep -v -e '^    genmc ' -e '^    java ')
for checker in 'genmc --rc11 -- $flags tests/c11/main.c' 'clang -S -emit-llvm'; do
	echo "$documented" | grep -qF -- "$checker" || {
		echo "docs/verification.md has no command: $checker"
		exit 1
	}
done
eval "$commands"
[ -s "$folder/mcs.ll" ]
clang -pthread -UNDEBUG -include sched.h '-DC11_PAUSE=sched_yield()' -o "$folder/client" $flags \
	tests/c11/main.c tests/c11/nondet.c
"$folder/client"
