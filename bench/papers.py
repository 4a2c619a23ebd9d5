#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the papers' workloads (bench/workloads), each under the locks that its paper compares.

Keeps tables and plots in results/, raw data in build/results/. See docs/benchmarks.md."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import time

from command_line import Parser, positive
import results
from results import machine_seconds, own_seconds

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKLOADS = ROOT / "bench" / "workloads"
INTERRUPTED = 130
FAILURES = {1: "some runs failed", INTERRUPTED: "interrupted"}

# The locks that the papers compare, and later ones of the same kind.
NUMA = ("mcs", "cna", "c_bo_mcs", "hmcs", "shfl_spin", "shfl_mutex")
BLOCKING = ("shfl_mutex", "cst", "malthusian", "mcstp", "mutexee", "adaptive")
COHORT = ("hbo", "c_tkt_tkt", "c_ptl_tkt")
ROUTE = (
    "ttas",
    "ticket",
    "mcs",
    "c_bo_mcs",
    "shfl_spin",
    "ron",
    "ron_ticket",
    "ron_plock",
    "ron_shared",
)
SHARES = ("mcs", "shfl_mutex", "scl", "cfl_spin", "cfl_mutex")
READERS = ("shfl_rw", "fair_rw", "bravo_shfl_rw", "bravo_fair_rw")
SIMPLE = (
    "tas",
    "ttas",
    "ticket",
    "mcs",
    "clh",
    "qspin",
    "reciprocating",
    "hapax",
    "adaptive",
    "shfl_mutex",
)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A workload, the locks that its paper compares, and the numbers of threads."""

    workload: str
    locks: tuple
    threads: str


EXPERIMENTS = (
    Experiment("cna-map", NUMA, "1,2,8"),
    Experiment("cna-map-updates", (*NUMA, *COHORT), "2"),
    Experiment("cna-map-work", NUMA, "1,2,8"),
    Experiment("shfl-hash-1", tuple(dict.fromkeys((*NUMA, *BLOCKING))), "1,2,8"),
    Experiment("shfl-hash-rw-1", READERS, "1,2,8"),
    Experiment("shfl-hash-rw-50", READERS, "1,2,8"),
    Experiment("oversubscription", tuple(dict.fromkeys((*BLOCKING, "mcs", "cna"))), "1x,4x,16x"),
    Experiment("ron-1us", ROUTE, "2"),
    Experiment("ron-10us", ROUTE, "1,2,8"),
    Experiment("ron-100us", ROUTE, "2"),
    Experiment("ron-empty", ROUTE, "2"),
    Experiment("cfl-sets", SHARES, "2,8"),
    Experiment("cfl-weights", SHARES, "3,6"),
    Experiment("cfl-tenants", SHARES, "36"),
    Experiment("bueso-first-fill", SIMPLE, "1,2,8"),
    Experiment("bueso-round-robin", SIMPLE, "2,8"),
)


def arguments():
    names = [experiment.workload for experiment in EXPERIMENTS]
    parser = Parser(prog="papers", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(names)}; all if none"
    )
    parser.add_argument(
        "--minutes",
        type=positive(float),
        default=8.0,
        help="the duration of all runs together (%(default)s)",
    )
    parser.add_repeats(5, "of every run")
    parser.add_argument("--threads", help="instead of each workload's own, e.g. 1,2,16,64")
    parser.add_poundlock()
    results.add_options(parser, "papers")
    options = parser.parse_args()
    for name in options.workloads:
        if name not in names:
            parser.error(f"there is no workload '{name}': {', '.join(names)}")
    options.chosen = [
        one for one in EXPERIMENTS if not options.workloads or one.workload in options.workloads
    ]
    if options.threads:
        options.chosen = [
            dataclasses.replace(one, threads=options.threads) for one in options.chosen
        ]
    return options


HEAD = """\
# The papers' workloads

How to read the tables, and what the workloads are: `docs/benchmarks.md`. Each section states how
many cores other processes kept busy: if that is not near 0, holders and waiters were often
preempted.
"""

# The overhead of a run: its warm-up as a fraction of its time, and the seconds of its process.
WARMUP = 0.2
START = 0.05


def seconds(options):
    """The duration of each run, so that all of them take options.minutes."""
    runs = (
        sum((len(one.locks) + 1) * len(one.threads.split(",")) for one in options.chosen)
        * options.repeats
    )
    return max(0.05, (options.minutes * 60 / runs - START) / (1 + WARMUP))


def command(options, one, length):
    path = f"{options.output}-{one.workload}"
    line = [str(options.poundlock), "bench", "file", str(WORKLOADS / f"{one.workload}.toml")]
    line += [
        "--locks",
        ",".join(one.locks),
        "--threads",
        one.threads,
        "--repeats",
        str(options.repeats),
    ]
    line += ["--seconds", f"{length:.3f}", "--warmup", f"{length * WARMUP:.3f}"]
    return line + ["--json", str(results.raw(path)), "--svg", f"{path}.svg"]


def shown(line):
    """The command for a reader."""
    return " ".join(
        [pathlib.Path(line[0]).name, *(word.replace(f"{ROOT}/", "") for word in line[1:])]
    )


def section(options, one, line, done, busy):
    """The workload's part of the report: tables, plot, and the load of the machine."""
    path = pathlib.Path(f"{options.output}-{one.workload}").name
    comment = (WORKLOADS / f"{one.workload}.toml").read_text().split("\n\n")[0].splitlines()
    about = " ".join(text[2:] for text in comment if text.startswith("# "))
    parts = [
        f"## {one.workload}",
        about,
        f"    {shown(line)}",
        "```\n" + done.stdout.rstrip() + "\n```",
    ]
    if done.returncode:
        parts.append(
            f"Exit status {done.returncode}: "
            f"{FAILURES.get(done.returncode, 'it could not be run')}."
        )
    parts.append(f"Other processes kept {busy:.1f} of {os.cpu_count()} cores busy.")
    parts.append(f"![{one.workload}]({path}.svg)")
    return "\n\n".join(parts) + "\n"


def run(line):
    """Runs the command. It handles an interrupt itself, and keeps its results."""
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        while True:
            try:
                output = process.communicate()[0]
                return subprocess.CompletedProcess(line, process.returncode, output)
            except KeyboardInterrupt:
                continue


def main():
    options = arguments()
    try:
        results.check(options.output, options.force)
    except results.Unfit as reason:
        sys.exit(f"papers: {reason}")
    length, began = seconds(options), time.monotonic()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    report = options.output.with_name(options.output.name + ".md")
    text = HEAD
    status = 0
    for one in options.chosen:
        line = command(options, one, length)
        print(shown(line), flush=True)
        before = time.monotonic(), machine_seconds() - own_seconds()
        done = run(line)
        after = time.monotonic(), machine_seconds() - own_seconds()
        busy = max(0.0, (after[1] - before[1]) / (after[0] - before[0]))
        print(done.stdout, flush=True)
        status = status or done.returncode
        text += "\n" + section(options, one, line, done, busy)
        report.write_text(text)
        if done.returncode == INTERRUPTED:
            break
    print(f"kept in {report} after {(time.monotonic() - began) / 60:.1f} minutes")
    sys.exit(status)


if __name__ == "__main__":
    main()
