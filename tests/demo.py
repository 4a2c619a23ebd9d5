#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests `./dev demo` in a reduced size, from start to end: its status, tables, plots and progress;
and the same with locks under which the programs always fail. Ends with `N passed, N failed`."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from demo import LOCKS, NATIVE, PROGRAMS  # noqa: E402

OUTPUT = ROOT / "build/demo"
COMMANDS = {program.command.split()[0] for program in PROGRAMS}
RUNS = len(LOCKS) + 1


def run(command, path=None):
    """Runs the command to its end; programs in the folder `path` come first in PATH."""
    environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def failing_programs(folder, pattern):
    """Creates wrappers of programs that fail under locks which match the shell pattern."""
    for command in COMMANDS:
        real = subprocess.run(
            ["which", command], capture_output=True, text=True, check=True
        ).stdout.strip()
        script = pathlib.Path(folder, command)
        script.write_text(
            f'#!/bin/sh\ncase "$POUNDLOCK_LOCK" in {pattern}) exit 3 ;; esac\nexec {real} "$@"\n'
        )
        script.chmod(0o755)
    return folder


def rows(table, lock):
    return [line.split() for line in table.splitlines() if line.split()[:1] == [lock]]


def check_files(locks):
    for program in PROGRAMS:
        figures = json.loads((OUTPUT / f"{program.name}.json").read_text())
        assert [lock["lock"] for lock in figures["locks"]] == [NATIVE, *locks], figures["locks"]
        plot = xml.etree.ElementTree.parse(OUTPUT / f"{program.name}.svg")
        words = " ".join(plot.getroot().itertext())
        assert all(lock in words for lock in locks), words


@functools.cache
def quick_demo():
    return run(["./dev", "demo", "--quick"])


def a_quick_demo_shows_everything():
    demo = quick_demo()
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for lock in (NATIVE, *LOCKS):
        assert len(rows(demo.stdout, lock)) == len(PROGRAMS), demo.stdout
    assert "FAILED" not in demo.stdout, demo.stdout
    check_files(LOCKS)
    *_, meaning, next_step = demo.stdout.splitlines()
    assert all(program.name in meaning for program in PROGRAMS), meaning
    assert str(ROOT / "target/release/poundlock") + " compare" in next_step, next_step


def progress_is_reported_without_a_terminal():
    demo = quick_demo()
    assert "Building the locks and the tools" in demo.stdout, demo.stdout
    for number, program in enumerate(PROGRAMS, 1):
        assert f"Program {number} of {len(PROGRAMS)}: {program.title}" in demo.stdout, demo.stdout
    reported = [line for line in demo.stderr.splitlines() if line.startswith("  run ")]
    assert len(reported) == len(PROGRAMS) * RUNS, demo.stderr
    assert reported[0] == f"  run 1 of {RUNS}: {NATIVE}, repeat 1", demo.stderr


def a_lock_that_fails_is_a_row_and_the_demo_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        demo = run(["bench/demo.py", "--quick"], failing_programs(folder, "mcs"))
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert [row[-4:] for row in rows(demo.stdout, "mcs")] == [["1", "of", "1", "FAILED"]] * len(
        PROGRAMS
    ), demo.stdout
    assert demo.stdout.count("FAILED") == len(PROGRAMS), demo.stdout
    assert "mcs, repeat 1: exit status 3" in demo.stderr, demo.stderr
    check_files(LOCKS)


def a_demo_that_compares_nothing_fails():
    with tempfile.TemporaryDirectory() as folder:
        demo = run(["bench/demo.py", "--quick"], failing_programs(folder, "?*"))
    assert demo.returncode == 1, demo.stdout + demo.stderr
    assert len(rows(demo.stdout, "ron")) == len(PROGRAMS), demo.stdout
    assert demo.stderr.splitlines()[-1].startswith("demo: no lock could be compared"), demo.stderr


def a_program_that_is_missing_is_a_line_and_the_demo_goes_on():
    missing = "no-such-program"
    code = (
        f"import dataclasses, demo; first, *others = demo.PROGRAMS; demo.PROGRAMS = "
        f"(dataclasses.replace(first, command='{missing}'), *others); demo.main()"
    )
    demo = run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, 'bench'); sys.argv[1:] = ['--quick']; {code}",
        ]
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert (
        f"demo: {PROGRAMS[0].name}: no figures" in demo.stderr and missing in demo.stderr
    ), demo.stderr
    assert len(rows(demo.stdout, "ron")) == len(PROGRAMS) - 1, demo.stdout


TESTS = (
    a_quick_demo_shows_everything,
    progress_is_reported_without_a_terminal,
    a_lock_that_fails_is_a_row_and_the_demo_goes_on,
    a_demo_that_compares_nothing_fails,
    a_program_that_is_missing_is_a_line_and_the_demo_goes_on,
)


def main():
    failed = 0
    for test in TESTS:
        try:
            test()
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
