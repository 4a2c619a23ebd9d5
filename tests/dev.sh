#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of ./dev: how it counts the results in a step's log, rejects bad input and waits for other
# package managers. Also of what kernel/patch.py and kernel/deb.py refuse, and the doctests of
# scripts.
# Ends with `N passed, N failed`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ./dev
set +e

passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# same WHAT DUE GOT
same() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $1: '$2' was due, '$3' came"
	fi
}

# counted DUE STATUS LOG: the log is printf's format.
counted() {
	# shellcheck disable=SC2059
	printf "$3" >"$scratch/log"
	same "a log of '$3' and status $2" "$1" "$(count_cases "$scratch/log" "$2")"
}

# refused DUE ARGUMENT...: one line, and a status that is not 0.
refused() {
	local due=$1 got status=0
	shift
	got=$(./dev "$@" 2>&1) || status=$?
	same "./dev $*" "$due" "$got"
	same "the status of ./dev $*" 1 $status
}

counted "1 0" 0 'hello\n'
counted "0 1" 3 'hello\n'
counted "0 1" 124 ''
counted "5 2" 1 'x\n5 passed, 2 failed\n'
counted "5 2" 0 'x\n5 passed, 2 failed\n'
counted "5 1" 1 '5 passed, 0 failed\n'
counted "0 1" 0 '0 passed, 0 failed\n'
counted "1 0" 0 '7 passed, 3 failed\nnot the last line\n'
counted "8 2" 101 "test result: ok. 5 passed; 0 failed; 1 ignored\\n\
test result: FAILED. 3 passed; 2 failed; 0 ignored\\n"
counted "0 1" 0 'test result: ok. 0 passed; 0 failed; 0 ignored\n'
counted "5 1" 101 'test result: ok. 5 passed; 0 failed; 0 ignored\nerror: could not compile\n'
counted "2 1" 8 '67%% tests passed, 1 tests failed out of 3\n\nTotal Test time (real) = 0.01 sec\n'
counted "3 0" 0 '100%% tests passed, 0 tests failed out of 3\n\nTotal Test time (real) = 0.01 sec\n'

# named DUE LOG: both are printf's formats.
named() {
	# shellcheck disable=SC2059
	printf "$2" >"$scratch/log"
	# shellcheck disable=SC2059
	same "the failures in a log of '$2'" "$(printf "$1")" "$(failures_in "$scratch/log")"
}

named 'one::name\nsrc/lib.rs - f (line 3)' 'test one::name ... FAILED\ntest other ... ok
test src/lib.rs - f (line 3) ... FAILED\n\nfailures:\n    one::name\n\nerror: 1 target failed:\n'
named 'posix.spin\nstress.mcs' 'The following tests FAILED:
\t  3 - posix.spin (Failed)\n\t 14 - stress.mcs (Timeout)\nErrors while running CTest\n'
named 'mcs: no progress' 'ok   tas\nFAIL mcs: no progress\n1 passed, 1 failed\n'
named 'lib/name.o' 'FAILED: lib/name.o\nninja: build stopped\n'
named 'error: could not compile' 'test one ... ok\nerror: could not compile\n\n'

refused "dev: there is no command 'frobnicate'; ./dev help lists them" frobnicate
refused "dev: there is no step 'frobnicate'" step frobnicate
refused "dev: step needs the name of one step" step
refused "dev: no step's name contains 'frobnicate'" test frobnicate

# Runs all steps as run_tests does, with stand-ins: the background step ends last and has a failure.
stand_in_tests() {
	LOGS=$scratch/logs
	need() { :; }
	bounded() {
		local name=${*: -1}
		[ "$name" != $BACKGROUND_STEP ] || until [ -e "$LOGS/last" ]; do sleep 0.1; done
		[ "$name" != "${STEPS[-1]}" ] || touch "$LOGS/last"
		[ "$name" != $BACKGROUND_STEP ] || { echo "${*:2}" && return 1; }
		echo "2 passed, 0 failed"
	}
	run_tests "$@"
}

steps=${#STEPS[@]}
tests=$(stand_in_tests)
same "the status of all steps, of which one fails" 1 $?
same "the counts of all steps" "$((2 * steps - 2)) passed, 1 failed" "$(tail -n 1 <<<"$tests")"
same "the step whose result comes last" "$BACKGROUND_STEP" \
	"$(awk '/ s$/ { name = $1 } END { print name }' <<<"$tests")"
same "how the background step runs" "nice -n 19 ./dev step $BACKGROUND_STEP" \
	"$(cat "$scratch/logs/$BACKGROUND_STEP.log")"
same "the line before the counts" "$BACKGROUND_STEP: nice -n 19 ./dev step $BACKGROUND_STEP" \
	"$(tail -n 2 <<<"$tests" | head -n 1)"
same "the counts of one step" "2 passed, 0 failed" "$(stand_in_tests labels | tail -n 1)"

# The step dev itself runs `./dev test frobnicate`, in the middle of a run of all steps.
(stand_in_tests frobnicate 2>/dev/null)
same "the counts that a refused command leaves" labels.counts \
	"$(cd "$scratch/logs" && echo *.counts)"

# waits_for LOCK WHAT COMMAND...: checks that the command succeeds although another process holds
# apt's lock at first.
waits_for() {
	local lock=$1 what=$2 holder status=0
	shift 2
	python3 -c 'import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(5)' "$lock" >"$scratch/held" &
	holder=$!
	until [ -s "$scratch/held" ]; do sleep 0.1; done
	("$@") >"$scratch/log" 2>&1 || status=$?
	same "$what while $lock is held" 0 $status
	wait $holder
}

if [ "$(id -u)" = 0 ]; then
	waits_for /var/lib/dpkg/lock-frontend "an installation" install_packages --no-upgrade bash
	waits_for /var/lib/apt/lists/lock "an update" apt update
fi

same "what tests/programs/run.py and bench/ratios.py compute" "" \
	"$(python3 -m doctest tests/programs/run.py bench/ratios.py)"
same "how docs/generate.py copies a header's comment" "" \
	"$(python3 -m doctest docs/generate.py docs/explored.py docs/readme.py)"

# asked_for PART...: the packages that ./dev would install for these parts of the kernel's tests
asked_for() (
	need() {
		printf '%s\n' "$@"
	}
	need_for_kernel "$@"
)
same "the packages of own kernels with BPF beyond those of all" \
	"$(PYTHONPATH=kernel python3 -Bc 'import own; print(*sorted(own.BPF_TOOLS), sep="\n")')" \
	"$(comm -23 <(asked_for bpf) <(asked_for own))"
asked_for frob 2>/dev/null
same "the status for a part that kernel/packages.py does not know" 1 $?
same "which functions kernel/own.py finds unreplaced" "" "$(python3 -m doctest kernel/own.py)"
same "which counts of cache lines kernel/exact.py finds too high" "" \
	"$(python3 -m doctest kernel/exact.py)"
same "which options kernel/deb.py finds changed" "" "$(python3 -m doctest kernel/deb.py)"
same "what kernel/litmus.py and kernel/lkmm.py read" "" \
	"$(python3 -m doctest kernel/litmus.py kernel/lkmm.py)"

# patches_for TREE: the only line that kernel/patch.py prints.
patches_for() {
	kernel/patch.py "$scratch/patches" --tree "$1" 2>&1
}

tree=$scratch/linux
mkdir -p "$tree/kernel/locking" "$tree/Documentation/locking"
same "patches for a folder" "kernel: $tree is not a Linux tree: it has no Makefile" \
	"$(patches_for "$tree")"
printf 'VERSION = 6\nPATCHLEVEL = 18\n' >"$tree/Makefile"
same "patches for a later Linux" \
	"kernel: $tree is Linux 6.18: versions from 6.1 on, before 6.13, are supported" \
	"$(patches_for "$tree")"
printf 'VERSION = 6\nPATCHLEVEL = 12\n' >"$tree/Makefile"
touch "$tree"/{kernel/locking/Makefile,kernel/Kconfig.locks,Documentation/locking/index.rst}
same "patches for a changed Linux" "kernel: kernel/locking/Makefile differs from a supported one: \
it should have 'obj-\$(CONFIG_QUEUED_SPINLOCKS) += qspinlock.o\\n' once" "$(patches_for "$tree")"
same "the patches of refused trees" "" "$(ls "$scratch/patches" 2>/dev/null)"

# unpacked DUE ARGUMENT...: the only line that kernel/deb.py prints when it refuses the arguments.
unpacked() {
	local due=$1
	shift
	same "kernel/deb.py $*" "$due" "$(kernel/deb.py "$@" 2>&1 | tail -n 1)"
}

unpacked "kernel: $scratch is not an empty folder" "$scratch"
unpacked "kernel: $scratch/log is not an empty folder" "$scratch/log"
unpacked "kernel: $scratch should have one package linux-image-*, and has 0" "$scratch" --boot
unpacked "deb.py: error: --boot takes no other option" "$scratch" --boot --flavour amd64
unpacked "kernel: no file $scratch/lsmod" "$scratch/packages" --reduced "$scratch/lsmod"
# shellcheck disable=SC2046
if [ -z "$(missing $(python3 -c 'import sys
sys.path.insert(0, "kernel")
import deb
print(*deb.packages("6.1"))'))" ]; then
	unpacked "kernel: Linux 6.1 has no flavour 'rt', only: amd64 cloud-amd64 guest" \
		"$scratch/packages" --flavour rt
fi
same "kernel/deb.py --boot of another user" "only root can make a userland of Debian" \
	"$(python3 -c 'import os, sys
sys.path.insert(0, "kernel")
import installed
if not os.geteuid():
    os.seteuid(65534)
try:
    installed.check(sys.argv[1], None)
except installed.own.Failure as failure:
    print(failure)' "$scratch")"
same "the folder of refused packages" "" "$(ls "$scratch/packages" 2>/dev/null)"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
