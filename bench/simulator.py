#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the simulator's speed under contention: simulated memory operations per second of a
host core, and the time for many threads. See docs/benchmarks.md."""

import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import time

import results
from command_line import Parser, positive
from measure import last_line
from questions import MILLION, Table
from results import machine_seconds, own_seconds
from run import keep, machine, markdown, preamble

SCHEMA = 1
WORKLOAD = "cna-map"
# Simulated time by default; the goal in seconds is for this.
MILLISECONDS = 10.0
# # Goals: operations per second, and seconds for threads that spin on their own lines.
RATE = 2 * MILLION
SECONDS, SECONDS_THREADS = 0.5, 192

SPIN_LOCALLY = tuple(f"{name},wait=spin" for name in ("mcs", "clh", "cna", "hmcs", "shfl_spin"))
SPIN_ON_ONE_LINE = ("ttas", "ticket,wait=spin")
SLEEP = ("shfl_mutex", "mcs")


@dataclasses.dataclass(frozen=True)
class Case:
    """A machine, as many threads as it has CPUs, and the locks."""

    machine: str
    threads: int
    locks: tuple


CASES = (
    Case("e5-2699v3", 72, (*SPIN_LOCALLY, *SPIN_ON_ONE_LINE, *SLEEP)),
    Case("e7-8890v4", SECONDS_THREADS, (*SPIN_LOCALLY, *SPIN_ON_ONE_LINE, *SLEEP)),
    Case("synthetic-1024", 1024, (*SPIN_LOCALLY, *SLEEP)),
)


class Failed(Exception):
    """One line for the user."""


def arguments():
    names = [case.machine for case in CASES]
    parser = Parser(prog="simulator", description=__doc__)
    parser.add_argument(
        "machines", nargs="*", metavar="MACHINE", help=f"of {', '.join(names)}; all if none"
    )
    parser.add_argument(
        "--milliseconds",
        type=positive(float),
        default=MILLISECONDS,
        help="to simulate (%(default)s)",
    )
    parser.add_repeats(5, "of every simulation")
    parser.add_poundlock()
    results.add_options(parser, "simulator")
    options = parser.parse_args()
    for name in options.machines:
        if name not in names:
            parser.error(f"there is no machine '{name}': {', '.join(names)}")
    options.cases = [
        case for case in CASES if not options.machines or case.machine in options.machines
    ]
    return options


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def simulate(options, machine, threads, lock, milliseconds):
    """Runs one simulation, alone. Returns its operations and the time of its processes."""
    line = [
        options.poundlock,
        "sim",
        "run",
        "-m",
        machine,
        "-w",
        WORKLOAD,
        "-l",
        lock,
        "-t",
        str(threads),
    ]
    line += [
        "-d",
        f"{milliseconds * 1000:g}us",
        "--warmup",
        "0us",
        "-n",
        "1",
        "-j",
        "1",
        "--json",
        "-",
    ]
    began, cpu = time.monotonic(), children_seconds()
    done = subprocess.run(line, capture_output=True, text=True)
    wall, cpu = time.monotonic() - began, children_seconds() - cpu
    if done.returncode:
        raise Failed(f"{machine}, {lock}, {threads} threads: {last_line(done.stderr)}")
    traffic = json.loads(done.stdout)["traffic"][0]
    return {
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "operations": traffic["operations"],
        "hits": traffic["hits"],
    }


def measure(options):
    """Simulates all cases and locks, interleaved, and the start of each case (lock None)."""
    measured = {(case, lock): [] for case in options.cases for lock in (None, *case.locks)}
    for _ in range(options.repeats):
        for (case, lock), repeats in measured.items():
            what = (case.threads, lock, options.milliseconds) if lock else (1, "mcs", 0.001)
            repeats.append(simulate(options, case.machine, *what))
    return measured


def median(repeats, figure):
    return statistics.median(result[figure] for result in repeats)


def reached(met, goal):
    return "yes" if met else f"NO: {goal}"


def row(options, case, lock, repeats, start):
    rates = [result["operations"] / result["cpu_seconds"] / MILLION for result in repeats]
    # # If the start took all of the time, it was disturbed, and the rest is unknown.
    working = median(repeats, "cpu_seconds") - start
    steady = repeats[0]["operations"] / working if working > 0 else 0.0
    timed = (
        case.threads == SECONDS_THREADS
        and lock in SPIN_LOCALLY
        and options.milliseconds == MILLISECONDS
    )
    cpu = median(repeats, "cpu_seconds")
    return [
        lock,
        f"{repeats[0]['operations'] / MILLION:.2f}",
        f"{100 * repeats[0]['hits'] / repeats[0]['operations']:.0f} %",
        f"{statistics.median(rates):.1f}",
        f"{min(rates):.1f} - {max(rates):.1f}",
        f"{steady / MILLION:.1f}" if working > 0 else "-",
        f"{cpu:.2f}",
        f"{median(repeats, 'wall_seconds'):.2f}",
        reached(steady >= RATE, f"below {RATE / MILLION:g} million/s"),
        reached(cpu < SECONDS, f"over {SECONDS:g} s") if timed else "-",
    ]


HEADER = [
    "lock",
    "million operations",
    "in the core",
    "million/s",
    "min - max",
    "after the start",
    "CPU s",
    "wall s",
]
HEADER += [f"{RATE / MILLION:g} million/s", f"{SECONDS:g} s"]


def tables(options, measured):
    for case in options.cases:
        start = median(measured[case, None], "cpu_seconds")
        title = (
            f"{case.machine}, {case.threads} threads, {options.milliseconds:g} ms of {WORKLOAD}; "
            f"the start: {start:.3f} s"
        )
        yield Table(
            title,
            HEADER,
            [row(options, case, lock, measured[case, lock], start) for lock in case.locks],
        )


def conditions(options, busy):
    command = ["./dev", "bench", "simulator", *options.machines]
    command += ["--milliseconds", f"{options.milliseconds:g}", "--repeats", str(options.repeats)]
    return machine() | {
        "cores_that_others_kept_busy": round(busy, 2),
        "command": " ".join(command),
    }


def main():
    options = arguments()
    results.check(options.output, options.force)
    before = time.monotonic(), machine_seconds() - own_seconds()
    measured = measure(options)
    after = time.monotonic(), machine_seconds() - own_seconds()
    facts = conditions(options, max(0.0, (after[1] - before[1]) / (after[0] - before[0])))
    text = "\n".join([preamble(facts), *map(markdown, tables(options, measured))])
    print(text)
    measurements = [
        {
            "machine": case.machine,
            "threads": case.threads if lock else 1,
            "lock": lock,
            "repeats": repeats,
        }
        for (case, lock), repeats in measured.items()
    ]
    keep(
        options.output, {"schema": SCHEMA, "conditions": facts, "measurements": measurements}, text
    )


if __name__ == "__main__":
    try:
        main()
    except (Failed, results.Unfit) as error:
        sys.exit(f"simulator: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
