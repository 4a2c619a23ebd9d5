#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares locks on real, unmodified programs and explains the figures.

`./dev demo` builds everything, then runs this. A lock that fails or times out is a row of its
table. The exit status is 0 if any lock could be compared with a program's own."""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from command_line import Parser, positive

ROOT = pathlib.Path(__file__).resolve().parent.parent
NATIVE = "native"
LOCKS = ("shfl_ron", "mcs", "cna", "ron", "cfl_mutex")
INTERRUPTED = 130
# The fraction of the work in a quick run.
QUICK = 0.1


@dataclasses.dataclass(frozen=True)
class Program:
    """A program whose native run with `operations` takes a second at most.

    {operations} and {scratch} of the command are replaced."""

    name: str
    title: str
    operations: int
    command: str
    metric: str = ""


PROGRAMS = (
    Program(
        "kccachetest-wicked",
        "Kyoto Cabinet, random operations by 8 threads",
        150_000,
        "kccachetest wicked -th 8 -it 1 {operations}",
    ),
    Program(
        "kccachetest-order",
        "Kyoto Cabinet, operations in order by 8 threads",
        80_000,
        "kccachetest order -th 8 {operations}",
    ),
    Program(
        "db_bench",
        "RocksDB, 8 threads that read while one writes, operations a second",
        2_000,  # more takes minutes under over-subscribed FIFO locks
        "db_bench --db={scratch} --benchmarks=fillrandom,readwhilewriting --threads=8 "
        "--num={operations} --seed=1 "
        "--compression_type=none --cache_numshardbits=0 --cache_size=250000 --block_size=512 "
        "--write_buffer_size=250000",
        "readwhilewriting +:.* ([0-9]+) ops/sec",
    ),
)


def arguments():
    parser = Parser(
        prog="demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--all", action="store_true", help=f"compare all locks, not just {', '.join(LOCKS)}"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the work, once, to see that everything runs",
    )
    parser.add_argument(
        "--repeats", type=positive(int), help="of each run (5; 3 with --all; 1 with --quick)"
    )
    parser.add_argument(
        "--timeout", type=positive(float), default=60, help="of a run, in seconds (%(default)s)"
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=ROOT / "build/demo",
        help="folder for plots and figures",
    )
    parser.add_poundlock()
    options = parser.parse_args()
    options.repeats = options.repeats or (1 if options.quick else 3 if options.all else 5)
    return options


def files_of(program, options):
    return [options.output / f"{program.name}.{kind}" for kind in ("json", "svg")]


def compare(program, options, scratch):
    """The JSON of `poundlock compare` on the program, or None after a failure."""
    operations = max(1, int(program.operations * (QUICK if options.quick else 1)))
    words = program.command.format(operations=operations, scratch=scratch).split()
    figures, plot = files = files_of(program, options)
    for file in files:
        file.unlink(missing_ok=True)
    command = [
        options.poundlock,
        "compare",
        "--repeats",
        str(options.repeats),
        "--timeout",
        str(options.timeout),
    ]
    command += ["--json", figures, "--svg", plot]
    if not options.all:
        command += ["--locks", ",".join(LOCKS)]
    if program.metric:
        command += ["--metric", program.metric]
    if not sys.stderr.isatty():
        command += ["--progress", "lines"]
    status = subprocess.run([*command, "--", *words]).returncode
    if status == INTERRUPTED:
        sys.exit(INTERRUPTED)
    try:
        return json.loads(figures.read_text())
    except (OSError, ValueError):
        print(
            f"demo: {program.name}: no figures; poundlock compare ended with status {status}",
            file=sys.stderr,
        )
        return None


def compared(comparison):
    """The locks with a ratio to native."""
    locks = comparison["locks"] if comparison else []
    return [lock for lock in locks if lock["lock"] != NATIVE and lock["ratio"]]


def speed(comparison, lock):
    """The median speed-up of the program under the lock over native."""
    ratio = lock["ratio"]["median"]
    return ratio if comparison["figure"]["better"] == "higher" else 1 / ratio


def numa_nodes():
    return len(list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1


def count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def meaning(results):
    """One sentence on the figures on this machine."""
    best = []
    for program, comparison in results:
        if locks := compared(comparison):
            fastest = max(locks, key=lambda lock: speed(comparison, lock))
            best.append(f"{speed(comparison, fastest):.2f} on {program.name} ({fastest['lock']})")
    nodes = numa_nodes()
    order = "matters too" if nodes > 1 else "cannot matter"
    return (
        f"Speed under the best lock, native being 1: {', '.join(best)}; on this machine of "
        f"{count(os.cpu_count(), 'CPU')} "
        f"and {count(nodes, 'NUMA node')} the locks differ by how they treat more threads than "
        "CPUs, and a waiter's NUMA "
        f"node {order}."
    )


def next_step(options):
    return (
        f"To try your own program: {options.poundlock} compare -l {','.join(LOCKS[:2])} -- "
        "YOUR-PROGRAM "
        "(without --metric REGEX it compares wall time)."
    )


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    results = []
    locks = "all locks" if options.all else count(len(LOCKS), "lock")
    print(
        f"Comparing native and {locks} on {count(len(PROGRAMS), 'program')}, "
        f"{count(options.repeats, 'run')} each."
    )
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="poundlock-", dir=memory) as scratch:
        for number, program in enumerate(PROGRAMS, 1):
            print(f"\nProgram {number} of {len(PROGRAMS)}: {program.title}", flush=True)
            results.append((program, compare(program, options, scratch)))
    if not any(compared(comparison) for _, comparison in results):
        sys.exit("demo: no lock could be compared with native; the lines above say why")
    print("\nFigures and plots:")
    for file in (
        file for program, _ in results for file in files_of(program, options) if file.exists()
    ):
        print(f"  {file}")
    print(f"\n{meaning(results)}\n{next_step(options)}")


if __name__ == "__main__":
    main()
