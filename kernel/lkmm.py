#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the litmus tests of tests/lkmm with herd7 and the memory model of Linux, and checks that the
outcome of each test never occurs, and that of each mutant does.

litmus.py describes the tests. The model (tools/memory-model) is that of Debian's linux-source.
herd7 is that of a later Debian than 12: it is downloaded once and unpacked in build/kernel/herd,
with the C library of its release. The last line is `N passed, N failed`.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import fetched  # noqa: E402
import litmus  # noqa: E402
import own  # noqa: E402
from parts import BUILD  # noqa: E402
from report import Count  # noqa: E402

HERD = "herdtools7=7.58-2"
HERD_SHA256 = "97a6e2bfbc2c516cd9816e8c87c3acc412953479a3351b308d139e0af9550672"
# herd7 needs a later C library than Debian 12's, of any version: results do not depend on it.
LIBRARIES = ["libc6", "libgmp10"]
SUITE = "forky"
# Has the version when the mirror no longer does.
SNAPSHOT = (
    f"deb [signed-by={fetched.KEYS} check-valid-until=no] "
    f"http://snapshot.debian.org/archive/debian/20261127T000000Z {SUITE} main\n"
)
MODEL = "tools/memory-model"
LIMIT = 600  # seconds, for a test: a hundred times the longest


def unpacked_herd(folder):
    """The command of herd7, unpacked in @folder; unpacks it if necessary."""
    root = folder / "root"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    if not root.exists():
        try:
            fetch_herd(folder, fetched.on_mirror("herd7", SUITE))
        except fetched.Failure as failure:
            try:
                fetch_herd(folder, SNAPSHOT)
            except fetched.Failure:
                raise failure from None
    return [
        libraries / "ld-linux-x86-64.so.2",
        "--library-path",
        libraries,
        root / "usr/bin/herd7",
        "-I",
        root / "usr/share/herdtools7/herd",
    ]


def fetch_herd(folder, line):
    fetched.unpack("herd7", folder, line, [HERD, *LIBRARIES], [HERD_SHA256])
    # The other programs of the package are six times as large.
    for program in (folder / "root/usr/bin").iterdir():
        if program.name != "herd7":
            program.unlink()


def herd_command(program):
    """The command of herd7: @program, or the downloaded one if that is None."""
    command = unpacked_herd(BUILD / "herd") if program is None else [program]
    try:
        subprocess.run([*command, "-version"], check=True, capture_output=True, timeout=LIMIT)
    except (OSError, subprocess.SubprocessError) as error:
        raise fetched.Failure(f"herd7 does not run: {error}") from error
    return command


def model(series):
    """The memory model of Debian's sources of @series; unpacks it if necessary."""
    own.check_installed([f"linux-source-{series}"])
    unpacked = own.cache() / f"memory-model-{own.version_of_sources(series)}"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unpacked.parent) as scratch:
            source = f"linux-source-{series}"
            subprocess.run(
                ["tar", "-C", scratch, "-xf", f"/usr/src/{source}.tar.xz", f"{source}/{MODEL}"],
                check=True,
                timeout=own.LIMIT,
            )
            shutil.move(Path(scratch) / source / MODEL, unpacked)
    return unpacked


def outcome(text):
    """The result in herd7's output @text: whether the outcome occurs, the executions in which
    it does and does not, and the model's warnings.

    >>> outcome("No\\nFlag data-race\\nObservation a Never 0 3\\n")
    ('Never', 0, 3, ['data-race'])
    >>> outcome("")
    """
    found = re.search(r"^Observation \S+ (Never|Sometimes|Always) (\d+) (\d+)$", text, re.MULTILINE)
    verdict = re.search(r"^(Ok|No)$", text, re.MULTILINE)
    if not found or not verdict or (verdict[1] == "No") != (found[1] == "Never"):
        return None
    flags = re.findall(r"^Flag (.*)$", text, re.MULTILINE)
    return found[1], int(found[2]), int(found[3]), flags


def complaint(text, expected, race_free):
    """An error in herd7's output @text, or nothing.

    >>> complaint("No\\nObservation a Never 0 3\\n", "Never", True)
    ''
    >>> complaint("No\\nObservation a Never 0 0\\n", "Never", True)
    'no execution reaches the end'
    >>> complaint("Ok\\nObservation a Sometimes 1 3\\n", "Never", True)
    'Sometimes, not Never'
    >>> complaint("No\\nFlag data-race\\nObservation a Never 0 3\\n", "Never", True)
    'data-race'
    """
    found = outcome(text)
    if not found:
        return f"no result: {' '.join(text.split()[-30:])}"
    result, positive, negative, flags = found
    if not positive + negative:
        return "no execution reaches the end"
    if result != expected:
        return f"{result}, not {expected}"
    return ", ".join(flags) if race_free else ""


def run(herd, folder, text):
    """The output of herd7 for the test @text, with the model in @folder."""
    with tempfile.NamedTemporaryFile("w", suffix=".litmus") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            [*herd, "-conf", "linux-kernel.cfg", file.name],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
    return done.stdout


def cases(tests, series):
    """The names, texts and expected results of @tests and their mutants, with the model of @series,
    and whether they must be free of data races."""
    for test in tests:
        result = test.result(series)
        yield f"{series}: {test.name}", test.text, result, result == "Never"
        # A mutant shows nothing if the model allows the outcome anyway.
        for mutant in test.mutants(series) if result == "Never" else []:
            name = f"{series}: {test.name}, line {mutant.line}: {mutant.weaker}"
            yield name, mutant.text, "Sometimes", False


def run_series(herd, tests, series, count):
    folder = model(series)

    def judged(case):
        name, text, expected, race_free = case
        return name, complaint(run(herd, folder, text), expected, race_free), expected

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, wrong, expected in pool.map(judged, cases(tests, series)):
            count.case(name, wrong, expected)


def chosen_tests(parser, names):
    every = litmus.tests()
    if unknown := set(names) - {test.name for test in every}:
        parser.error(f"there is no test '{min(unknown)}'")
    return [test for test in every if not names or test.name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("tests", metavar="TEST", nargs="*", help="tests (default: all)")
    parser.add_argument(
        "--linux",
        choices=own.SERIES,
        action="append",
        help=f"series of the model; may be repeated (default: {own.SERIES[0]})",
    )
    parser.add_argument(
        "--herd", metavar="PROGRAM", help="herd7 (default: the version that is downloaded)"
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed, and say so, where packages are missing"
    )
    arguments = parser.parse_args()
    tests = chosen_tests(parser, arguments.tests)
    count, sources = Count(), litmus.sources()
    for test in tests:
        count.case(f"{test.name}: form", "; ".join(test.wrong(sources)))
    try:
        with count.part("herd7"):
            herd = herd_command(arguments.herd)
        for series in arguments.linux or own.SERIES[:1]:
            with count.part(f"the model of {series}"):
                run_series(herd, tests, series, count)
    except (fetched.Failure, own.Failure) as failure:
        if not arguments.if_possible:
            raise
        print(f"kernel: skipped litmus tests: {failure}")
    count.sum_up()
    return count.failed > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (fetched.Failure, own.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
